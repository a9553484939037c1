package fakeetcd

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// startEtcd starts the member's etcd server. m.life is held.
func (m *Member) startEtcd() {
	unary := []grpc.UnaryServerInterceptor{m.unary}
	stream := []grpc.StreamServerInterceptor{m.stream}
	if m.c.opts.shim(m.index) == ShimInProcess {
		m.startShimLoop()
		unary = append(unary, m.health.server.UnaryServerInterceptor())
		stream = append(stream, m.health.server.StreamServerInterceptor())
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(unary...),
		grpc.ChainStreamInterceptor(stream...),
		grpc.WaitForHandlers(true),
		m.c.opts.security(m.index),
		// As etcd has them: a client that pings more often, or without a stream, is sent away.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 2 * time.Hour, Timeout: 20 * time.Second}),
	)
	pb.RegisterKVServer(server, &kvServer{m: m})
	pb.RegisterWatchServer(server, &watchServer{m: m})
	pb.RegisterLeaseServer(server, &leaseServer{m: m})
	pb.RegisterClusterServer(server, &clusterServer{m: m})
	pb.RegisterMaintenanceServer(server, &maintenanceServer{m: m})
	pb.RegisterAuthServer(server, &authServer{m: m})
	stock := health.NewServer()
	stock.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(server, stock)

	listener := m.etcd.listen()
	m.server = server
	m.c.wg.Go(func() { _ = server.Serve(listener) })
}

// start starts the member's etcd server.
func (m *Member) start() {
	m.life.Lock()
	defer m.life.Unlock()
	m.startEtcd()
}

// halt ends the member's etcd server as a kill does.
func (m *Member) halt() {
	m.life.Lock()
	defer m.life.Unlock()
	m.stopEtcd()
}

// stopEtcd resets the member's connections and waits until its calls have ended. m.life is held.
func (m *Member) stopEtcd() {
	if m.server == nil {
		return
	}
	m.etcd.refuse()
	if m.c.opts.shim(m.index) == ShimInProcess {
		m.stopShimLoop()
	}
	m.etcd.reset()
	m.server.Stop()
	m.server = nil
}

// unary is what etcd does before every unary call, and the faults of a single answer.
func (m *Member) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	m.record(info.FullMethod, req)
	latency, err := m.admit(ctx, info.FullMethod, unaryForLearner(req))
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, latency/2); err != nil {
		return nil, err
	}
	resp, err := handler(ctx, req)
	if perr := pause(ctx, latency-latency/2); perr != nil {
		return nil, perr
	}
	if ferr := m.spoilAnswer(ctx, info.FullMethod); ferr != nil {
		return nil, ferr
	}
	return resp, err
}

// unaryForLearner reports whether a learner answers the request.
func unaryForLearner(req any) bool {
	switch r := req.(type) {
	case *pb.StatusRequest:
		return true
	case *pb.RangeRequest:
		return r.Serializable
	default:
		return false
	}
}

// admit decides whether a call is worked on at all, and returns the latency that it pays.
func (m *Member) admit(ctx context.Context, method string, forLearner bool) (time.Duration, error) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	n := m.node()
	switch {
	case m.rejects.applies(method):
		return 0, status.Error(m.rejects.code, m.rejects.message)
	case n.learner && !n.removed && !forLearner:
		return 0, rpctypes.ErrGRPCNotSupportedForLearner
	case requiresLeader(ctx) && n.leader == none:
		return 0, rpctypes.ErrGRPCNoLeader
	}
	return m.latency, nil
}

func (r *rejection) applies(method string) bool {
	if r == nil {
		return false
	}
	return len(r.methods) == 0 || slices.ContainsFunc(r.methods, func(short string) bool {
		return named(method, short)
	})
}

func requiresLeader(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get(rpctypes.MetadataRequireLeaderKey)
	return len(values) > 0 && values[0] == rpctypes.MetadataHasLeader
}

// spoilAnswer withholds an answer or resets the connections instead, if told to.
func (m *Member) spoilAnswer(ctx context.Context, method string) error {
	m.c.mu.Lock()
	drops := matches(m.drops, method, false)
	breaks := matches(m.breaks, method, true)
	m.c.mu.Unlock()
	switch {
	case drops:
		<-ctx.Done()
	case breaks:
		m.etcd.reset()
		<-ctx.Done()
	default:
		return nil
	}
	return contextError(ctx)
}

