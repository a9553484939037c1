package sidecar

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quorumwise/quorumwise/healthsvc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a running sidecar in memory.
type rig struct {
	lis    *bufconn.Listener
	cancel context.CancelFunc
	done   chan error
}

// run starts a sidecar for a member that dial leads to; the test's end stops it.
func run(t *testing.T, cfg Config, dial func(context.Context, string) (net.Conn, error)) *rig {
	t.Helper()
	r := &rig{lis: bufconn.Listen(1 << 16), done: make(chan error, 1)}
	cfg.Listener = r.lis
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(dial))
	side, err := New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	stopped := make(chan struct{})
	go func() { defer close(stopped); r.done <- side.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-stopped })
	return r
}

// client connects to the sidecar; dials counts how often.
func (r *rig) client(t *testing.T, creds credentials.TransportCredentials, opts ...grpc.DialOption) (client healthpb.HealthClient, dials *atomic.Int64) {
	t.Helper()
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	dials = new(atomic.Int64)
	conn, err := grpc.NewClient("passthrough:///"+serverName, append(opts, grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { dials.Add(1); return r.lis.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return healthpb.NewHealthClient(conn), dials
}

func want(t *testing.T, client healthpb.HealthClient, service string, st healthpb.HealthCheckResponse_ServingStatus, reason healthsvc.Reason, why string) metadata.MD {
	t.Helper()
	var md metadata.MD
	resp, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{Service: service}, grpc.Header(&md))
	if got := strings.Join(md.Get(healthsvc.HeaderReason), ","); err != nil || resp.GetStatus() != st || got != string(reason) {
		t.Errorf("Check(%q) = %v, reason %q, error %v; want %v, reason %q: %s", service, resp.GetStatus(), got, err, st, reason, why)
	}
	return md
}

// reasonOf is the reason that is given for the empty name.
func reasonOf(client healthpb.HealthClient) healthsvc.Reason {
	var md metadata.MD
	_, _ = client.Check(context.Background(), &healthpb.HealthCheckRequest{}, grpc.Header(&md))
	return healthsvc.Reason(strings.Join(md.Get(healthsvc.HeaderReason), ","))
}

const (
	serving    = healthpb.HealthCheckResponse_SERVING
	notServing = healthpb.HealthCheckResponse_NOT_SERVING
)

func TestSidecarPublishesItsMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var member etcd
		member.start(t, nil)
		r := run(t, Config{}, member.dial)
		client, _ := r.client(t, nil)
		time.Sleep(3 * time.Second)
		md := want(t, client, "", serving, "", "the empty name is etcd.serving")
		want(t, client, healthsvc.ServiceLeader, serving, "", "it leads itself")
		if got := md.Get(healthsvc.HeaderMemberID); len(got) != 1 || got[0] != "a1" {
			t.Errorf("%s = %q, want a1", healthsvc.HeaderMemberID, got)
		}
	})
}

func TestSidecarWithALongElectionTimeoutIsNotStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var member etcd
		member.start(t, nil)
		r := run(t, Config{ElectionTimeout: 50 * time.Second}, member.dial)
		client, _ := r.client(t, nil)
		time.Sleep(2 * time.Minute)
		for range 1000 {
			want(t, client, "", serving, "", "proofs every 5s are as often as is asked for")
			time.Sleep(117 * time.Millisecond)
		}
	})
}

func TestSidecarDrainsThenStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var member etcd
		member.start(t, nil)
		r := run(t, Config{DrainTime: 4 * time.Second}, member.dial)
		client, _ := r.client(t, nil)
		time.Sleep(3 * time.Second)
		stream, err := client.Watch(context.Background(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := stream.Recv(); err != nil || resp.GetStatus() != serving {
			t.Fatalf("first push = %v, %v; want SERVING", resp, err)
		}

		began := time.Now()
		r.cancel()
		if resp, err := stream.Recv(); err != nil || resp.GetStatus() != notServing || time.Since(began) != 0 {
			t.Errorf("push after %v = %v, %v; want NOT_SERVING at once: clients need the time to leave", time.Since(began), resp, err)
		}
		time.Sleep(3900 * time.Millisecond)
		want(t, client, "", notServing, healthsvc.ReasonDraining, "it still answers")
		want(t, client, healthsvc.ServiceLive, serving, healthsvc.ReasonDraining, "nobody is to kill it while it drains")
		_, err = stream.Recv()
		if status.Code(err) != codes.Unavailable || time.Since(began) != 4*time.Second {
			t.Errorf("stream ended after %v with %v, want Unavailable after 4s", time.Since(began), err)
		}
		if err := <-r.done; err != nil || time.Since(began) > 4*time.Second+stopGrace {
			t.Errorf("Run returned %v after %v, want nil within %v", err, time.Since(began), 4*time.Second+stopGrace)
		}
	})
}

func TestSidecarStopsInTimeWhateverClientsDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var member etcd
		member.start(t, nil)
		r := run(t, Config{DrainTime: time.Second}, member.dial)
		silent, err := r.lis.Dial() // connects, and says nothing
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		client, _ := r.client(t, nil)
		deaf, err := client.Watch(context.Background(), &healthpb.HealthCheckRequest{}) // never reads
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		began := time.Now()
		r.cancel()
		if err := <-r.done; err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
		if took := time.Since(began); took > time.Second+stopGrace {
			t.Errorf("Run took %v to stop, want at most %v", took, time.Second+stopGrace)
		}
		_ = deaf
	})
}

