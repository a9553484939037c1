package picker_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quorumwise/quorumwise/picker"
)

// fleet is a number of members in memory, found by address.
type fleet struct {
	dialing sync.Mutex // held while a connection is made: its timers are due at once, see race_test.go

	mu      sync.Mutex
	members map[string]*member
	dials   map[string]int
}

// member answers every Range with its id, and what is sent on a watch stream as
// well.
type member struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer
	pb.UnimplementedMaintenanceServer
	id   uint64
	srv  *grpc.Server
	lis  *bufconn.Listener
	mode dialMode

	mu     sync.Mutex
	served int
	refuse int           // Unavailable for that many more Ranges
	event  bool          // a watch gets one event as it is created
	hold   chan struct{} // Ranges wait for it; nil: they do not
}

// dialMode is what becomes of new connections.
type dialMode int

const (
	dialWorks dialMode = iota
	dialFails
	dialHangs
)

func (m *member) Range(ctx context.Context, _ *pb.RangeRequest) (*pb.RangeResponse, error) {
	m.mu.Lock()
	m.served++
	hold := m.hold
	refuse := m.refuse > 0
	if refuse {
		m.refuse--
	}
	m.mu.Unlock()
	if refuse {
		return nil, status.Error(codes.Unavailable, "try another")
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &pb.RangeResponse{Header: &pb.ResponseHeader{MemberId: m.id}}, nil
}

func (m *member) Watch(s pb.Watch_WatchServer) error {
	for {
		req, err := s.Recv()
		if err != nil {
			return err
		}
		resp := &pb.WatchResponse{Header: &pb.ResponseHeader{MemberId: m.id, Revision: 1}}
		switch {
		case req.GetCreateRequest() != nil:
			resp.Created = true
		case req.GetCancelRequest() != nil:
			resp.Canceled = true
		}
		if err := s.Send(resp); err != nil {
			return err
		}
		m.mu.Lock()
		event := m.event && resp.Created
		m.mu.Unlock()
		if event {
			resp.Created = false
			resp.Header.Revision = 2
			resp.Events = []*mvccpb.Event{{Kv: &mvccpb.KeyValue{Key: []byte("k"), ModRevision: 2}}}
			if err := s.Send(resp); err != nil {
				return err
			}
		}
	}
}

func (m *member) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: m.id}}, nil
}

func (m *member) set(change func(*member)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

// newFleet starts members m1:2379, m2:2379 and so on.
func newFleet(t testing.TB, n int) *fleet {
	f := &fleet{members: map[string]*member{}, dials: map[string]int{}}
	for i := 1; i <= n; i++ {
		f.members[addr(i)] = &member{id: uint64(i)}
		f.start(addr(i))
	}
	t.Cleanup(func() {
		for a := range f.members {
			f.stop(a)
		}
	})
	return f
}

func addr(i int) string { return fmt.Sprintf("m%d:2379", i) }

func addrs(n int) []string {
	var all []string
	for i := 1; i <= n; i++ {
		all = append(all, addr(i))
	}
	return all
}

func (f *fleet) start(a string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[a]
	m.lis, m.srv, m.mode = bufconn.Listen(1<<16), grpc.NewServer(), dialWorks
	pb.RegisterKVServer(m.srv, m)
	pb.RegisterWatchServer(m.srv, m)
	pb.RegisterMaintenanceServer(m.srv, m)
	go func(s *grpc.Server, l net.Listener) { _ = s.Serve(l) }(m.srv, m.lis)
}

// stop kills a member; its connections break and new ones fail.
func (f *fleet) stop(a string) {
	f.setDial(a, dialFails)
	f.members[a].srv.Stop()
}

func (f *fleet) setDial(a string, mode dialMode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members[a].mode = mode
}

func (f *fleet) dialed(a string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dials[a]
}

func (f *fleet) dial(ctx context.Context, a string) (net.Conn, error) {
	f.mu.Lock()
	m := f.members[a]
	f.dials[a]++
	f.mu.Unlock()
	if m == nil {
		return nil, fmt.Errorf("no member at %q", a)
	}
	f.mu.Lock()
	mode, lis := m.mode, m.lis
	f.mu.Unlock()
	switch mode {
	case dialHangs:
		<-ctx.Done()
		return nil, ctx.Err()
	case dialFails:
		return nil, errors.New("connection refused")
	default:
		f.dialing.Lock()
		defer f.dialing.Unlock()
		return lis.DialContext(ctx)
	}
}

// rig is a connection to a fleet with the policy on it.
type rig struct {
	t     testing.TB
	fleet *fleet
	hub   *picker.Hub
	conn  *grpc.ClientConn
	res   *manual.Resolver
	kv    pb.KVClient
	watch pb.WatchClient
}

// newRig connects to the first n members, and waits until that is done when it
// runs in a bubble.
func newRig(t testing.TB, f *fleet, n int, opts ...grpc.DialOption) *rig {
	hub := picker.NewHub()
	t.Cleanup(hub.Close)
	hub.SetMain(addrs(n))
	r := connect(t, f, hub, addrs(n), opts...)
	r.conn.Connect()
	settle(t)
	return r
}

func settle(t testing.TB) {
	if _, bubble := t.(*testing.T); bubble {
		synctest.Wait()
	}
}

// connect makes a connection that uses the hub, without making it the main one
// and without using it.
func connect(t testing.TB, f *fleet, hub *picker.Hub, addresses []string, opts ...grpc.DialOption) *rig {
	return connectConfig(t, f, hub, `{"loadBalancingConfig":`+hub.LoadBalancingConfig()+`}`, addresses, opts...)
}

func connectConfig(t testing.TB, f *fleet, hub *picker.Hub, config string, addresses []string, opts ...grpc.DialOption) *rig {
	t.Helper()
	res := manual.NewBuilderWithScheme("fleet")
	res.InitialState(stateOf(addresses))
	opts = append([]grpc.DialOption{
		grpc.WithResolvers(res),
		grpc.WithContextDialer(f.dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultServiceConfig(config),
	}, opts...)
	conn, err := grpc.NewClient("fleet:///x", opts...)
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &rig{t: t, fleet: f, hub: hub, conn: conn, res: res, kv: pb.NewKVClient(conn), watch: pb.NewWatchClient(conn)}
}

// stateOf is what clientv3's resolver makes of addresses.
func stateOf(addresses []string) resolver.State {
	var s resolver.State
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a, ServerName: "name." + a}}})
	}
	return s
}

