package prober

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
)

// wire hands out the raw connection under a ClientConn, so that it can be closed first.
// gRPC's own Close waits up to 5 s for a farewell to be written, on a connection whose other
// end no longer reads: longer than a probe may take to end or to replace it. Handshakes are
// the one place where gRPC shows the connection whatever the dialer.
type wire struct {
	credentials.TransportCredentials
	end *wireEnd
}

// wireEnd is shared by the clones of one wire.
type wireEnd struct {
	mu     sync.Mutex
	conn   net.Conn // the newest; one ClientConn to one address has one at a time
	closed bool
}

func newWire(creds credentials.TransportCredentials) wire {
	return wire{creds, &wireEnd{}}
}

// ClientHandshake implements credentials.TransportCredentials.
func (w wire) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	w.end.hold(raw)
	return w.TransportCredentials.ClientHandshake(ctx, authority, raw)
}

// Clone implements credentials.TransportCredentials.
func (w wire) Clone() credentials.TransportCredentials {
	return wire{w.TransportCredentials.Clone(), w.end}
}

func (e *wireEnd) hold(raw net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conn = raw
	if e.closed {
		raw.Close()
	}
}

// cut closes the connection, and any that is still being made.
func (e *wireEnd) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.conn != nil {
		e.conn.Close()
	}
}
