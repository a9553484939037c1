package healthsvc

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// diary keeps what a follower tells.
type diary struct {
	mu   sync.Mutex
	news []News
}

func (d *diary) tell(n News) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.news = append(d.news, n)
}

func (d *diary) last() News {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.news) == 0 {
		return News{}
	}
	return d.news[len(d.news)-1]
}

func (d *diary) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.news)
}

// statuses returns the statuses told, without repetitions.
func (d *diary) statuses() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for i, n := range d.news {
		if i == 0 || n.Status != d.news[i-1].Status {
			all = append(all, n.Status.String())
		}
	}
	return strings.Join(all, " ")
}

// follow runs Follow in a bubble until the test or the returned function ends it.
func follow(t *testing.T, conn grpc.ClientConnInterface, cfg FollowConfig) (*diary, func()) {
	t.Helper()
	d := &diary{}
	if tell := cfg.Tell; tell != nil {
		cfg.Tell = func(n News) { d.tell(n); tell(n) }
	} else {
		cfg.Tell = d.tell
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Follow(ctx, conn, cfg) }()
	end := sync.OnceFunc(func() {
		began := time.Now()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Follow returned %v, want the context's error", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("Follow took %v to end, want nothing", took)
		}
	})
	t.Cleanup(end)
	return d, end
}

// scripted is a health service of which tests change parts.
type scripted struct {
	healthpb.UnimplementedHealthServer
	check   func(context.Context) (*healthpb.HealthCheckResponse, error)
	watch   func(healthpb.Health_WatchServer) error
	checks  atomic.Int64
	watches atomic.Int64
}

func (s *scripted) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	s.checks.Add(1)
	if s.check == nil {
		return &healthpb.HealthCheckResponse{Status: wireServing}, nil
	}
	return s.check(ctx)
}

func (s *scripted) Watch(_ *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	s.watches.Add(1)
	if s.watch == nil {
		return status.Error(codes.Unimplemented, "planted")
	}
	return s.watch(stream)
}

func TestFollowTellsAsItIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := NewServer(ServerOptions{})
		conn, _ := serve(t, srv)
		d, _ := follow(t, conn, FollowConfig{})
		synctest.Wait()
		if n := d.last(); n.Status != StatusNotServing || n.Reason != ReasonStarting {
			t.Errorf("at first: %+v, want not serving, starting", n)
		}
		id := Identity{Cluster: 1, Member: 2, Leader: 3, Term: 4, Start: time.Now().Add(-time.Hour)}
		for round := range 3 {
			time.Sleep(1100 * time.Millisecond) // not a multiple of the poll
			srv.Publish(Report{Identity: id, Serving: true, LastProof: time.Now().Add(-30 * time.Millisecond), RoundTrip: 2 * time.Millisecond, Poll: 600 * time.Millisecond})
			synctest.Wait()
			time.Sleep(pollGap)
			synctest.Wait()
			n := d.last()
			if n.Status != StatusServing || n.Reason != "" || !n.Identity.Start.Equal(id.Start) || n.Identity.Member != id.Member || n.ShimRTT != 2*time.Millisecond || n.Poll != 600*time.Millisecond {
				t.Errorf("round %d: %+v, want serving with everything published", round, n)
			}
			time.Sleep(1100 * time.Millisecond)
			srv.Publish(Report{Identity: id, Reason: ReasonNoQuorum})
			synctest.Wait()
			if n := d.last(); n.Status != StatusNotServing || n.Since != time.Now() {
				t.Errorf("round %d: %+v, want not serving at once", round, n)
			}
			time.Sleep(pollGap)
			synctest.Wait()
			if n := d.last(); n.Reason != ReasonNoQuorum {
				t.Errorf("round %d: %+v, want the reason too", round, n)
			}
		}
		if got, want := d.statuses(), "not-serving serving not-serving serving not-serving serving not-serving"; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	})
}

func TestFollowEndsAtOnceWhileAPollHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		conn, _ := serve(t, &scripted{
			check: func(ctx context.Context) (*healthpb.HealthCheckResponse, error) { return nil, hang(ctx) },
			watch: func(s healthpb.Health_WatchServer) error { return hang(s.Context()) },
		})
		d, end := follow(t, conn, FollowConfig{})
		time.Sleep(time.Minute)
		if n := d.last(); n.Status != StatusUnknown || n.Missed < 20 || !errors.Is(n.Err, context.DeadlineExceeded) {
			t.Errorf("after a minute without answers: %+v, want unknown and many misses", n)
		}
		end()
	})
}

func TestFollowForgetsAFrozenServerAndFindsItAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var frozen atomic.Bool
		thaw := make(chan struct{})
		conn, _ := serve(t, &scripted{check: func(context.Context) (*healthpb.HealthCheckResponse, error) {
			if frozen.Load() {
				<-thaw
			}
			return &healthpb.HealthCheckResponse{Status: wireServing}, nil
		}})
		d, _ := follow(t, conn, FollowConfig{})
		time.Sleep(1010 * time.Millisecond)
		frozen.Store(true)
		cut := time.Now()
		for d.last().Missed < 1 {
			time.Sleep(time.Millisecond)
		}
		within(t, "the first miss after the freeze", time.Since(cut), 0, 650*ms)
		for d.last().Status == StatusServing {
			time.Sleep(time.Millisecond)
		}
		within(t, "the expiry after the freeze", time.Since(cut), time.Second, 1501*ms)
		frozen.Store(false)
		close(thaw)
		time.Sleep(2500 * time.Millisecond) // the longest deadline, and a poll
		if n := d.last(); n.Status != StatusServing || n.Missed != 0 {
			t.Errorf("after the thaw: %+v, want serving", n)
		}
	})
}

func TestFollowPollsWhereWatchIsUnimplemented(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &scripted{}
		conn, _ := serve(t, srv)
		d, _ := follow(t, conn, FollowConfig{})
		time.Sleep(time.Minute)
		if got := d.statuses(); got != "serving" {
			t.Errorf("told %q, want serving throughout: polls suffice", got)
		}
		if got := srv.watches.Load(); got < 10 || got > 30 {
			t.Errorf("Watch was tried %d times in a minute, want 10 to 30", got)
		}
		if got := srv.checks.Load(); got < 120 || got > 160 {
			t.Errorf("%d Checks in a minute, want about two a second", got)
		}
	})
}

func TestFollowSurvivesAFloodOfPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &scripted{watch: func(s healthpb.Health_WatchServer) error {
			for i := range 10_000 {
				st := wireServing
				if i%2 == 0 {
					st = wireNotServing
				}
				if err := s.Send(&healthpb.HealthCheckResponse{Status: st}); err != nil {
					return err
				}
				time.Sleep(100 * time.Microsecond)
			}
			<-s.Context().Done()
			return nil
		}}
		conn, _ := serve(t, srv)
		d, _ := follow(t, conn, FollowConfig{})
		time.Sleep(time.Second)
		if got := srv.checks.Load(); got > 22 {
			t.Errorf("10,000 changes in a second made %d Checks, want at most 22", got)
		}
		if got := d.count(); got > 44 {
			t.Errorf("10,000 changes in a second were told %d times, want at most 44", got)
		}
		time.Sleep(time.Second)
		if n := d.last(); n.Status != StatusServing {
			t.Errorf("after the flood: %+v, want serving, which is what Check says", n)
		}
	})
}

func TestFollowNoticesAStoppedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := NewServer(ServerOptions{})
		srv.Publish(Report{Serving: true})
		conn, g := serve(t, srv)
		d, _ := follow(t, conn, FollowConfig{})
		time.Sleep(1010 * time.Millisecond)
		srv.Stop()
		g.GracefulStop()
		time.Sleep(pollGap)
		synctest.Wait()
		if n := d.last(); n.Missed == 0 || status.Code(n.Err) != codes.Unavailable {
			t.Errorf("just after the stop: %+v, want a miss at once: the end of the Watch stream says so", n)
		}
		time.Sleep(1600 * time.Millisecond)
		if n := d.last(); n.Status != StatusUnknown {
			t.Errorf("later: %+v, want unknown: a shim that is gone is not a bad member", n)
		}
	})
}

