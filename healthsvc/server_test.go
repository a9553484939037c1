package healthsvc

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial serves g over bufconn and returns a connection to it.
func dial(t testing.TB, g *grpc.Server) *grpc.ClientConn {
	t.Helper()
	lis := bufconn.Listen(1 << 16)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(lis) })
	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatalf("grpc.NewClient: %v", err)
	}
	t.Cleanup(func() {
		conn.Close()
		g.Stop()
		serving.Wait()
	})
	return conn
}

// serve registers srv on a gRPC server of its own.
func serve(t testing.TB, srv healthpb.HealthServer) (*grpc.ClientConn, *grpc.Server) {
	t.Helper()
	g := grpc.NewServer()
	healthpb.RegisterHealthServer(g, srv)
	return dial(t, g), g
}

func checkOf(t testing.TB, conn grpc.ClientConnInterface, service string) (healthpb.HealthCheckResponse_ServingStatus, headers, error) {
	t.Helper()
	var md metadata.MD
	resp, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{Service: service}, grpc.Header(&md))
	return resp.GetStatus(), parseHeaders(md), err
}

func wantStatus(t *testing.T, conn grpc.ClientConnInterface, service string, want healthpb.HealthCheckResponse_ServingStatus, reason Reason, why string) {
	t.Helper()
	got, h, err := checkOf(t, conn, service)
	if err != nil || got != want || h.reason != reason {
		t.Errorf("Check(%q) = %v, reason %q, error %v; want %v, reason %q: %s", service, got, h.reason, err, want, reason, why)
	}
}

func watchOf(t *testing.T, conn grpc.ClientConnInterface, service string) healthpb.Health_WatchClient {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{Service: service})
	if err != nil {
		t.Fatalf("Watch(%q): %v", service, err)
	}
	return stream
}

func wantPush(t *testing.T, stream healthpb.Health_WatchClient, want healthpb.HealthCheckResponse_ServingStatus, why string) {
	t.Helper()
	resp, err := stream.Recv()
	if err != nil || resp.GetStatus() != want {
		t.Fatalf("next push = %v, %v; want %v: %s", resp.GetStatus(), err, want, why)
	}
}

const (
	wireServing    = healthpb.HealthCheckResponse_SERVING
	wireNotServing = healthpb.HealthCheckResponse_NOT_SERVING
	wireUnknown    = healthpb.HealthCheckResponse_SERVICE_UNKNOWN
)

func TestReportTooOldIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := NewServer(ServerOptions{Validity: time.Second})
		defer srv.Stop()
		conn, _ := serve(t, srv)
		time.Sleep(time.Minute)
		wantStatus(t, conn, ServiceServing, wireNotServing, ReasonStarting, "nothing was published, so nothing is stale")

		id := Identity{Cluster: 1, Member: 2, Term: 3}
		srv.Publish(Report{Identity: id, Serving: true, Quorum: true})
		stream := watchOf(t, conn, ServiceServing)
		wantPush(t, stream, wireServing, "fresh")
		time.Sleep(time.Second - time.Nanosecond)
		wantStatus(t, conn, ServiceServing, wireServing, "", "just valid")
		wantPushAfter(t, stream, wireNotServing, time.Nanosecond, "watchers hear of the expiry")
		wantStatus(t, conn, ServiceServing, wireNotServing, ReasonStale, "the shim's loop stands still")
		wantStatus(t, conn, ServiceQuorum, wireNotServing, ReasonStale, "all facets expire")
		wantStatus(t, conn, ServiceLive, wireServing, ReasonStale, "the process runs")
		if _, h, _ := checkOf(t, conn, ServiceServing); h.identity != id {
			t.Errorf("identity of a stale answer = %+v, want %+v", h.identity, id)
		}
		for range 10 {
			srv.Publish(Report{Identity: id, Serving: true})
			time.Sleep(900 * time.Millisecond)
			wantStatus(t, conn, ServiceServing, wireServing, "", "each report is valid anew")
		}
	})
}

func TestReportTooOldIsNotRepeatedWhenItsTimerIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := NewServer(ServerOptions{Validity: time.Second})
		conn, _ := serve(t, srv)
		srv.Publish(Report{Serving: true})
		srv.expiry.Stop() // as a starved process would not run it
		time.Sleep(time.Second)
		wantStatus(t, conn, ServiceServing, wireNotServing, ReasonStale, "who asks finds out without the timer")
	})
}

// wantPushAfter wants the next push to take exactly d; only in a bubble.
func wantPushAfter(t *testing.T, stream healthpb.Health_WatchClient, want healthpb.HealthCheckResponse_ServingStatus, d time.Duration, why string) {
	t.Helper()
	began := time.Now()
	wantPush(t, stream, want, why)
	if took := time.Since(began); took != d {
		t.Errorf("the push took %v, want %v: %s", took, d, why)
	}
}

