package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/servershim"
	"github.com/quorumwise/quorumwise/servershim/inproc"
	"github.com/quorumwise/quorumwise/servershim/sidecar"
)

// drainTime is how long a stopped shim says that it is draining. Short, because
// scenarios that stop a shim in order look at the clients and not at the shim.
const drainTime = 500 * time.Millisecond

// shim is one running shim.
type shim interface {
	stop() error // in order: it says that it leaves
	kill() error // as SIGKILL does: connections end without a word
}

// StartShim runs the shim beside a running member whose shim was stopped or killed.
// The in-process kind comes with its member only.
func (m *Member) StartShim() error {
	m.life.Lock()
	defer m.life.Unlock()
	m.mu.Lock()
	running := m.shim != nil
	m.mu.Unlock()
	if running || !m.cluster.cfg.Shim.standsBeside() {
		return nil
	}
	return m.runShim()
}

// KillShim ends the shim beside the member the way SIGKILL does. The member does
// not notice.
func (m *Member) KillShim() error {
	m.life.Lock()
	defer m.life.Unlock()
	s := m.takeShim()
	if s == nil {
		return nil
	}
	m.cluster.cfg.Logger.Info("shim killed", "member", m.name)
	return s.kill()
}

func (m *Member) endShim() error {
	if s := m.takeShim(); s != nil {
		return s.stop()
	}
	return nil
}

func (m *Member) takeShim() shim {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.shim
	m.shim = nil
	return s
}

func (m *Member) setShim(s shim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shim = s
}

// runShim starts a shim with a port of its own.
func (m *Member) runShim() error {
	lis, err := net.Listen("tcp", m.shimAddr)
	if err != nil {
		return fmt.Errorf("cluster: shim of %s: %w", m.name, err)
	}
	port := &port{Listener: lis, conns: make(map[net.Conn]struct{})}
	var s shim
	if m.cluster.cfg.Shim == ShimLying {
		s = runLiar(port)
	} else if s, err = runSidecar(port, m.clientAddr, m.cluster.cfg); err != nil {
		return errors.Join(fmt.Errorf("cluster: shim of %s: %w", m.name, err), lis.Close())
	}
	m.setShim(s)
	m.cluster.cfg.Logger.Info("shim started", "member", m.name, "kind", m.cluster.cfg.Shim)
	return nil
}

// inside is a shim in the member's own process and on its client port.
type inside struct{ *inproc.Shim }

func (i inside) stop() error { return i.Close() }
func (i inside) kill() error { return i.Close() } // it cannot die without its member

// attachShim prepares cfg for a shim in process; nil when the cluster has another
// kind.
func (m *Member) attachShim(cfg *embed.Config) (*inside, error) {
	if m.cluster.cfg.Shim != ShimInProcess {
		return nil, nil
	}
	s, err := inproc.Attach(cfg, servershim.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return &inside{s}, nil
}

// beside is a sidecar in a goroutine of its own.
type beside struct {
	port   *port
	cancel context.CancelFunc
	done   chan error
}

func runSidecar(port *port, etcd string, cfg Config) (shim, error) {
	side, err := sidecar.New(sidecar.Config{
		EtcdEndpoint:    "http://" + etcd,
		Listener:        port,
		ElectionTimeout: cfg.Election,
		DrainTime:       drainTime,
		Logger:          slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &beside{port: port, cancel: cancel, done: make(chan error, 1)}
	go func() { b.done <- side.Run(ctx) }()
	return b, nil
}

func (b *beside) stop() error {
	b.cancel()
	return <-b.done
}

func (b *beside) kill() error {
	b.port.kill()
	b.cancel()
	<-b.done // whatever a server says whose listener was taken away
	return nil
}

// liar serves the health contract and says no to everything.
type liar struct {
	port   *port
	server *grpc.Server
	done   chan struct{}
}

func runLiar(port *port) shim {
	health := healthsvc.NewServer(healthsvc.ServerOptions{EmptyName: true})
	health.Publish(healthsvc.Report{Reason: healthsvc.ReasonNoQuorum})
	l := &liar{port: port, server: grpc.NewServer(), done: make(chan struct{})}
	healthpb.RegisterHealthServer(l.server, health)
	go func() {
		defer close(l.done)
		l.server.Serve(port)
	}()
	return l
}

func (l *liar) stop() error {
	l.server.Stop()
	<-l.done
	return nil
}

func (l *liar) kill() error {
	l.port.kill()
	return l.stop()
}

// port is a listener that can take everything away at once.
type port struct {
	net.Listener

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	killed bool
}

// Accept waits for a connection.
func (p *port) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		conn.Close()
		return nil, net.ErrClosed
	}
	p.conns[conn] = struct{}{}
	return &ported{Conn: conn, port: p}, nil
}

func (p *port) kill() {
	p.Listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	for conn := range p.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		conn.Close()
	}
}

// ported is a connection that its port forgets when it is closed.
type ported struct {
	net.Conn
	port *port
}

// Close closes the connection.
func (c *ported) Close() error {
	c.port.mu.Lock()
	delete(c.port.conns, c.Conn)
	c.port.mu.Unlock()
	return c.Conn.Close()
}
