package inproc

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/e2e/leak"
	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/servershim"
)

// Of several listeners embed.Etcd does not tell which is whose; their hosts do.
const clientHost, webHost = "127.0.0.1", "127.0.0.2"

// clientAddress is where e serves gRPC.
func clientAddress(t testing.TB, e *embed.Etcd) string {
	t.Helper()
	for _, lis := range e.Clients {
		if host, _, _ := net.SplitHostPort(lis.Addr().String()); host == clientHost {
			return lis.Addr().String()
		}
	}
	t.Fatalf("etcd has no listener at %s", clientHost)
	return ""
}

// config is of one member on loopback ports.
func config(t testing.TB, scheme string) *embed.Config {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir = t.TempDir()
	cfg.LogLevel = "panic"
	cfg.UnsafeNoFsync = true
	cfg.TickMs, cfg.ElectionMs = 10, 100
	client := url.URL{Scheme: scheme, Host: clientHost + ":0"}
	peer := url.URL{Scheme: "http", Host: clientHost + ":0"}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.ClientAutoTLS = scheme == "https"
	cfg.SelfSignedCertValidity = 1
	return cfg
}

// unhurried does not call a member lost because the machine is busy with other things.
func unhurried() servershim.Config {
	return servershim.Config{
		ElectionTimeout: 50 * time.Second, WindowFloor: 50 * time.Second, Interval: 300 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// member is an etcd server that may be closed before the test ends.
type member struct {
	*embed.Etcd
	close func()
}

// start runs etcd with an attached shim until the test ends, without Start.
func start(t testing.TB, scheme string, changes ...func(*embed.Config)) (member, *Shim, *grpc.ClientConn) {
	t.Helper()
	return startWith(t, unhurried(), scheme, changes...)
}

func startWith(t testing.TB, sc servershim.Config, scheme string, changes ...func(*embed.Config)) (member, *Shim, *grpc.ClientConn) {
	t.Helper()
	cfg := config(t, scheme)
	for _, change := range changes {
		change(cfg)
	}
	s, err := Attach(cfg, sc)
	if err != nil {
		t.Fatalf("Attach: %v", err)
	}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatalf("StartEtcd: %v", err)
	}
	m := member{e, sync.OnceFunc(e.Close)}
	t.Cleanup(func() {
		m.close()
		if err := s.Close(); err != nil {
			t.Errorf("Close: got %v, want nil", err)
		}
	})
	creds := insecure.NewCredentials()
	if scheme == "https" {
		creds = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	}
	return m, s, dial(t, clientAddress(t, e), creds)
}

func dial(t testing.TB, address string, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatalf("dial %s: %v", address, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// patience is far more than anything here takes, also beside other tests on two processors.
const patience = 30 * time.Second

func check(t testing.TB, conn *grpc.ClientConn, service string) (healthpb.HealthCheckResponse_ServingStatus, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var md metadata.MD
	resp, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service}, grpc.Header(&md), grpc.WaitForReady(true))
	if err != nil {
		t.Fatalf("Check %q: %v", service, err)
	}
	reason := ""
	if v := md.Get(healthsvc.HeaderReason); len(v) > 0 {
		reason = v[0]
	}
	return resp.GetStatus(), reason
}

// watch opens a stream and reads until it has seen want.
func watch(t testing.TB, conn *grpc.ClientConn, service string, want healthpb.HealthCheckResponse_ServingStatus) healthpb.Health_WatchClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{Service: service}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatalf("Watch %q: %v", service, err)
	}
	for {
		resp, err := stream.Recv()
		if err != nil {
			t.Fatalf("Watch %q: got %v before %v", service, err, want)
		}
		if resp.GetStatus() == want {
			return stream
		}
	}
}

func TestMain(m *testing.M) { leak.VerifyTestMain(m, leak.Product) }