// plain serves conns that do not lead to gRPC.
func plain(t *testing.T, dialer func(context.Context) (net.Conn, error)) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dialer(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestFollowOfARefusingAddressIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("connection refused")
		conn := plain(t, func(context.Context) (net.Conn, error) { return nil, refused })
		d, _ := follow(t, conn, FollowConfig{})
		time.Sleep(time.Minute)
		n := d.last()
		if n.Status != StatusUnknown || n.Missed < 60 || n.Err == nil || !strings.Contains(n.Err.Error(), "refused") {
			t.Errorf("after a minute: %+v, want unknown, missed, and why", n)
		}
		if n.Missed > 150 {
			t.Errorf("%d polls in a minute at a refusing address, want about two a second", n.Missed)
		}
	})
}

func TestFollowOfAnHTTP2ServerWithoutGRPCIsAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lis := bufconn.Listen(1 << 16)
		web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })}
		web.Protocols = new(http.Protocols)
		web.Protocols.SetUnencryptedHTTP2(true)
		done := make(chan struct{})
		go func() { defer close(done); _ = web.Serve(lis) }()
		conn := plain(t, lis.DialContext)
		d, end := follow(t, conn, FollowConfig{})
		time.Sleep(5 * time.Second)
		if n := d.last(); n.Status != StatusAbsent || n.Err == nil {
			t.Errorf("a web server is %+v, want absent, with the reason", n)
		}
		end()
		conn.Close()
		_ = web.Close()
		<-done
	})
}

func TestFollowOfAnEtcdWithoutShimIsAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, _ := serve(t, health.NewServer())
		d, _ := follow(t, conn, FollowConfig{})
		time.Sleep(10 * time.Minute)
		if n := d.last(); n.Status != StatusAbsent || d.statuses() != "absent" {
			t.Errorf("told %q, last %+v; want absent throughout", d.statuses(), n)
		}
		if got := d.count(); got > 20 {
			t.Errorf("told %d times in ten minutes, want at most 20: it is looked at rarely", got)
		}
	})
}

func TestFollowSeesAShimThatComesToAnAbsentPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs := health.NewServer()
		conn, _ := serve(t, theirs)
		d, _ := follow(t, conn, FollowConfig{})
		time.Sleep(10 * time.Minute)
		theirs.SetServingStatus(ServiceServing, wireServing)
		time.Sleep(pollGap) // one of the rare looks may have been a moment ago
		synctest.Wait()
		if n := d.last(); n.Status != StatusServing {
			t.Errorf("%+v, want serving within %v: the Watch stream was still open", n, pollGap)
		}
	})
}

func TestFollowExcusesItsOwnSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := NewServer(ServerOptions{})
		srv.Publish(Report{Serving: true})
		conn, _ := serve(t, srv)
		slept := false
		d, end := follow(t, conn, FollowConfig{Tell: func(n News) {
			if !slept && n.Status == StatusServing && n.Heard.Sub(n.Since) > time.Second {
				slept = true
				time.Sleep(10 * time.Second) // as a stopped process would
			}
		}})
		time.Sleep(30 * time.Second)
		if got := d.statuses(); got != "serving" {
			t.Errorf("told %q, want serving throughout: we slept, not the server", got)
		}
		end()
		for _, n := range d.news {
			if n.Missed > 0 {
				t.Errorf("a poll was counted missed: %+v", n)
			}
		}
	})
}

func TestFollowTakesTheLatestOfThePushesItWasTooSlowFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := NewServer(ServerOptions{})
		srv.Publish(Report{Serving: true})
		conn, _ := serve(t, srv)
		busy := false
		d, _ := follow(t, conn, FollowConfig{Tell: func(n News) {
			if busy || n.Heard.Sub(n.Since) < time.Second {
				return
			}
			busy = true
			for _, ok := range []bool{false, true, false, true} {
				srv.Publish(Report{Serving: ok})
				time.Sleep(time.Millisecond)
			}
		}})
		time.Sleep(5 * time.Second)
		if got := d.statuses(); !busy || got != "serving" {
			t.Errorf("told %q, want serving throughout: what it had no time for is over", got)
		}
	})
}

