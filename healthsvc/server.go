package healthsvc

import (
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// ServerOptions configures a Server. The zero value works.
type ServerOptions struct {
	// EmptyName makes the empty service name mean etcd.serving, as fits a server of its own
	// beside etcd. Leave it false in etcd's process, where the empty name is etcd's.
	EmptyName bool
	// Validity is how old a report may be; an older one is answered NOT_SERVING with reason
	// stale, and Watch says so too. 0: reports never expire. Set it to several proof intervals.
	Validity time.Duration
}

// Server answers grpc.health.v1 for one member. Safe for concurrent use.
type Server struct {
	healthpb.UnimplementedHealthServer
	opts ServerOptions
}

// NewServer returns a server that knows nothing yet: NOT_SERVING with reason starting, except
// etcd.live.
func NewServer(opts ServerOptions) *Server { return &Server{opts: opts} }

// Publish replaces the report.
func (s *Server) Publish(r Report) {}

// Watchers returns the number of open Watch streams.
func (s *Server) Watchers() int { return 0 }

// Stop ends every Watch stream with Unavailable, and refuses later calls the same way. Idempotent.
func (s *Server) Stop() {}

// UnaryServerInterceptor answers Check for the names of the contract and adds them to List;
// everything else goes to the handler.
func (s *Server) UnaryServerInterceptor() grpc.UnaryServerInterceptor { return nil }

// StreamServerInterceptor answers Watch for the names of the contract; everything else goes to
// the handler.
func (s *Server) StreamServerInterceptor() grpc.StreamServerInterceptor { return nil }
