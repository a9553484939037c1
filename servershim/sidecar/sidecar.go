package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
	"github.com/quorumwise/quorumwise/servershim"
	"github.com/quorumwise/quorumwise/servershim/internal/conns"
)

// maxStreams bounds the calls and watches that one connection may have open at once; more of them
// wait in the client. A client needs one watch and one poll at a time, a proxy that joins many clients
// in one connection some hundreds; each costs us a goroutine and some kilobytes.
const maxStreams = 1000

// stopGrace is what connections get to end by themselves after their streams were ended.
const stopGrace = time.Second

// Sidecar is one shim with its listener and its connection to etcd.
type Sidecar struct {
	cfg     Config
	lis     *conns.Listener
	metrics *metricsServer // nil: none
	conn    *grpc.ClientConn
	shim    *servershim.Shim
	server  *grpc.Server
}

// New validates cfg, reads its files and opens its addresses; an error names the flag, its value
// and what is allowed. The Sidecar must be Run.
func New(cfg Config) (_ *Sidecar, err error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Sidecar{cfg: cfg}
	defer func() {
		if err != nil {
			s.abandon()
		}
	}()
	creds, err := cfg.serverCredentials()
	if err != nil {
		return nil, err
	}
	if s.conn, err = cfg.dial(); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, s.build(creds)
}

// dial makes the connection to etcd, without waiting for it. It is made again within a second
// whenever it breaks: etcd is near, and we are of no use without it.
func (c Config) dial() (*grpc.ClientConn, error) {
	endpoint, err := c.etcd()
	if err != nil {
		return nil, err
	}
	creds := insecure.NewCredentials()
	if endpoint.TLS {
		if creds, err = ClientCredentials(c.CACert, c.Cert, c.Key, c.Logger); err != nil {
			return nil, err
		}
	}
	conn, err := grpc.NewClient(endpoint.Target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent("quorumshim"),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
	}, c.DialOptions...)...)
	if err != nil {
		return nil, flagError("etcd-endpoint", c.EtcdEndpoint, fmt.Sprintf("cannot be dialled: %v: want for example http://127.0.0.1:2379", err))
	}
	return conn, nil
}

func (s *Sidecar) open() (err error) {
	lis := s.cfg.Listener
	if lis == nil {
		if lis, err = listen("listen", s.cfg.Listen); err != nil {
			return err
		}
	}
	s.lis = conns.Track(lis)
	if s.cfg.MetricsListen != "" {
		lis, err := listen("metrics-listen", s.cfg.MetricsListen)
		if err != nil {
			return err
		}
		s.metrics = newMetricsServer(lis)
	}
	return nil
}

func (s *Sidecar) build(creds credentials.TransportCredentials) (err error) {
	var registerer prometheus.Registerer
	if s.metrics != nil {
		registerer = s.metrics.registry
	}
	var opts []membership.RemoteOption
	if s.cfg.User != "" {
		opts = append(opts, membership.WithUser(s.cfg.User, s.cfg.Password))
	}
	health := healthsvc.NewServer(healthsvc.ServerOptions{EmptyName: true, Validity: servershim.Validity(s.cfg.interval())})
	s.shim, err = servershim.New(membership.NewRemote(s.conn, opts...), health, servershim.Config{
		Interval: s.cfg.Interval, WindowFloor: s.cfg.WindowFloor, ElectionTimeout: s.cfg.ElectionTimeout,
		Logger: s.cfg.Logger, Registerer: registerer,
	})
	if err != nil {
		return fmt.Errorf("--proof-interval %v, --window %v, --election-timeout %v: %w", s.cfg.Interval, s.cfg.WindowFloor, s.cfg.ElectionTimeout, err)
	}
	s.server = newServer(creds)
	healthpb.RegisterHealthServer(s.server, health)
	return nil
}

// newServer is permissive towards clients' keepalive, since a refused ping costs them the
// connection and, for a while, all news; and strict with what a health client never needs.
func newServer(creds credentials.TransportCredentials) *grpc.Server {
	opts := []grpc.ServerOption{
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}), // the dead do not stay watchers
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.MaxRecvMsgSize(64 << 10),
		grpc.MaxConcurrentStreams(maxStreams),
	}
	if creds != nil {
		opts = append(opts, grpc.Creds(creds))
	}
	return grpc.NewServer(opts...)
}

// abandon gives back what New has opened when it fails. The caller's Listener stays the caller's.
func (s *Sidecar) abandon() {
	if s.lis != nil && s.cfg.Listener == nil {
		s.lis.Close()
	}
	if s.metrics != nil {
		s.metrics.lis.Close()
	}
	if s.conn != nil {
		s.conn.Close()
	}
}

// Addr is the address of the listener.
func (s *Sidecar) Addr() net.Addr { return s.lis.Addr() }

// MetricsAddr is the address of /metrics, nil without.
func (s *Sidecar) MetricsAddr() net.Addr {
	if s.metrics == nil {
		return nil
	}
	return s.metrics.lis.Addr()
}

// Run serves until ctx ends, then drains, stops and returns nil. It returns an error only if a
// listener failed. Everything that New opened is closed when it returns.
func (s *Sidecar) Run(ctx context.Context) error {
	shimCtx, stopShim := context.WithCancel(context.WithoutCancel(ctx))
	defer stopShim()
	failed := make(chan error, 3) // one for each of those below, so that none of them waits
	var running sync.WaitGroup
	running.Go(func() { failed <- s.shim.Run(shimCtx) })
	running.Go(func() { failed <- s.server.Serve(s.lis) })
	if s.metrics != nil {
		running.Go(func() { failed <- s.metrics.server.Serve(s.metrics.lis) })
	}
	about := []any{"address", s.lis.Addr(), "etcd", s.conn.Target()}
	if s.metrics != nil {
		about = append(about, "metrics", s.MetricsAddr())
	}
	s.cfg.Logger.Info("listening", about...)

	err := s.untilEnd(ctx, failed)
	stopShim() // ends the watches, so that the connections can end
	s.stop()
	running.Wait()
	return err
}

// untilEnd returns when there is no more to serve: drained, or broken.
func (s *Sidecar) untilEnd(ctx context.Context, failed <-chan error) error {
	select {
	case err := <-failed:
		return s.broken(err)
	case <-ctx.Done():
	}
	s.cfg.Logger.Info("draining", "for", s.cfg.DrainTime)
	s.shim.Drain()
	drained := time.NewTimer(s.cfg.DrainTime)
	defer drained.Stop()
	select {
	case err := <-failed:
		return s.broken(err)
	case <-drained.C:
		return nil
	}
}

func (s *Sidecar) broken(err error) error {
	if err == nil || errors.Is(err, http.ErrServerClosed) {
		err = errors.New("closed from outside")
	}
	return fmt.Errorf("sidecar at %v: serving failed: %w", s.lis.Addr(), err)
}

// stop ends the servers, gracefully for as long as stopGrace.
func (s *Sidecar) stop() {
	force := time.AfterFunc(stopGrace, s.lis.CloseConns)
	s.server.GracefulStop() // waits for all connections, also those in their handshake
	force.Stop()
	if s.metrics != nil {
		s.metrics.server.Close()
	}
	s.conn.Close()
}

// Serve is New and Run.
func Serve(ctx context.Context, cfg Config) error {
	s, err := New(cfg)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}
