package inproc

import (
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// ending finds out that etcd begins to stop. etcd tells its own parts only after
// it has waited for open streams, which would be too late for ours:
//
//   - On a plain listener it calls grpc.Server.GracefulStop, which closes the
//     listeners first and waits for streams then. So a listener of ours, on which
//     nobody can connect, is served as well, and its Close is the sign.
//   - On a TLS listener shared with HTTP gRPC runs under a http.Server, whose
//     Shutdown tells those who asked it to. Our streams meet that server in their
//     contexts.
//
// Both are set up when the first stream that would keep etcd waiting is opened:
// by then every service has been registered, which grpc forbids once it serves.
type ending struct {
	began chan struct{} // closed when etcd begins to stop
	fire  func()        // closes began and ends our streams, once

	mu      sync.Mutex
	closed  bool
	waiting []*grpc.Server // registered, not served on a quiet listener yet
	quiet   []*quietListener
	told    map[*http.Server]struct{}
}

func newEnding(stop func()) *ending {
	e := &ending{began: make(chan struct{}), told: make(map[*http.Server]struct{})}
	e.fire = sync.OnceFunc(func() {
		close(e.began)
		stop()
	})
	return e
}

// register returns what embed.Config.ServiceRegister shall be, for each gRPC
// server that etcd makes.
func (e *ending) register(before func(*grpc.Server)) func(*grpc.Server) {
	return func(gs *grpc.Server) {
		if before != nil {
			before(gs)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.waiting = append(e.waiting, gs)
	}
}

// interceptor sees every stream before it is answered.
func (e *ending) interceptor(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if info.FullMethod == healthpb.Health_Watch_FullMethodName {
		hs, _ := stream.Context().Value(http.ServerContextKey).(*http.Server)
		e.watch(hs)
	}
	return handler(srv, stream)
}

// watch makes sure that the end of the server of a stream will be noticed. hs is
// nil on a listener that gRPC serves by itself.
func (e *ending) watch(hs *http.Server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if hs != nil {
		if _, done := e.told[hs]; !done {
			e.told[hs] = struct{}{}
			hs.RegisterOnShutdown(e.fire)
		}
		return
	}
	for _, gs := range e.waiting {
		quiet := &quietListener{closed: make(chan struct{}), served: make(chan struct{}), fire: e.fire}
		e.quiet = append(e.quiet, quiet)
		go func() {
			defer close(quiet.served)
			_ = gs.Serve(quiet) // its end is the news, not its error
		}()
	}
	e.waiting = nil
}

// close takes the quiet listeners away again, and waits until they are no longer served, for a
// second at most; it reports whether they are not. A server that is being stopped lets go of a
// listener only with its last stream, and of those that are etcd's we know nothing.
func (e *ending) close() bool {
	e.mu.Lock()
	e.closed = true
	quiet := e.quiet
	e.mu.Unlock()
	for _, l := range quiet {
		_ = l.Close()
	}
	late := time.NewTimer(time.Second)
	defer late.Stop()
	for _, l := range quiet {
		select {
		case <-l.served:
		case <-late.C:
			return false
		}
	}
	return true
}

// quietListener accepts nobody, and tells when it is closed.
type quietListener struct {
	once   sync.Once
	closed chan struct{}
	served chan struct{} // closed when it is served no longer
	fire   func()
}

// Accept waits for Close.
func (l *quietListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *quietListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.fire()
	})
	return nil
}

// Addr implements net.Listener.
func (l *quietListener) Addr() net.Addr { return quietAddr{} }

type quietAddr struct{}

func (quietAddr) Network() string { return "none" }
func (quietAddr) String() string  { return "quorumwise-ending" }
