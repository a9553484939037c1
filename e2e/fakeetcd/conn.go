package fakeetcd

import (
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc/test/bufconn"
)

// pipeSize is what one direction of a connection holds before its writer blocks, as a socket's
// buffers would.
const pipeSize = 64 << 10

// conn is one end of a connection whose bytes pass gates. While the link is shut, bytes and the
// end of the connection do not arrive: they do when it opens, as TCP would retransmit them.
type conn struct {
	net.Conn
	link    *gate // between client and member
	process *gate // of the member, nil at the client's end: a stopped process neither reads nor writes

	once   sync.Once
	closed chan struct{}
	onEnd  func(*conn)
}

func newConn(inner net.Conn, link, process *gate, onEnd func(*conn)) *conn {
	return &conn{Conn: inner, link: link, process: process, closed: make(chan struct{}), onEnd: onEnd}
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.link.pass(c.closed) || c.process != nil && !c.process.pass(c.closed) {
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	if c.process != nil && !c.process.pass(c.closed) {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Write(b)
	if err != nil && c.link.isShut() && !c.over() {
		return len(b), nil // that the other end has gone is not known here yet
	}
	return n, err
}

// over reports whether this end was closed by its owner.
func (c *conn) over() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		if c.onEnd != nil {
			c.onEnd(c)
		}
	})
	return c.Conn.Close()
}

// port is one address of a member: it accepts while a server listens on it.
type port struct {
	address string
	link    *gate
	process gate

	mu       sync.Mutex
	listener *bufconn.Listener // nil: connections are refused
	conns    map[*conn]struct{}
}

func newPort(address string, link *gate) *port {
	return &port{address: address, link: link, conns: make(map[*conn]struct{})}
}

// listen opens the port.
func (p *port) listen() net.Listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = bufconn.Listen(pipeSize)
	return acceptor{Listener: p.listener, port: p}
}

// refuse closes the port; connections stay.
func (p *port) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
}

// reset closes every connection.
func (p *port) reset() {
	p.mu.Lock()
	open := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		open = append(open, c)
	}
	p.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

func (p *port) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// open returns the number of connections that the member still has.
func (p *port) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// dial connects a client. It hangs while the link is shut.
func (p *port) dial(ctx context.Context) (net.Conn, error) {
	if !p.link.pass(ctx.Done()) {
		return nil, fmt.Errorf("dial %s: %w", p.address, context.Cause(ctx))
	}
	p.mu.Lock()
	listener := p.listener
	p.mu.Unlock()
	if listener == nil {
		return nil, fmt.Errorf("dial %s: connection refused", p.address)
	}
	inner, err := listener.DialContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", p.address, err)
	}
	return newConn(inner, p.link, nil, nil), nil
}

// acceptor hands the server its ends of the connections, behind their gates.
type acceptor struct {
	*bufconn.Listener
	port *port
}

func (a acceptor) Accept() (net.Conn, error) {
	inner, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := newConn(inner, a.port.link, &a.port.process, a.port.forget)
	a.port.mu.Lock()
	defer a.port.mu.Unlock()
	a.port.conns[c] = struct{}{}
	return c, nil
}
