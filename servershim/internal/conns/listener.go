package conns

import (
	"net"
	"sync"
)

// Listener is a listener whose connections can all be closed at once.
type Listener struct {
	net.Listener

	mu     sync.Mutex
	closed bool
	open   map[*conn]struct{}
}

// Track returns a listener that knows the connections that lis accepts from now on.
func Track(lis net.Listener) *Listener {
	return &Listener{Listener: lis, open: make(map[*conn]struct{})}
}

// Accept implements net.Listener. After CloseConns it gives out no more, and ends with the listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := (&conn{Conn: accepted, of: l}); l.keep(c) {
			return c, nil
		}
		accepted.Close()
	}
}

// keep reports false when everything is to be closed.
func (l *Listener) keep(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.open[c] = struct{}{}
	return true
}

// CloseConns closes what is open, and what is accepted from now on.
func (l *Listener) CloseConns() {
	l.mu.Lock()
	l.closed = true
	open := l.open
	l.open = nil
	l.mu.Unlock()
	for c := range open {
		c.Conn.Close()
	}
}

// conn is a connection that its listener knows of while it is open.
type conn struct {
	net.Conn
	of *Listener
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