func TestEmptyNameMeansServingBesideEtcd(t *testing.T) {
	srv := NewServer(ServerOptions{EmptyName: true})
	conn, _ := serve(t, srv)
	wantStatus(t, conn, "", wireNotServing, ReasonStarting, "not published yet")
	stream := watchOf(t, conn, "")
	wantPush(t, stream, wireNotServing, "not published yet")
	srv.Publish(Report{Serving: true})
	wantPush(t, stream, wireServing, "etcd.serving serves")
	wantStatus(t, conn, "", wireServing, "", "etcd.serving serves")
	list, err := healthpb.NewHealthClient(conn).List(t.Context(), &healthpb.HealthListRequest{})
	if got := list.GetStatuses()[""].GetStatus(); err != nil || got != wireServing {
		t.Errorf("List has the empty name as %v, %v; want SERVING", got, err)
	}
}

func TestEmptyNameIsUnknownElsewhere(t *testing.T) {
	conn, _ := serve(t, NewServer(ServerOptions{}))
	if _, _, err := checkOf(t, conn, ""); status.Code(err) != codes.NotFound {
		t.Errorf("Check of the empty name = %v, want NotFound: grpc's server says SERVING to it", err)
	}
	wantPush(t, watchOf(t, conn, ""), wireUnknown, "not ours to answer")
	list, err := healthpb.NewHealthClient(conn).List(t.Context(), &healthpb.HealthListRequest{})
	if _, ok := list.GetStatuses()[""]; ok || err != nil || len(list.GetStatuses()) != len(Services()) {
		t.Errorf("List = %v, %v; want exactly the services of the contract", list.GetStatuses(), err)
	}
}

func TestStopLetsGracefulStopEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := NewServer(ServerOptions{EmptyName: true, Validity: time.Second})
		conn, g := serve(t, srv)
		srv.Publish(Report{Serving: true})
		var streams []healthpb.Health_WatchClient
		strangers := []string{"nonsense", "etcd", "etcd.serving2"}
		for _, service := range slices.Concat(Services(), []string{""}, strangers) {
			stream := watchOf(t, conn, service)
			if _, err := stream.Recv(); err != nil {
				t.Fatalf("Watch(%q): %v", service, err)
			}
			streams = append(streams, stream)
		}
		if got, want := srv.Watchers(), len(streams)-len(strangers); got != want {
			t.Errorf("Watchers() = %d with %d streams open, want %d: unknown names must not stretch everybody's polls", got, len(streams), want)
		}
		began := time.Now()
		srv.Stop()
		srv.Stop()
		srv.Publish(Report{Serving: true})
		g.GracefulStop()
		if took := time.Since(began); took != 0 {
			t.Errorf("GracefulStop took %v after Stop, want nothing: it waits for open streams", took)
		}
		for i, stream := range streams {
			_, err := stream.Recv()
			for err == nil {
				_, err = stream.Recv()
			}
			if status.Code(err) != codes.Unavailable {
				t.Errorf("stream %d ended with %v, want Unavailable", i, err)
			}
		}
		if got := srv.Watchers(); got != 0 {
			t.Errorf("Watchers() = %d after Stop, want 0", got)
		}
	})
}

func TestWatchersAreCountedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := NewServer(ServerOptions{})
		conn, _ := serve(t, srv)
		ctx, cancel := context.WithCancel(context.Background())
		for range 3 {
			stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{Service: ServiceServing})
			if err != nil {
				t.Fatal(err)
			}
			wantPush(t, stream, wireNotServing, "at first")
		}
		if got := srv.Watchers(); got != 3 {
			t.Errorf("Watchers() = %d, want 3", got)
		}
		cancel()
		synctest.Wait()
		if got := srv.Watchers(); got != 0 {
			t.Errorf("Watchers() = %d after the clients left, want 0: poll hints follow it", got)
		}
	})
}

func TestServerWorksWithoutACallAroundIt(t *testing.T) {
	srv := NewServer(ServerOptions{})
	resp, err := srv.Check(t.Context(), &healthpb.HealthCheckRequest{Service: ServiceLive})
	if err != nil || resp.GetStatus() != wireServing {
		t.Errorf("Check called directly = %v, %v; want SERVING: headers are optional", resp, err)
	}
	if _, err := srv.Check(t.Context(), nil); status.Code(err) != codes.NotFound {
		t.Errorf("Check(nil) = %v, want NotFound", err)
	}
}

// etcdHealth serves what etcd's own health service serves, in process with ours.
func etcdHealth(t *testing.T, theirs healthpb.HealthServer) (*Server, *grpc.ClientConn) {
	t.Helper()
	srv := NewServer(ServerOptions{})
	g := grpc.NewServer(grpc.ChainUnaryInterceptor(srv.UnaryServerInterceptor()), grpc.ChainStreamInterceptor(srv.StreamServerInterceptor()))
	healthpb.RegisterHealthServer(g, theirs)
	return srv, dial(t, g)
}

