package healthsvctest

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// patience bounds one check of the suite; a server that keeps to the contract needs milliseconds,
// and more only on a machine that is busy with other things.
const patience = 30 * time.Second

// Server is a server under test.
type Server struct {
	Conn    grpc.ClientConnInterface // leads to the server
	Publish func(healthsvc.Report)   // gives the server its next report
	Stop    func()                   // ends the health services, not the gRPC server; nil: not checked
}

// Run puts servers made by newServer through the suite, a new one for each check. newServer
// registers its own clean-up with t.
func Run(t *testing.T, newServer func(t *testing.T) (conn grpc.ClientConnInterface, publish func(healthsvc.Report))) {
	t.Helper()
	RunServer(t, func(t *testing.T) Server {
		conn, publish := newServer(t)
		return Server{Conn: conn, Publish: publish}
	})
}

// RunServer is Run for servers that can be stopped.
func RunServer(t *testing.T, newServer func(t *testing.T) Server) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			srv := newServer(t)
			if c.stops && srv.Stop == nil {
				t.Log("not checked: this server cannot be stopped")
				return
			}
			if err := c.try(t.Context(), srv, patience); err != nil {
				t.Error(err)
			}
		})
	}
}

// check is one clause of the contract.
type check struct {
	name  string // the clause, as a test's name
	stops bool   // needs Server.Stop
	run   func(*session) error
}

// try runs the check against srv, for at most limit.
func (c check) try(ctx context.Context, srv Server, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return c.run(&session{
		ctx:     ctx,
		client:  healthpb.NewHealthClient(srv.Conn),
		publish: srv.Publish,
		stop:    srv.Stop,
	})
}
