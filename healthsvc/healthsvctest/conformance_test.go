package healthsvctest

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quorumwise/quorumwise/healthsvc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial serves srv over bufconn and returns a connection to it.
func dial(t *testing.T, srv *grpc.Server) *grpc.ClientConn {
	t.Helper()
	lis := bufconn.Listen(1 << 16)
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(lis) })
	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatalf("grpc.NewClient: %v", err)
	}
	t.Cleanup(func() {
		conn.Close()
		srv.Stop()
		serving.Wait()
	})
	return conn
}

func TestServerBesideEtcdConforms(t *testing.T) {
	RunServer(t, func(t *testing.T) Server {
		srv, g := healthsvc.NewServer(healthsvc.ServerOptions{EmptyName: true, Validity: time.Hour}), grpc.NewServer()
		healthpb.RegisterHealthServer(g, srv)
		return Server{Conn: dial(t, g), Publish: srv.Publish, Stop: srv.Stop}
	})
}

func TestServerInEtcdsProcessConforms(t *testing.T) {
	RunServer(t, func(t *testing.T) Server {
		srv := healthsvc.NewServer(healthsvc.ServerOptions{})
		g := grpc.NewServer(
			grpc.ChainUnaryInterceptor(srv.UnaryServerInterceptor()),
			grpc.ChainStreamInterceptor(srv.StreamServerInterceptor()))
		healthpb.RegisterHealthServer(g, health.NewServer())
		return Server{Conn: dial(t, g), Publish: srv.Publish, Stop: srv.Stop}
	})
}

func TestRunPassesAConformingServer(t *testing.T) {
	Run(t, func(t *testing.T) (grpc.ClientConnInterface, func(healthsvc.Report)) {
		srv, g := healthsvc.NewServer(healthsvc.ServerOptions{}), grpc.NewServer()
		healthpb.RegisterHealthServer(g, srv)
		return dial(t, g), srv.Publish
	})
}

// faulty is a conforming server with one fault planted. Nil functions leave the right answer.
type faulty struct {
	*healthsvc.Server
	check   func(context.Context, *healthpb.HealthCheckRequest, *healthpb.HealthCheckResponse, error) (*healthpb.HealthCheckResponse, error)
	list    func(*healthpb.HealthListResponse)
	watch   func(*healthpb.HealthCheckRequest, healthpb.Health_WatchServer) (healthpb.Health_WatchServer, error)
	header  func(metadata.MD)
	publish func(publish func(healthsvc.Report), r healthsvc.Report)
	stop    func()
}

func (f *faulty) Check(ctx context.Context, req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	resp, err := f.Server.Check(f.faultyHeaders(ctx), req)
	if f.check != nil {
		return f.check(ctx, req, resp, err)
	}
	return resp, err
}

func (f *faulty) List(ctx context.Context, req *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	resp, err := f.Server.List(f.faultyHeaders(ctx), req)
	if f.list != nil && err == nil {
		f.list(resp)
	}
	return resp, err
}

func (f *faulty) Watch(req *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	if f.header != nil {
		stream = &headerWatch{stream, f.header}
	}
	if f.watch != nil {
		s, err := f.watch(req, stream)
		if err != nil || s == nil {
			return err
		}
		stream = s
	}
	return f.Server.Watch(req, stream)
}

func (f *faulty) Publish(r healthsvc.Report) {
	if f.publish != nil {
		f.publish(f.Server.Publish, r)
		return
	}
	f.Server.Publish(r)
}

// headerWatch and headerCall let a fault see headers before they are sent.
type headerWatch struct {
	healthpb.Health_WatchServer
	fault func(metadata.MD)
}

func (h *headerWatch) SetHeader(md metadata.MD) error {
	h.fault(md)
	return h.Health_WatchServer.SetHeader(md)
}

type headerCall struct {
	grpc.ServerTransportStream
	fault func(metadata.MD)
}

func (h *headerCall) SetHeader(md metadata.MD) error {
	h.fault(md)
	return h.ServerTransportStream.SetHeader(md)
}

func (f *faulty) faultyHeaders(ctx context.Context) context.Context {
	if f.header == nil {
		return ctx
	}
	return grpc.NewContextWithServerTransportStream(ctx, &headerCall{grpc.ServerTransportStreamFromContext(ctx), f.header})
}

// sendFault wraps a stream whose messages pass through send.
type sendFault struct {
	healthpb.Health_WatchServer
	send func(next func(*healthpb.HealthCheckResponse) error, m *healthpb.HealthCheckResponse) error
}