func TestInterceptorsLeaveEtcdsOwnNamesAlone(t *testing.T) {
	theirs := health.NewServer()
	theirs.SetServingStatus("", wireServing)
	theirs.SetServingStatus("etcdserverpb.KV", wireNotServing)
	srv, conn := etcdHealth(t, theirs)
	for service, want := range map[string]healthpb.HealthCheckResponse_ServingStatus{"": wireServing, "etcdserverpb.KV": wireNotServing} {
		got, h, err := checkOf(t, conn, service)
		if err != nil || got != want || h != (headers{}) {
			t.Errorf("Check(%q) = %v, %v with headers %+v; want etcd's own %v without ours", service, got, err, h, want)
		}
		wantPush(t, watchOf(t, conn, service), want, "etcd's own")
	}
	wantStatus(t, conn, ServiceServing, wireNotServing, ReasonStarting, "ours")
	list, err := healthpb.NewHealthClient(conn).List(t.Context(), &healthpb.HealthListRequest{})
	if err != nil || len(list.GetStatuses()) != len(Services())+2 {
		t.Fatalf("List = %v, %v; want ours and etcd's two", list.GetStatuses(), err)
	}
	if got := list.GetStatuses()[""].GetStatus(); got != wireServing {
		t.Errorf("List has the empty name as %v, want etcd's own SERVING", got)
	}
	srv.Stop()
	if got, _, err := checkOf(t, conn, ""); err != nil || got != wireServing {
		t.Errorf("Check of etcd's own after our Stop = %v, %v; want SERVING", got, err)
	}
	list, err = healthpb.NewHealthClient(conn).List(t.Context(), &healthpb.HealthListRequest{})
	if err != nil || len(list.GetStatuses()) != 2 {
		t.Errorf("List after our Stop = %v, %v; want etcd's two", list.GetStatuses(), err)
	}
}

func TestMergedListNeverTakesEtcdsEmptyName(t *testing.T) {
	srv := NewServer(ServerOptions{EmptyName: true})
	g := grpc.NewServer(grpc.UnaryInterceptor(srv.UnaryServerInterceptor()))
	healthpb.RegisterHealthServer(g, health.NewServer())
	list, err := healthpb.NewHealthClient(dial(t, g)).List(t.Context(), &healthpb.HealthListRequest{})
	if got := list.GetStatuses()[""].GetStatus(); err != nil || got != wireServing {
		t.Errorf("List has the empty name as %v, %v; want etcd's own SERVING, not our NOT_SERVING", got, err)
	}
}

// noList is a health service from before List existed.
type noList struct{ *health.Server }

func (noList) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	return nil, status.Error(codes.Unimplemented, "unknown method List")
}

func TestListWorksOverAHandlerWithoutIt(t *testing.T) {
	srv, conn := etcdHealth(t, noList{health.NewServer()})
	list, err := healthpb.NewHealthClient(conn).List(t.Context(), &healthpb.HealthListRequest{})
	if err != nil || len(list.GetStatuses()) != len(Services()) {
		t.Errorf("List = %v, %v; want our services", list.GetStatuses(), err)
	}
	srv.Stop()
	if _, err := healthpb.NewHealthClient(conn).List(t.Context(), &healthpb.HealthListRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("List after our Stop = %v, want the handler's own Unimplemented", err)
	}
}

func BenchmarkServerCheck(b *testing.B) {
	report := Report{
		Identity: Identity{Cluster: 1 << 60, Member: 1 << 61, Leader: 1 << 62, Term: 9, Start: time.Now()},
		Serving:  true, LastProof: time.Now(), RoundTrip: time.Millisecond, Poll: time.Second,
	}
	ctx := grpc.NewContextWithServerTransportStream(context.Background(), discard{})
	req := &healthpb.HealthCheckRequest{Service: ServiceServing}
	b.Run("ours", func(b *testing.B) {
		srv := NewServer(ServerOptions{Validity: time.Second})
		defer srv.Stop()
		srv.Publish(report)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = srv.Check(ctx, req)
		}
	})
	b.Run("grpc", func(b *testing.B) {
		srv := health.NewServer()
		srv.SetServingStatus(ServiceServing, wireServing)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = srv.Check(ctx, req)
		}
	})
}

// discard takes headers as grpc does, without a call.
type discard struct{}

func (discard) Method() string                  { return healthpb.Health_Check_FullMethodName }
func (discard) SetHeader(md metadata.MD) error  { _ = metadata.Join(nil, md); return nil }
func (discard) SendHeader(metadata.MD) error    { return nil }
func (discard) SetTrailer(md metadata.MD) error { return nil }
