package sidecar

import (
	"net"
	"sync"
)

// closable is a listener whose connections can all be closed at once. grpc's Stop closes only those
// that have finished their handshake, and waits for the others: somebody who connects and says
// nothing would delay our end.
type closable struct {
	net.Listener

	mu     sync.Mutex
	closed bool
	conns  map[*tracked]struct{}
}

func newClosable(lis net.Listener) *closable {
	return &closable{Listener: lis, conns: make(map[*tracked]struct{})}
}

// Accept implements net.Listener.
func (c *closable) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	t := &tracked{Conn: conn, of: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	c.conns[t] = struct{}{}
	return t, nil
}

// closeConns closes what is open, and what is accepted from now on.
func (c *closable) closeConns() {
	c.mu.Lock()
	c.closed = true
	open := c.conns
	c.conns = nil
	c.mu.Unlock()
	for t := range open {
		t.Conn.Close()
	}
}

// tracked is a connection that its listener knows of while it is open.
type tracked struct {
	net.Conn
	of *closable
}

// Close implements net.Conn.
func (t *tracked) Close() error {
	t.of.mu.Lock()
	delete(t.of.conns, t)
	t.of.mu.Unlock()
	return t.Conn.Close()
}
