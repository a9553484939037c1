package relay

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// helloTimeout bounds how long a connection may stay mute before it has said
// who dialled. It is longer than any fault of the scenarios: a sender that is
// itself slow must not look like a broken one.
const helloTimeout = 30 * time.Second

// Dials says which node dialled a connection. What it had to read to find out is
// returned and carried first.
type Dials func(conn net.Conn) (from string, read []byte, err error)

// From is for a door that only one node uses.
func From(node string) Dials {
	return func(net.Conn) (string, []byte, error) { return node, nil, nil }
}

// FromServerName is for a door that several nodes share: each presents its own
// name as the server name of its TLS hello. The connection stays end to end
// encrypted; only the hello is read.
func FromServerName() Dials {
	return func(conn net.Conn) (string, []byte, error) {
		if err := conn.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
			return "", nil, err
		}
		var read bytes.Buffer
		name, err := serverName(io.TeeReader(conn, &read))
		if err != nil {
			return "", nil, err
		}
		return name, read.Bytes(), conn.SetReadDeadline(time.Time{})
	}
}

var errHelloRead = errors.New("hello read")

// serverName reads one TLS hello from r and returns the server name in it.
func serverName(r io.Reader) (string, error) {
	var name string
	err := tls.Server(muteConn{r: r}, &tls.Config{
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name = hello.ServerName
			return nil, errHelloRead
		},
	}).Handshake()
	if !errors.Is(err, errHelloRead) {
		return "", fmt.Errorf("relay: no TLS hello: %w", err)
	}
	if name == "" {
		return "", errors.New("relay: TLS hello without a server name: the dialling node cannot be told")
	}
	return name, nil
}

// muteConn lets crypto/tls parse a hello without answering it.
type muteConn struct{ r io.Reader }

func (c muteConn) Read(p []byte) (int, error)       { return c.r.Read(p) }
func (c muteConn) Write(p []byte) (int, error)      { return len(p), nil }
func (c muteConn) Close() error                     { return nil }
func (c muteConn) LocalAddr() net.Addr              { return nil }
func (c muteConn) RemoteAddr() net.Addr             { return nil }
func (c muteConn) SetDeadline(time.Time) error      { return nil }
func (c muteConn) SetReadDeadline(time.Time) error  { return nil }
func (c muteConn) SetWriteDeadline(time.Time) error { return nil }
