package healthsvctest

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/quorumwise/quorumwise/healthsvc"
)

type servingStatus = healthpb.HealthCheckResponse_ServingStatus

const (
	serving    = healthpb.HealthCheckResponse_SERVING
	notServing = healthpb.HealthCheckResponse_NOT_SERVING
	unknown    = healthpb.HealthCheckResponse_SERVICE_UNKNOWN
)

// session is one check's conversation with its server.
type session struct {
	ctx     context.Context
	client  healthpb.HealthClient
	publish func(healthsvc.Report)
	stop    func()
}

// check asks for one service.
func (s *session) check(service string) (servingStatus, metadata.MD, error) {
	var md metadata.MD
	resp, err := s.client.Check(s.ctx, &healthpb.HealthCheckRequest{Service: service}, grpc.Header(&md))
	return resp.GetStatus(), md, err
}

// wantCheck asks for one service and compares.
func (s *session) wantCheck(service string, want servingStatus, why string) error {
	got, _, err := s.check(service)
	if err != nil {
		return fmt.Errorf("grpc.health.v1 Check(%q): %w, want %v: %s", service, err, want, why)
	}
	if got != want {
		return fmt.Errorf("grpc.health.v1 Check(%q) = %v, want %v: %s", service, got, want, why)
	}
	return nil
}

// list asks for all services.
func (s *session) list() (map[string]servingStatus, metadata.MD, error) {
	var md metadata.MD
	resp, err := s.client.List(s.ctx, &healthpb.HealthListRequest{}, grpc.Header(&md))
	if err != nil {
		return nil, nil, fmt.Errorf("grpc.health.v1 List: %w", err)
	}
	all := make(map[string]servingStatus)
	for name, one := range resp.GetStatuses() {
		all[name] = one.GetStatus()
	}
	return all, md, nil
}

// watcher is one Watch stream.
type watcher struct {
	service string
	stream  healthpb.Health_WatchClient
	cancel  context.CancelFunc // lets the client go away
}

func (s *session) watch(service string) (*watcher, error) {
	ctx, cancel := context.WithCancel(s.ctx)
	stream, err := s.client.Watch(ctx, &healthpb.HealthCheckRequest{Service: service})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("grpc.health.v1 Watch(%q): %w", service, err)
	}
	return &watcher{service, stream, cancel}, nil
}

// want reads the next message and compares.
func (w *watcher) want(want servingStatus, why string) error {
	resp, err := w.stream.Recv()
	if err != nil {
		return fmt.Errorf("grpc.health.v1 Watch(%q): next message: %w, want %v: %s", w.service, err, want, why)
	}
	if got := resp.GetStatus(); got != want {
		return fmt.Errorf("grpc.health.v1 Watch(%q): next message is %v, want %v: %s", w.service, got, want, why)
	}
	return nil
}

// quiet is the pause after which a stream is taken to have said everything.
const quiet = 50 * time.Millisecond

// settlesAt reads until nothing comes for a while and wants the last message to be want. The
// watcher cannot be used afterwards.
func (w *watcher) settlesAt(want servingStatus, why string) error {
	messages := make(chan servingStatus)
	failed := make(chan error, 1)
	go func() { // ends with the stream, which is cancelled below
		for {
			resp, err := w.stream.Recv()
			if err != nil {
				failed <- err
				close(messages)
				return
			}
			messages <- resp.GetStatus()
		}
	}()
	defer func() {
		w.cancel()
		for range messages {
		}
	}()
	var last servingStatus
	for {
		select {
		case got, ok := <-messages:
			if !ok {
				return fmt.Errorf("grpc.health.v1 Watch(%q) ended with %w after %v, want %v and the stream open: %s", w.service, <-failed, last, want, why)
			}
			last = got
		case <-time.After(quiet):
			if last == want {
				return nil
			}
		}
	}
}
