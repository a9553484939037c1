package inproc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership/inproc"
	"github.com/quorumwise/quorumwise/servershim"
	"github.com/quorumwise/quorumwise/servershim/internal/conns"
)

// Shim is the health shim of one embedded etcd server. Make one with [Attach].
type Shim struct {
	core   *servershim.Shim
	srv    *healthsvc.Server
	src    *source
	ending *ending
	log    *slog.Logger

	ctx    context.Context // of run; ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // run, and calls of Serve

	mu      sync.Mutex
	started bool
	closed  bool
	serving []served // by calls of Serve
	err     error    // of run
}

// served is one call of Serve.
type served struct {
	server *grpc.Server
	lis    *conns.Listener
}

// source gets its server in Start, before anything asks it.
type source struct{ *inproc.Source }

// Attach prepares cfg, which must not have been started yet, so that its etcd
// server answers the health services. An ElectionTimeout of zero in sc becomes
// that of cfg. It fails where cfg is nil or a field of sc is out of its range.
func Attach(cfg *embed.Config, sc servershim.Config) (*Shim, error) {
	if cfg == nil {
		return nil, errors.New("servershim/inproc: Attach needs an embed.Config, got nil")
	}
	if sc.ElectionTimeout == 0 {
		sc.ElectionTimeout = time.Duration(cfg.ElectionMs) * time.Millisecond
	}
	srv := healthsvc.NewServer(healthsvc.ServerOptions{
		EmptyName: true,                                                            // for Serve; the interceptors leave that name to etcd
		Validity:  servershim.Validity(cmp.Or(sc.Interval, sc.ElectionTimeout/10)), // as Interval's default
	})
	src := new(source)
	core, err := servershim.New(src, srv, sc)
	if err != nil {
		return nil, fmt.Errorf("servershim/inproc: %w", err)
	}
	s := &Shim{core: core, srv: srv, src: src, ending: newEnding(srv.Stop), log: cmp.Or(sc.Logger, slog.Default())}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	cfg.ServiceRegister = s.ending.register(cfg.ServiceRegister)
	cfg.GRPCAdditionalServerOptions = append(slices.Clip(cfg.GRPCAdditionalServerOptions),
		grpc.ChainUnaryInterceptor(srv.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(s.ending.interceptor, srv.StreamServerInterceptor()),
	)
	return s, nil
}

// Start begins to watch e, which embed.StartEtcd returned for the attached
// config. It does not wait for e to be ready.
func (s *Shim) Start(e *embed.Etcd) error {
	if e == nil || e.Server == nil {
		return errors.New("servershim/inproc: Start needs an embed.Etcd that was started, got none: call it after embed.StartEtcd has succeeded")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errors.New("servershim/inproc: Start after Close: attach a new Shim")
	case s.started:
		return errors.New("servershim/inproc: Start was called twice: attach one Shim to each embed.Config")
	}
	s.started = true
	s.src.Source = inproc.NewSource(e.Server)
	s.wg.Go(func() { s.run(e) })
	return nil
}

// run watches etcd from when it is ready to when it stops.
func (s *Shim) run(e *embed.Etcd) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer s.srv.Stop()
	select {
	case <-e.Server.ReadyNotify():
	case <-e.Server.StoppingNotify():
		return
	case <-e.Server.StopNotify():
		return
	case <-s.ending.began:
		return
	case <-ctx.Done():
		return
	}
	s.wg.Go(func() {
		defer cancel()
		select {
		case <-e.Server.StoppingNotify():
		case <-e.Server.StopNotify():
		case <-s.ending.began:
		case <-ctx.Done():
		}
	})
	if err := s.core.Run(ctx); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = fmt.Errorf("servershim/inproc: %w", err)
	}
}

// Serve answers the health services on lis as well, and closes it in the end. It
// returns nil after Close, and an error when lis fails. opts may hold credentials.
func (s *Shim) Serve(lis net.Listener, opts ...grpc.ServerOption) error {
	gs := grpc.NewServer(opts...)
	healthpb.RegisterHealthServer(gs, s.srv)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errors.Join(errors.New("servershim/inproc: Serve after Close: attach a new Shim"), lis.Close())
	}
	one := served{gs, conns.Track(lis)}
	s.serving = append(s.serving, one)
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	if err := gs.Serve(one.lis); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("servershim/inproc: serve on %v: %w", lis.Addr(), err)
	}
	return nil
}

// Drain makes the member NOT_SERVING, reason draining, from now on. Give clients
// some seconds to leave before you close etcd.
func (s *Shim) Drain() { s.core.Drain() }

// Report returns the newest report.
func (s *Shim) Report() healthsvc.Report { return s.core.Report() }

// Close ends every stream and everything that the shim started; it does not close
// etcd. It returns within about a second, and may be called twice. While etcd itself
// closes and waits for streams of its own, one goroutine stays that ends with etcd's
// Close; a line in the log says so. An error says why the shim never watched: its
// metrics could not be registered.
func (s *Shim) Close() error {
	s.mu.Lock()
	s.closed = true
	serving := s.serving
	s.serving = nil
	s.mu.Unlock()
	s.cancel()
	s.srv.Stop()
	if !s.ending.close() {
		s.log.Warn("etcd waits for streams of its own as it closes; a goroutine of the shim stays until it has closed")
	}
	for _, one := range serving {
		one.lis.CloseConns() // Stop waits for those in their handshake
		one.server.Stop()
	}
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