func TestShimOnEtcdsOwnPort(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			e, s, conn := start(t, scheme)
			if got, reason := check(t, conn, healthsvc.ServiceServing); got != healthpb.HealthCheckResponse_NOT_SERVING || reason != "starting" {
				t.Errorf("before Start: got %v %q, want NOT_SERVING starting", got, reason)
			}
			if got, _ := check(t, conn, healthsvc.ServiceLive); got != healthpb.HealthCheckResponse_SERVING {
				t.Errorf("before Start: got %v for etcd.live, want SERVING", got)
			}
			if err := s.Start(e.Etcd); err != nil {
				t.Fatalf("Start: %v", err)
			}
			stream := watch(t, conn, healthsvc.ServiceServing, healthpb.HealthCheckResponse_SERVING)
			for _, service := range healthsvc.Services() {
				if got, reason := check(t, conn, service); got != healthpb.HealthCheckResponse_SERVING {
					t.Errorf("%s: got %v %q, want SERVING on the only member, which leads", service, got, reason)
				}
			}
			// The empty name stays etcd's, and both are listed.
			if got, reason := check(t, conn, ""); got != healthpb.HealthCheckResponse_SERVING || reason != "" {
				t.Errorf("empty name: got %v %q, want etcd's own SERVING", got, reason)
			}
			list, err := healthpb.NewHealthClient(conn).List(t.Context(), &healthpb.HealthListRequest{})
			if err != nil {
				t.Fatalf("List: %v", err)
			}
			for _, service := range append(healthsvc.Services(), "") {
				if _, ok := list.GetStatuses()[service]; !ok {
					t.Errorf("List: got %v, want %q among them", list.GetStatuses(), service)
				}
			}
			if r := s.Report(); r.Member != uint64(e.Server.MemberID()) || r.Cluster != uint64(e.Server.Cluster().ID()) || r.Term == 0 {
				t.Errorf("got identity %+v, want that of member %v", r.Identity, e.Server.MemberID())
			}
			s.Drain()
			if resp, err := stream.Recv(); err != nil || resp.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
				t.Errorf("after Drain: got %v %v, want NOT_SERVING pushed", resp, err)
			}
			if _, reason := check(t, conn, healthsvc.ServiceServing); reason != "draining" {
				t.Errorf("after Drain: got reason %q, want draining", reason)
			}
		})
	}
}

// An open Watch stream would otherwise keep etcd's Close waiting for 5 s and two
// election timeouts.
func TestShimDoesNotDelayCloseOfEtcd(t *testing.T) {
	apart := func(cfg *embed.Config) { // HTTP elsewhere, so that gRPC speaks TLS by itself
		cfg.ListenClientHttpUrls = []url.URL{{Scheme: "http", Host: webHost + ":0"}}
	}
	for name, c := range map[string]struct {
		scheme  string
		changes []func(*embed.Config)
	}{
		"plain":             {"http", nil},
		"TLS beside HTTP":   {"https", nil},
		"TLS, HTTP apart":   {"https", []func(*embed.Config){apart}},
		"plain, HTTP apart": {"http", []func(*embed.Config){apart}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, s, conn := start(t, c.scheme, c.changes...)
			if err := s.Start(e.Etcd); err != nil {
				t.Fatalf("Start: %v", err)
			}
			stream := watch(t, conn, healthsvc.ServiceServing, healthpb.HealthCheckResponse_SERVING)
			begin := time.Now()
			e.close()
			if took := time.Since(begin); took > 4*time.Second {
				t.Errorf("got Close after %v, want it well below the 5 s for which it waits for an open Watch", took)
			}
			if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
				t.Errorf("got %v at the end of the stream, want Unavailable", err)
			}
		})
	}
}

