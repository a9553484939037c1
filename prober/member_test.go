package prober

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quorumwise/quorumwise/healthsvc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// members is a small network in memory: hosts a, b, c with etcd on port 2379 and, where
// asked for, a shim on 2378.
type members struct {
	mu    sync.Mutex
	hosts map[string]*member // by address of etcd and of the shim
	all   []*member
	dials int
}

// member is one fake etcd, with a switch for each fault.
type member struct {
	pb.UnimplementedKVServer
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedClusterServer
	healthpb.UnimplementedHealthServer

	name  string
	id    uint64
	link  *link
	creds credentials.TransportCredentials
	shim  *healthsvc.Server // nil: none

	mu          sync.Mutex
	stalled     chan struct{} // proofs wait for its closing; nil: they complete
	leaderless  bool
	refusal     error // of checks and proofs
	authorities map[string]bool
	proofs      int
	checks      int
	leader      uint64 // as etcd itself tells it
	term        uint64

	last    healthsvc.Report
	stop    chan struct{}
	ended   sync.WaitGroup
	servers []*grpc.Server
	lis     map[string]*bufconn.Listener
}

func newMembers(t *testing.T, shims bool, names ...string) *members {
	return newMembersWith(t, shims, func(string) credentials.TransportCredentials { return insecure.NewCredentials() }, names...)
}

func newMembersWith(t *testing.T, shims bool, creds func(name string) credentials.TransportCredentials, names ...string) *members {
	ms := &members{hosts: make(map[string]*member)}
	for i, n := range names {
		m := &member{name: n, id: uint64(i + 1), link: newLink(), stop: make(chan struct{}), authorities: make(map[string]bool), lis: make(map[string]*bufconn.Listener), leader: 1, term: 5}
		m.creds = creds(n)
		etcd := grpc.NewServer(grpc.Creds(m.creds))
		m.register(etcd)
		m.serve(n+":2379", etcd)
		ms.hosts[n+":2379"] = m
		if shims {
			m.startShim(m.id)
		}
		ms.hosts[n+":2378"] = m
		ms.all = append(ms.all, m)
	}
	t.Cleanup(ms.stop)
	return ms
}

func (m *member) startShim(id uint64) {
	m.shim = healthsvc.NewServer(healthsvc.ServerOptions{EmptyName: true})
	m.report(true, "", id)
	m.background(m.keepProving)
	s := grpc.NewServer(grpc.Creds(m.creds), grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		m.note(ctx)
		return h(ctx, req)
	}))
	healthpb.RegisterHealthServer(s, m.shim)
	m.serve(m.name+":2378", s)
}

func (m *member) report(serving bool, reason healthsvc.Reason, id uint64) {
	m.set(func() {
		m.last = healthsvc.Report{
			Identity: healthsvc.Identity{Cluster: 0xc, Member: id, Leader: 1, Term: 5},
			Reason:   reason, Serving: serving, Quorum: serving, Voter: true, Read: true, LastProof: time.Now(),
		}
		if reason == healthsvc.ReasonNoQuorum {
			m.last.LastProof = m.last.LastProof.Add(-250 * time.Millisecond) // it takes a window to say so
		}
		m.shim.Publish(m.last)
	})
}

// restartInProcess replaces etcd by one that carries the services in its own process.
func (m *member) restartInProcess(t *testing.T) {
	m.servers[0].Stop()
	m.shim = healthsvc.NewServer(healthsvc.ServerOptions{})
	m.say(true, "")
	m.background(m.keepProving)
	etcd := grpc.NewServer(grpc.ChainUnaryInterceptor(m.shim.UnaryServerInterceptor()), grpc.ChainStreamInterceptor(m.shim.StreamServerInterceptor()))
	m.register(etcd)
	m.serve(m.name+":2379", etcd)
}

// killShim ends the shim's process.
func (m *member) killShim() {
	m.set(func() { delete(m.lis, m.name+":2378") })
	m.shim.Stop()
	m.servers[len(m.servers)-1].Stop()
}

func (m *member) register(s *grpc.Server) {
	pb.RegisterKVServer(s, m)
	pb.RegisterMaintenanceServer(s, m)
	pb.RegisterClusterServer(s, m)
	healthpb.RegisterHealthServer(s, m)
}

// keepProving is what a shim does all the time.
func (m *member) keepProving(stop <-chan struct{}) {
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-tick.C:
			m.renew()
		case <-stop:
			tick.Stop()
			return
		}
	}
}

// renew: a proof completes, and is published.
func (m *member) renew() {
	m.set(func() {
		if m.last.Serving {
			m.last.LastProof = time.Now()
			m.shim.Publish(m.last)
		}
	})
}

// background runs f until the member is stopped.
func (m *member) background(f func(stop <-chan struct{})) {
	m.ended.Go(func() { f(m.stop) })
}

// say publishes the member's own report.
func (m *member) say(serving bool, reason healthsvc.Reason) { m.report(serving, reason, m.id) }

func (m *member) serve(address string, s *grpc.Server) {
	l := bufconn.Listen(1 << 16)
	m.mu.Lock()
	m.lis[address] = l
	m.servers = append(m.servers, s)
	m.mu.Unlock()
	go s.Serve(l)
}

