package healthsvc

import (
	"context"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// watch is one open Watch stream. Its context ends with the call, or when the server stops.
type watch struct {
	healthpb.Health_WatchServer
	service string // under which the status is kept
	ctx     context.Context
	cancel  context.CancelFunc
}

// Context implements grpc.ServerStream.
func (w *watch) Context() context.Context { return w.ctx }

// Watch implements grpc.health.v1: the present status at once, then every change, the latest value
// if the client is slow to read. An unknown name is SERVICE_UNKNOWN, on a stream that stays open.
// The headers are those of the moment when the stream began. Stop ends it with Unavailable, and
// after Stop none begins.
func (s *Server) Watch(req *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	w := &watch{Health_WatchServer: stream, service: s.known(req.GetService()), ctx: ctx, cancel: cancel}
	if err := s.enter(w); err != nil {
		return err
	}
	defer s.leave(w)
	err := s.statuses.Watch(&healthpb.HealthCheckRequest{Service: w.service}, w)
	if stream.Context().Err() == nil && ctx.Err() != nil {
		return errStopped
	}
	return err
}

// enter counts w and gives it the present headers.
func (s *Server) enter(w *watch) error {
	md, err := s.answer(func() error { return nil })
	if err != nil {
		return err
	}
	_ = w.SetHeader(md) // fails only when the stream is over, which Watch finds out itself
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errStopped
	}
	s.watches[w] = struct{}{}
	if isService(w.service) {
		s.watchers++
	}
	return nil
}

func (s *Server) leave(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, w)
	if isService(w.service) {
		s.watchers--
	}
}