func TestShimOnItsOwnListener(t *testing.T) {
	e, s, _ := start(t, "http")
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(lis) }()
	conn := dial(t, lis.Addr().String(), insecure.NewCredentials())
	if got, reason := check(t, conn, ""); got != healthpb.HealthCheckResponse_NOT_SERVING || reason != "starting" {
		t.Errorf("before Start: got %v %q, want NOT_SERVING starting", got, reason)
	}
	if err := s.Start(e.Etcd); err != nil {
		t.Fatalf("Start: %v", err)
	}
	stream := watch(t, conn, "", healthpb.HealthCheckResponse_SERVING)
	e.Server.Stop()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v when the server stopped by itself, want Unavailable", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: got %v, want nil", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: got %v, want nil after Close", err)
	}
	if err := s.Serve(lis); err == nil {
		t.Error("Serve after Close: got nil, want an error")
	}
}

func TestShimClosesInTimeWhateverClientsDo(t *testing.T) {
	s, err := Attach(embed.NewConfig(), servershim.Config{})
	if err != nil {
		t.Fatalf("Attach: %v", err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(lis) }()
	silent, err := net.Dial("tcp", lis.Addr().String()) // connects, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	watch(t, dial(t, lis.Addr().String(), insecure.NewCredentials()), "", healthpb.HealthCheckResponse_NOT_SERVING)
	began := time.Now()
	if err := s.Close(); err != nil {
		t.Errorf("Close: got %v, want nil", err)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("Close took %v, want it well below grpc's two minutes for a handshake: one silent connection must not keep a program from ending", took)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: got %v, want nil after Close", err)
	}
}

// etcd waits for its own streams for 5 s and two election timeouts as it closes.
func TestShimClosesInTimeWhileEtcdWaitsForItsStreams(t *testing.T) {
	t.Parallel()
	log, sc := new(logged), unhurried()
	sc.Logger = slog.New(slog.NewTextHandler(log, nil))
	e, s, conn := startWith(t, sc, "http")
	if err := s.Start(e.Etcd); err != nil {
		t.Fatalf("Start: %v", err)
	}
	watch(t, conn, healthsvc.ServiceServing, healthpb.HealthCheckResponse_SERVING)
	keys, err := pb.NewWatchClient(conn).Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	create := &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte("k")}}
	if err := keys.Send(&pb.WatchRequest{RequestUnion: create}); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Recv(); err != nil {
		t.Fatalf("Watch of a key: got %v before it was created", err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); e.close() }()
	<-s.ending.began
	for range 2 {
		began := time.Now()
		if err := s.Close(); err != nil {
			t.Errorf("Close: got %v, want nil", err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("Close took %v, want about a second: etcd waits for a watch that is not ours", took)
		}
	}
	select {
	case <-ended:
		t.Fatal("etcd closed at once, want it to wait for the watch: nothing was tried")
	default:
	}
	if !strings.Contains(log.String(), "etcd waits for streams of its own") {
		t.Errorf("logged: %q, want why something is still there after Close", log.String())
	}
	<-ended
	for i, l := range s.ending.quiet {
		select {
		case <-l.served:
		case <-time.After(patience):
			t.Errorf("quiet listener %d is still served after etcd closed, want nothing left", i)
		}
	}
}

// logged is a log that may be read while it is written.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestShimRefusesWrongUse(t *testing.T) {
	if _, err := Attach(nil, servershim.Config{}); err == nil {
		t.Error("Attach(nil): got nil, want an error")
	}
	if _, err := Attach(embed.NewConfig(), servershim.Config{GoodRounds: -1}); err == nil {
		t.Error("Attach with GoodRounds -1: got nil, want an error")
	}
	s, err := Attach(embed.NewConfig(), servershim.Config{})
	if err != nil {
		t.Fatalf("Attach: %v", err)
	}
	if err := s.Start(nil); err == nil {
		t.Error("Start(nil): got nil, want an error")
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close of a shim never started: got %v, want nil", err)
	}
	if err := s.Start(&embed.Etcd{}); err == nil {
		t.Error("Start of an etcd that has no server: got nil, want an error")
	}
}