func (ms *members) stop() {
	for _, m := range ms.all {
		m.link.set(linkUp)
		m.set(func() {
			if m.stalled != nil {
				close(m.stalled)
				m.stalled = nil
			}
		})
		close(m.stop)
		m.ended.Wait()
		if m.shim != nil {
			m.shim.Stop()
		}
		for _, s := range m.servers {
			s.Stop()
		}
	}
}

func (m *member) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *member) stall() { m.set(func() { m.stalled = make(chan struct{}) }) }

func (m *member) resume() { m.set(func() { close(m.stalled); m.stalled = nil }) }

func (m *member) note(ctx context.Context) {
	md, _ := metadata.FromIncomingContext(ctx)
	m.set(func() {
		for _, a := range md.Get(":authority") {
			m.authorities[a] = true
		}
	})
}

func (m *member) Check(ctx context.Context, req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	m.note(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checks++
	md, _ := metadata.FromIncomingContext(ctx)
	switch {
	case m.refusal != nil:
		return nil, m.refusal
	case m.leaderless && len(md.Get(rpctypes.MetadataRequireLeaderKey)) > 0:
		return nil, rpctypes.ErrGRPCNoLeader
	case req.GetService() != "":
		return nil, statusNotFound
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

func (m *member) Watch(_ *healthpb.HealthCheckRequest, s healthpb.Health_WatchServer) error {
	if err := s.Send(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVICE_UNKNOWN}); err != nil {
		return err
	}
	<-s.Context().Done()
	return s.Context().Err()
}

func (m *member) Range(ctx context.Context, _ *pb.RangeRequest) (*pb.RangeResponse, error) {
	m.mu.Lock()
	m.proofs++
	stalled, refusal := m.stalled, m.refusal
	m.mu.Unlock()
	if refusal != nil {
		return nil, refusal
	}
	if stalled != nil {
		select {
		case <-stalled:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &pb.RangeResponse{Header: m.header()}, nil
}

func (m *member) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	h := m.header()
	m.mu.Lock()
	defer m.mu.Unlock()
	return &pb.StatusResponse{Header: h, Version: "3.7.3", Leader: m.leader, RaftTerm: m.term}, nil
}

func (m *member) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Header: m.header(), Members: []*pb.Member{{ID: m.id}}}, nil
}

func (m *member) header() *pb.ResponseHeader {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &pb.ResponseHeader{ClusterId: 0xc, MemberId: m.id, RaftTerm: m.term, Revision: 1}
}

// dial is the dialer of the probes.
func (ms *members) dial(ctx context.Context, address string) (net.Conn, error) {
	ms.mu.Lock()
	ms.dials++
	m := ms.hosts[address]
	ms.mu.Unlock()
	if m == nil {
		return nil, fmt.Errorf("no host at %s", address)
	}
	switch m.link.now() {
	case linkRefused:
		return nil, errors.New("connection refused")
	case linkCut:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	m.mu.Lock()
	l := m.lis[address]
	m.mu.Unlock()
	if l == nil {
		return nil, errors.New("connection refused")
	}
	if m.link.now() == linkFrozen { // the kernel accepts, the process never looks
		here, there := net.Pipe()
		_ = there
		return &linkConn{Conn: here, link: m.link, closed: make(chan struct{})}, nil
	}
	c, err := l.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return &linkConn{Conn: c, link: m.link, closed: make(chan struct{})}, nil
}

func (ms *members) dialled() int {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.dials
}

// prober starts a prober of all members and waits until it has settled.
func (ms *members) prober(t *testing.T, cfg Config) *Prober {
	t.Helper()
	cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(ms.dial))
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.SetEndpoints(ms.endpoints())
	return p
}

func (ms *members) endpoints() (eps []Endpoint) {
	for _, m := range ms.all {
		eps = append(eps, Endpoint{Address: m.name + ":2379", Shim: m.name + ":2378", ServerName: m.name + ".example"})
	}
	return eps
}

// link is the way to one host.
type link struct {
	mu    sync.Mutex
	state linkState
	clear chan struct{} // closed while traffic passes
}

type linkState int

const (
	linkUp      linkState = iota
	linkCut               // everything is dropped
	linkFrozen            // connections are accepted, nothing is answered
	linkRefused           // as up for what is open, new connections are refused
)

func newLink() *link {
	l := &link{clear: make(chan struct{})}
	close(l.clear)
	return l
}

func (l *link) set(s linkState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	passes := func(s linkState) bool { return s == linkUp || s == linkRefused }
	switch {
	case passes(l.state) && !passes(s):
		l.clear = make(chan struct{})
	case !passes(l.state) && passes(s):
		close(l.clear)
	}
	l.state = s
}

func (l *link) now() linkState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

func (l *link) passing() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clear
}

// linkConn is a connection over a link. What was under way when the link was cut never
// arrives: TCP's retransmission would take longer than any test.
type linkConn struct {
	net.Conn
	link   *link
	once   sync.Once
	closed chan struct{}
	mu     sync.Mutex
	lost   bool
}

func (c *linkConn) pass() error {
	clear := c.link.passing()
	select {
	case <-clear:
	default:
		c.mu.Lock()
		c.lost = true
		c.mu.Unlock()
	}
	c.mu.Lock()
	lost := c.lost
	c.mu.Unlock()
	if lost {
		<-c.closed
		return io.ErrClosedPipe
	}
	return nil
}

func (c *linkConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if stuck := c.pass(); stuck != nil {
		return 0, stuck
	}
	return n, err
}

func (c *linkConn) Write(b []byte) (int, error) {
	if err := c.pass(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *linkConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