func TestSidecarWaitsForAnEtcdThatIsNotThereYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var member etcd
		r := run(t, Config{}, member.dial)
		client, _ := r.client(t, nil)
		for range 60 {
			time.Sleep(time.Second)
			want(t, client, "", notServing, healthsvc.ReasonUnreachable, "etcd is down")
			want(t, client, healthsvc.ServiceLive, serving, healthsvc.ReasonUnreachable, "restarting the shim would not help")
		}
		member.start(t, nil)
		time.Sleep(4 * time.Second)
		want(t, client, "", serving, "", "etcd has come")
	})
}

func TestSidecarSaysWhatSpeaksSomethingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lis := bufconn.Listen(1 << 16)
		web := &http.Server{Handler: http.NotFoundHandler()}
		var running sync.WaitGroup
		running.Go(func() { _ = web.Serve(lis) })
		r := run(t, Config{}, func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) })
		client, _ := r.client(t, nil)
		time.Sleep(10 * time.Second)
		// The server hangs up after its answer: a connection whose turn to write comes only then
		// fails before it has read anything.
		for tries := 0; tries < 10 && reasonOf(client) != healthsvc.ReasonNotEtcd; tries++ {
			time.Sleep(time.Second)
		}
		want(t, client, "", notServing, healthsvc.ReasonNotEtcd, "a web server answers there")
		r.cancel()
		<-r.done
		_ = web.Close()
		running.Wait()
	})
}

func TestSidecarWithASilentPortIsUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var ends []net.Conn
		r := run(t, Config{}, func(context.Context, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, theirs)
			go func() { // takes all, says nothing
				buf := make([]byte, 1024)
				for {
					if _, err := theirs.Read(buf); err != nil {
						return
					}
				}
			}()
			return ours, nil
		})
		client, _ := r.client(t, nil)
		time.Sleep(30 * time.Second)
		want(t, client, "", notServing, healthsvc.ReasonUnreachable, "the port accepts and says nothing")
		r.cancel()
		<-r.done
		mu.Lock()
		defer mu.Unlock()
		if len(ends) > 31 {
			t.Errorf("dialled %d times in 30s, want at most once a second", len(ends))
		}
		for _, c := range ends {
			c.Close()
		}
	})
}

func TestSidecarToleratesFrequentKeepalives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var member etcd
		member.start(t, nil)
		r := run(t, Config{ElectionTimeout: 50 * time.Second}, member.dial) // proofs are rare, and the test short
		client, dials := r.client(t, nil, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: time.Second, PermitWithoutStream: true}))
		time.Sleep(2 * time.Minute)
		want(t, client, healthsvc.ServiceLive, serving, "", "connects")
		time.Sleep(10 * time.Minute)
		want(t, client, healthsvc.ServiceLive, serving, "", "still connected")
		if got := dials.Load(); got != 1 {
			t.Errorf("the client connected %d times in ten idle minutes, want once: GOAWAY too_many_pings", got)
		}
	})
}

func TestSidecarSaysWhereItsMetricsAre(t *testing.T) {
	var log bytes.Buffer
	side, err := New(Config{Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0", EtcdEndpoint: "http://127.0.0.1:1", DrainTime: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- side.Run(ctx) }()
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := web.Get("http://" + side.MetricsAddr().String() + "/metrics")
	if err != nil {
		t.Error(err)
	} else {
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.Contains(body, []byte("go_goroutines ")) {
			t.Errorf("GET %v/metrics = %q, %v; want metrics", side.MetricsAddr(), body, err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if want := "metrics=" + side.MetricsAddr().String(); !strings.Contains(log.String(), want) {
		t.Errorf("the log is\n%s\nwant %q in it: with port 0 nobody could find them", log.String(), want)
	}
}

func TestSidecarBoundsTheStreamsOfOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var member etcd
		member.start(t, nil)
		r := run(t, Config{}, member.dial)
		greedy, _ := r.client(t, nil)
		time.Sleep(3 * time.Second)
		want(t, greedy, healthsvc.ServiceLive, serving, "", "the limit is told on connecting")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for range maxStreams {
			stream, err := greedy.Watch(ctx, &healthpb.HealthCheckRequest{Service: "nonsense"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatalf("a watch within the limit of %d: %v", maxStreams, err)
			}
		}
		more, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if _, err := greedy.Watch(more, &healthpb.HealthCheckRequest{}); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("one stream more than %d: got %v, want it to wait: a stranger must not fill our memory", maxStreams, err)
		}
		other, _ := r.client(t, nil)
		time.Sleep(time.Second)
		want(t, other, healthsvc.ServiceLive, serving, "", "other connections do not suffer")
	})
}

func TestSidecarTellsWhenItsListenerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var member etcd
		member.start(t, nil)
		r := run(t, Config{}, member.dial)
		time.Sleep(time.Second)
		r.lis.Close()
		if err := <-r.done; err == nil || !strings.Contains(err.Error(), "serving failed") {
			t.Errorf("Run = %v, want an error: nobody can reach it any more", err)
		}
	})
}
