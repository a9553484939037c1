package healthsvc

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// ServerOptions configures a Server. The zero value works.
type ServerOptions struct {
	// EmptyName makes the empty service name mean etcd.serving, as fits a server of its own
	// beside etcd. Leave it false in etcd's process, where the empty name is etcd's.
	EmptyName bool
	// Validity is how old a report may get, 0 (the default) or less: for ever. An older one is answered
	// NOT_SERVING with reason stale, and watchers are told. Several proof intervals are right:
	// less, and a busy host calls a healthy member bad; more, and a shim that hangs goes on
	// praising a member that it no longer looks at.
	Validity time.Duration
}

// errStopped ends watches and refuses calls once the server has been stopped. Unavailable, because
// that is what makes every gRPC client go elsewhere.
var errStopped = status.Error(codes.Unavailable, "healthsvc: the health server of this member has stopped")

// unknownService stands for every name outside the contract. grpc's server remembers each name
// ever watched, so that strangers could fill its memory if their names reached it.
const unknownService = "unknown"

// Server answers grpc.health.v1 for one member: Check, Watch and List, with the identity headers on
// every answer. It is safe for concurrent use. Until the first Publish it is NOT_SERVING with
// reason starting; etcd.live is SERVING from the beginning until Stop.
type Server struct {
	healthpb.UnimplementedHealthServer
	opts     ServerOptions
	statuses *health.Server // holds what the newest report says, and pushes its changes

	// mu makes one report of a status and the headers beside it. It is never held while
	// anything is sent.
	mu        sync.RWMutex
	report    Report
	lasting   metadata.MD // of report
	published time.Time   // when report came; zero: never, or expired already
	expiry    *time.Timer // nil without Validity or before the first report
	stopped   bool
	watches   map[*watch]struct{} // open streams
	watchers  int                 // those of watches for names that we know
}

// NewServer returns a server that knows nothing yet.
func NewServer(opts ServerOptions) *Server {
	s := &Server{opts: opts, statuses: health.NewServer(), watches: make(map[*watch]struct{})}
	for _, service := range services {
		s.statuses.SetServingStatus(service, wireStatus(service == ServiceLive))
	}
	s.setLocked(Report{Reason: ReasonStarting})
	return s
}

func wireStatus(ok bool) healthpb.HealthCheckResponse_ServingStatus {
	if ok {
		return healthpb.HealthCheckResponse_SERVING
	}
	return healthpb.HealthCheckResponse_NOT_SERVING
}

// Publish replaces the report; watchers hear of what changed. After Stop it does nothing.
func (s *Server) Publish(r Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.setLocked(r)
	s.published = time.Now()
	switch {
	case s.opts.Validity <= 0:
	case s.expiry == nil:
		s.expiry = time.AfterFunc(s.opts.Validity, s.expire)
	default:
		s.expiry.Reset(s.opts.Validity)
	}
}

// setLocked is the one place that writes the report and what follows from it. Only what changed
// reaches the statuses: each change wakes every watcher of that service.
func (s *Server) setLocked(r Report) {
	before := s.report
	s.report, s.lasting = r, r.lastingHeaders()
	for _, service := range services {
		if r.facet(service) != before.facet(service) {
			s.statuses.SetServingStatus(service, wireStatus(r.facet(service)))
		}
	}
}

// expire tells the watchers that the report has become too old; those who ask find out by
// themselves, even when this timer is late.
func (s *Server) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(time.Now())
}

func (s *Server) expireLocked(now time.Time) {
	if !s.staleLocked(now) {
		return
	}
	s.published = time.Time{}
	s.setLocked(Report{
		Identity: s.report.Identity, Reason: ReasonStale,
		LastProof: s.report.LastProof, RoundTrip: s.report.RoundTrip, Poll: s.report.Poll,
	})
}

func (s *Server) staleLocked(now time.Time) bool {
	return s.opts.Validity > 0 && !s.published.IsZero() && now.Sub(s.published) >= s.opts.Validity
}

// Watchers returns the number of open Watch streams for names of the contract: those who balance on
// us. Streams for other names are a stranger's, who must not change what the others are told.
func (s *Server) Watchers() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.watchers
}

// Stop ends every Watch stream with Unavailable, and from then on every call ends the same way. It
// does not wait for the streams to end. Call it before grpc.Server.GracefulStop, which would wait
// for them for ever. It may be called more than once.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.expiry != nil {
		s.expiry.Stop()
	}
	for w := range s.watches {
		w.cancel()
	}
}

// Check implements grpc.health.v1. An unknown name is NotFound, the empty one too without
// EmptyName. After Stop it is Unavailable.
func (s *Server) Check(ctx context.Context, req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	var resp *healthpb.HealthCheckResponse
	md, err := s.answer(func() (err error) {
		resp, err = s.statuses.Check(ctx, &healthpb.HealthCheckRequest{Service: s.known(req.GetService())})
		return err
	})
	setHeader(ctx, md)
	return resp, err
}

// List implements grpc.health.v1: all names of the contract, and with EmptyName the empty one.
// After Stop it is Unavailable.
func (s *Server) List(ctx context.Context, req *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	var resp *healthpb.HealthListResponse
	md, err := s.answer(func() (err error) {
		resp, err = s.statuses.List(ctx, req)
		return err
	})
	setHeader(ctx, md)
	if err != nil {
		return nil, err
	}
	delete(resp.Statuses, "") // grpc's own entry, not one of the contract
	if s.opts.EmptyName {
		resp.Statuses[""] = resp.Statuses[ServiceServing]
	}
	return resp, nil
}

// answer runs ask and makes the headers that belong to what it found: both see the same report.
func (s *Server) answer(ask func() error) (metadata.MD, error) {
	now := time.Now()
	s.mu.RLock()
	if s.staleLocked(now) {
		s.mu.RUnlock()
		s.expire()
		s.mu.RLock()
	}
	defer s.mu.RUnlock()
	if s.stopped {
		return nil, errStopped
	}
	err := ask()
	return answerHeaders(s.lasting, s.report.LastProof, now), err
}

// setHeader cannot fail in a way that matters: without a gRPC call around us there is nobody to
// read headers, and the answer stands without them.
func setHeader(ctx context.Context, md metadata.MD) {
	if len(md) > 0 {
		_ = grpc.SetHeader(ctx, md)
	}
}

// known maps a requested name to the one under which its status is kept.
func (s *Server) known(name string) string {
	switch {
	case name == "" && s.opts.EmptyName:
		return ServiceServing
	case isService(name):
		return name
	default:
		return unknownService
	}
}