// get makes one call and returns the id of the member that answered.
func (r *rig) get() uint64 {
	r.t.Helper()
	id, err := r.tryGet(context.Background())
	if err != nil {
		r.t.Fatalf("Get: %v", err)
	}
	return id
}

func (r *rig) tryGet(ctx context.Context) (uint64, error) {
	ctx, call := r.hub.Begin(ctx, picker.ClassRead, pb.KV_Range_FullMethodName)
	defer call.Finish()
	resp, err := r.kv.Range(ctx, &pb.RangeRequest{Key: []byte("k")})
	return resp.GetHeader().GetMemberId(), err
}

// share makes n calls one after the other and counts who answered.
func (r *rig) share(n int) map[uint64]int {
	r.t.Helper()
	got := map[uint64]int{}
	for range n {
		got[r.get()]++
	}
	return got
}

// slowGet is a call in flight.
type slowGet struct {
	call *picker.Call
	done chan struct{}
	err  error
	id   uint64
}

func (r *rig) goGet(class picker.Class) *slowGet {
	ctx, call := r.hub.Begin(context.Background(), class, pb.KV_Range_FullMethodName)
	g := &slowGet{call: call, done: make(chan struct{})}
	go func() {
		defer close(g.done)
		defer call.Finish()
		resp, err := r.kv.Range(ctx, &pb.RangeRequest{Key: []byte("k")})
		g.id, g.err = resp.GetHeader().GetMemberId(), err
	}()
	return g
}

func (g *slowGet) over() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// stream is an open watch stream.
type stream struct {
	pb.Watch_WatchClient
	t    testing.TB
	ctx  context.Context
	call *picker.Call
	id   uint64 // who answered
}

func (r *rig) open(class picker.Class) *stream {
	r.t.Helper()
	ctx, call := r.hub.Begin(context.Background(), class, pb.Watch_Watch_FullMethodName)
	r.t.Cleanup(call.Finish)
	w, err := r.watch.Watch(ctx)
	if err != nil {
		r.t.Fatalf("Watch: %v", err)
	}
	s := &stream{Watch_WatchClient: w, t: r.t, ctx: ctx, call: call}
	if err := s.ping(); err != nil {
		r.t.Fatalf("Watch: %v", err)
	}
	return s
}

// ping sees whether the stream still works.
func (s *stream) ping() error {
	if err := s.Send(&pb.WatchRequest{}); err != nil {
		_, err = s.Recv()
		return err
	}
	resp, err := s.Recv()
	s.id = resp.GetHeader().GetMemberId()
	return err
}

// states lists the endpoints' connectivity.
func (r *rig) states() map[string]connectivity.State {
	out := map[string]connectivity.State{}
	for _, e := range r.hub.Endpoints() {
		out[e.Address] = e.State
	}
	return out
}