// lingering is a connection whose calls end a while after their context.
type lingering struct {
	grpc.ClientConnInterface
	open atomic.Int64
}

func (l *lingering) Invoke(ctx context.Context, _ string, _, _ any, _ ...grpc.CallOption) error {
	l.open.Add(1)
	defer l.open.Add(-1)
	<-ctx.Done()
	time.Sleep(time.Second)
	return ctx.Err()
}

func (l *lingering) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, l.Invoke(ctx, "", nil, nil)
}

func TestFollowLeavesNoCallBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &lingering{}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := Follow(ctx, conn, FollowConfig{Tell: func(News) {}})
		if got := conn.open.Load(); got != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Follow returned %v with %d calls open, want the deadline and none", err, got)
		}
	})
}

func TestFollowObeysNudges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &scripted{}
		conn, _ := serve(t, srv)
		nudge := make(chan struct{}, 1)
		d, _ := follow(t, conn, FollowConfig{Nudge: nudge})
		time.Sleep(100 * time.Millisecond)
		nudge <- struct{}{}
		synctest.Wait()
		if n := d.last(); n.Heard != time.Now() {
			t.Errorf("last heard %v ago, want just now", time.Since(n.Heard))
		}
		close(nudge)
		before := srv.checks.Load()
		time.Sleep(10 * time.Second) // a loop spun by the closed channel would never let time pass
		if got := srv.checks.Load() - before; got > 30 {
			t.Errorf("%d Checks in 10s after Nudge was closed, want about 20", got)
		}
	})
}

func TestFollowRefusesSenselessConfigs(t *testing.T) {
	tell := func(News) {}
	tests := []struct {
		cfg  FollowConfig
		want string
	}{
		{FollowConfig{}, "FollowConfig.Tell is nil"},
		{FollowConfig{Tell: tell, Poll: -1}, "FollowConfig.Poll is -1ns"},
		{FollowConfig{Tell: tell, Timeout: -time.Second}, "FollowConfig.Timeout is -1s"},
		{FollowConfig{Tell: tell, Expire: time.Millisecond}, "FollowConfig.Expire is 1ms, want at least Poll (500ms)"},
	}
	for _, tt := range tests {
		if err := Follow(t.Context(), &grpc.ClientConn{}, tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Follow(%+v) = %v, want an error with %q", tt.cfg, err, tt.want)
		}
	}
	if err := Follow(t.Context(), nil, FollowConfig{Tell: tell}); err == nil {
		t.Error("Follow without a connection returned nil, want an error")
	}
}

// BenchmarkFollowerPoll is what one poll costs a client, network included, beside a bare Check.
func BenchmarkFollowerPoll(b *testing.B) {
	srv := NewServer(ServerOptions{})
	srv.Publish(Report{Identity: Identity{Cluster: 1 << 60, Member: 1 << 61, Term: 7, Start: time.Now()}, Serving: true, LastProof: time.Now()})
	conn, _ := serve(b, srv)
	b.Run("follower", func(b *testing.B) {
		f := newFollower(FollowConfig{Service: ServiceServing, Poll: time.Second, Timeout: time.Second, Expire: 3 * time.Second}, newRand(), time.Now())
		l := newListener(conn, ServiceServing)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		now := time.Now()
		b.ReportAllocs()
		for b.Loop() {
			now = now.Add(time.Second)
			if a := f.wake(now, now); a.poll != 0 {
				go l.poll(ctx, a.poll)
				f.answered(now, <-l.answers)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		client := healthpb.NewHealthClient(conn)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = client.Check(context.Background(), &healthpb.HealthCheckRequest{Service: ServiceServing})
		}
	})
}

// BenchmarkFollowerDecision is the same without the network.
func BenchmarkFollowerDecision(b *testing.B) {
	f := newFollower(FollowConfig{Service: ServiceServing, Poll: time.Second, Timeout: time.Second, Expire: 3 * time.Second}, newRand(), time.Now())
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		a := f.wake(now, now)
		f.answered(now, answer{poll: a.poll, at: now, status: wireServing, headers: headers{identity: member}})
	}
}