// matches reports whether a method is in the set, and takes it out if told to.
func matches(set map[string]bool, method string, once bool) bool {
	for short := range set {
		if named(method, short) {
			if once {
				delete(set, short)
			}
			return true
		}
	}
	return false
}

// pause waits for a latency.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// contextError returns why a call's context ended, as a gRPC status.
func contextError(ctx context.Context) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, cause.Error())
	case errors.Is(cause, context.Canceled):
		return status.Error(codes.Canceled, cause.Error())
	default:
		return cause
	}
}

// openStream is a streaming call that goes on until it is cancelled, with the error to end with.
type openStream struct {
	grpc.ServerStream
	method string
	leader bool // it required one: it ends when the member has known none for long
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (s *openStream) Context() context.Context { return s.ctx }

// stream is what etcd does before every streaming call.
func (m *Member) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	m.record(info.FullMethod, nil)
	if _, err := m.admit(ss.Context(), info.FullMethod, false); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ss.Context())
	defer cancel(nil)
	s := &openStream{
		ServerStream: ss, method: info.FullMethod, leader: requiresLeader(ss.Context()), ctx: ctx, cancel: cancel,
	}
	m.c.mu.Lock()
	m.streams[s] = struct{}{}
	m.c.mu.Unlock()
	err := handler(srv, s)
	m.c.mu.Lock()
	delete(m.streams, s)
	m.c.mu.Unlock()
	if ctx.Err() != nil && ss.Context().Err() == nil {
		return context.Cause(ctx)
	}
	return err
}

// endStreams ends those open streams that an error is meant for. c.mu is held.
func (m *Member) endStreams(err error, meant func(*openStream) bool) {
	for s := range m.streams {
		if meant(s) {
			s.cancel(err)
		}
	}
}

// header returns the header of an answer. c.mu is held.
func (m *Member) header(revision int64) *pb.ResponseHeader {
	return &pb.ResponseHeader{
		ClusterId: m.cluster, MemberId: m.ID, Revision: revision, RaftTerm: m.node().term,
	}
}

// prove waits until a linearizable read by way of the member may be answered.
func (m *Member) prove(ctx context.Context) error {
	m.c.mu.Lock()
	epoch, disk := m.node().epoch, m.disk
	m.c.mu.Unlock()
	if err := pause(ctx, disk); err != nil {
		return err
	}
	return m.await(ctx, requestTimeout, rpctypes.ErrGRPCTimeout, func() (bool, error) {
		if m.node().epoch != epoch {
			return false, rpctypes.ErrGRPCLeaderChanged
		}
		return m.c.consensus.live(m.index, time.Now()), nil
	})
}

// propose waits until the log takes an entry by way of the member, and applies it. A member that
// knows no leader keeps the entry until there is one, or until the request timeout, and then
// ends with what gRPC says of any deadline. One that still names a leader forwards it to
// that leader, and if that one has been lost, the entry is lost with it: nobody tells, and the call
// hangs until the request timeout. A cut too short to change the leader loses nothing, and with
// InheritProposals neither does an election.
func (m *Member) propose(ctx context.Context, apply func() error) error {
	m.c.mu.Lock()
	epoch, forwarded, disk := m.node().epoch, m.node().leader != none, m.disk
	m.c.mu.Unlock()
	if err := pause(ctx, disk); err != nil {
		return err
	}
	late := rpctypes.ErrGRPCTimeout
	if !forwarded {
		late = status.FromContextError(context.DeadlineExceeded).Err()
	}
	return m.await(ctx, requestTimeout, late, func() (bool, error) {
		now := time.Now()
		lost := forwarded && m.node().epoch != epoch && !m.c.inherit
		if lost || !m.c.consensus.live(m.index, now) {
			return false, nil
		}
		m.c.index++
		err := apply()
		m.c.settle(now)
		return true, err
	})
}

// authorize checks the token of a call, if the cluster wants one.
func (m *Member) authorize(ctx context.Context) error {
	if m.c.opts.User == "" {
		return nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	tokens := md.Get(rpctypes.TokenFieldNameGRPC)
	if len(tokens) == 0 {
		return rpctypes.ErrGRPCUserEmpty
	}
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if !m.tokens[tokens[0]] {
		return rpctypes.ErrGRPCInvalidAuthToken
	}
	return nil
}