func (s *sendFault) Send(m *healthpb.HealthCheckResponse) error {
	return s.send(s.Health_WatchServer.Send, m)
}

func TestSuiteCatchesPlantedFaults(t *testing.T) {
	without := func(key string) func(metadata.MD) {
		return func(md metadata.MD) { delete(md, key) }
	}
	replaced := func(key, value string) func(metadata.MD) {
		return func(md metadata.MD) {
			if _, ok := md[key]; ok {
				md[key] = []string{value}
			}
		}
	}
	watchOf := func(send func(func(*healthpb.HealthCheckResponse) error, *healthpb.HealthCheckResponse) error) func(*healthpb.HealthCheckRequest, healthpb.Health_WatchServer) (healthpb.Health_WatchServer, error) {
		return func(_ *healthpb.HealthCheckRequest, s healthpb.Health_WatchServer) (healthpb.Health_WatchServer, error) {
			return &sendFault{s, send}, nil
		}
	}
	tests := []struct {
		fault  string
		plant  func(*faulty)
		caught string // name of a check that must fail
	}{
		{"serving before the first report", func(f *faulty) { f.Server.Publish(sample()) }, "starts not serving except live"},
		{"leader mixed up with quorum", func(f *faulty) {
			f.publish = func(publish func(healthsvc.Report), r healthsvc.Report) { r.Leads = r.Quorum; publish(r) }
		}, "each service follows its own facet"},
		{"live follows serving", func(f *faulty) {
			f.check = func(ctx context.Context, req *healthpb.HealthCheckRequest, resp *healthpb.HealthCheckResponse, err error) (*healthpb.HealthCheckResponse, error) {
				if req.GetService() == healthsvc.ServiceLive {
					return f.Server.Check(ctx, &healthpb.HealthCheckRequest{Service: healthsvc.ServiceServing})
				}
				return resp, err
			}
		}, "live serves whatever is published"},
		{"a name is missing from the list", func(f *faulty) {
			f.list = func(l *healthpb.HealthListResponse) { delete(l.Statuses, healthsvc.ServiceVoter) }
		}, "list agrees with check"},
		{"the list is of yesterday", func(f *faulty) {
			f.list = func(l *healthpb.HealthListResponse) {
				l.Statuses[healthsvc.ServiceRead] = &healthpb.HealthCheckResponse{Status: notServing}
			}
		}, "list agrees with check"},
		{"unknown names are not serving", func(f *faulty) {
			f.check = func(_ context.Context, _ *healthpb.HealthCheckRequest, resp *healthpb.HealthCheckResponse, err error) (*healthpb.HealthCheckResponse, error) {
				if status.Code(err) == codes.NotFound {
					return &healthpb.HealthCheckResponse{Status: notServing}, nil
				}
				return resp, err
			}
		}, "unknown names are unknown"},
		{"unknown names end the watch", func(f *faulty) {
			f.watch = func(req *healthpb.HealthCheckRequest, s healthpb.Health_WatchServer) (healthpb.Health_WatchServer, error) {
				if req.GetService() == "etcd.nonsense" {
					_ = s.Send(&healthpb.HealthCheckResponse{Status: unknown})
					return nil, status.Error(codes.NotFound, "planted")
				}
				return s, nil
			}
		}, "unknown names are unknown"},
		{"no member id", func(f *faulty) { f.header = without(healthsvc.HeaderMemberID) }, "check carries the headers"},
		{"decimal cluster id on watches", func(f *faulty) {
			f.header = replaced(healthsvc.HeaderClusterID, "14841639068965178418")
		}, "watch carries the headers"},
		{"no term on the list", func(f *faulty) { f.header = without(healthsvc.HeaderRaftTerm) }, "list carries the headers"},
		{"a leader is made up", func(f *faulty) {
			f.publish = func(publish func(healthsvc.Report), r healthsvc.Report) { r.Leader = max(r.Leader, 1); publish(r) }
		}, "unknown identity has no headers"},
		{"proof age stands still", func(f *faulty) { f.header = replaced(healthsvc.HeaderProofAge, "0") }, "proof age is of the answer"},
		{"proof age is negative", func(f *faulty) { f.header = replaced(healthsvc.HeaderProofAge, "-3600000") }, "proof age is of the answer"},
		{"a strange reason costs the headers", func(f *faulty) {
			f.publish = func(publish func(healthsvc.Report), r healthsvc.Report) {
				if len(r.Reason) > 20 {
					r.Identity = healthsvc.Identity{}
				}
				publish(r)
			}
		}, "a strange reason costs nothing else"},
		{"late watchers wait for a change", func(f *faulty) {
			f.watch = func(_ *healthpb.HealthCheckRequest, s healthpb.Health_WatchServer) (healthpb.Health_WatchServer, error) {
				begun := false
				return &sendFault{s, func(next func(*healthpb.HealthCheckResponse) error, m *healthpb.HealthCheckResponse) error {
					if !begun {
						begun = true
						return nil
					}
					return next(m)
				}}, nil
			}
		}, "watch begins with the present status"},
		{"good news is not pushed", func(f *faulty) {
			f.watch = watchOf(func(next func(*healthpb.HealthCheckResponse) error, m *healthpb.HealthCheckResponse) error {
				if m.GetStatus() == serving {
					return nil
				}
				return next(m)
			})
		}, "watch pushes transitions in order"},
		{"every push comes twice", func(f *faulty) {
			f.watch = watchOf(func(next func(*healthpb.HealthCheckResponse) error, m *healthpb.HealthCheckResponse) error {
				_ = next(m)
				return next(m)
			})
		}, "watch does not repeat itself"},
		{"the last of many is lost", func(f *faulty) {
			f.watch = func(_ *healthpb.HealthCheckRequest, s healthpb.Health_WatchServer) (healthpb.Health_WatchServer, error) {
				sent := 0
				return &sendFault{s, func(next func(*healthpb.HealthCheckResponse) error, m *healthpb.HealthCheckResponse) error {
					if sent++; sent > 1 {
						return nil
					}
					return next(m)
				}}, nil
			}
		}, "a slow watcher gets the latest"},
		{"one watcher's leaving silences the others", func(f *faulty) {
			left := make(chan struct{})
			leave := sync.OnceFunc(func() { close(left) })
			f.watch = func(_ *healthpb.HealthCheckRequest, s healthpb.Health_WatchServer) (healthpb.Health_WatchServer, error) {
				context.AfterFunc(s.Context(), leave)
				return &sendFault{s, func(next func(*healthpb.HealthCheckResponse) error, m *healthpb.HealthCheckResponse) error {
					if m.GetStatus() == serving { // published after one has left
						<-left
						return nil
					}
					return next(m)
				}}, nil
			}
		}, "watchers are independent"},
		{"headers are a report behind", func(f *faulty) {
			var mu sync.Mutex
			term := uint64(1)
			f.publish = func(publish func(healthsvc.Report), r healthsvc.Report) {
				mu.Lock()
				r.Term, term = term, r.Term
				mu.Unlock()
				publish(r)
			}
		}, "one answer speaks of one report"},
		{"stop ends nothing", func(f *faulty) { f.stop = func() {} }, "stop ends watches and checks"},
		{"stop ends watches cleanly", func(f *faulty) {
			ended := make(chan struct{})
			f.stop = sync.OnceFunc(func() { close(ended) })
			f.watch = func(_ *healthpb.HealthCheckRequest, s healthpb.Health_WatchServer) (healthpb.Health_WatchServer, error) {
				_ = s.Send(&healthpb.HealthCheckResponse{Status: serving})
				<-ended
				return nil, nil
			}
		}, "stop ends watches and checks"},
	}
	covered := make(map[string]bool)
	for _, tt := range tests {
		covered[tt.caught] = true
		t.Run(strings.ReplaceAll(tt.fault, " ", "_"), func(t *testing.T) {
			t.Parallel()
			f := &faulty{Server: healthsvc.NewServer(healthsvc.ServerOptions{})}
			f.stop = f.Server.Stop
			tt.plant(f)
			g := grpc.NewServer()
			healthpb.RegisterHealthServer(g, f)
			conn := dial(t, g)
			for _, c := range checks {
				if c.name != tt.caught {
					continue
				}
				// Faults that show as silence cost this long.
				err := c.try(t.Context(), Server{Conn: conn, Publish: f.Publish, Stop: f.stop}, 400*time.Millisecond)
				if err == nil {
					t.Fatalf("check %q passed a server with the fault %q, want it caught", c.name, tt.fault)
				}
				t.Log(err)
				return
			}
			t.Fatalf("no check is named %q", tt.caught)
		})
	}
	for _, c := range checks {
		if !covered[c.name] {
			t.Errorf("check %q has no planted fault: nobody knows whether it can fail", c.name)
		}
	}
}
