package servershim

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs a shim on src in a bubble while story goes on.
func run(t *testing.T, src Source, cfg Config, story func(t *testing.T, s *Shim)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if cfg.Logger == nil {
			cfg.Logger = slog.New(slog.DiscardHandler)
		}
		srv := healthsvc.NewServer(healthsvc.ServerOptions{EmptyName: true, Validity: Validity(0)})
		s, err := New(src, srv, cfg)
		if err != nil {
			t.Fatalf("New: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		story(t, s)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: got %v, want nil when its context ends", err)
		}
	})
}

// within returns how long it takes until the report satisfies want, and fails
// after limit.
func within(t *testing.T, s *Shim, limit time.Duration, what string, want func(healthsvc.Report) bool) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		synctest.Wait()
		if want(s.Report()) {
			return time.Since(begin)
		}
		if time.Since(begin) >= limit {
			t.Fatalf("%s: not within %v; newest report %+v", what, limit, s.Report())
		}
		time.Sleep(time.Millisecond)
	}
}

// always fails if the report stops to satisfy want before that long.
func always(t *testing.T, s *Shim, long time.Duration, what string, want func(healthsvc.Report) bool) {
	t.Helper()
	begin := time.Now()
	for time.Since(begin) < long {
		synctest.Wait()
		if !want(s.Report()) {
			t.Fatalf("%s: ended after %v; newest report %+v", what, time.Since(begin), s.Report())
		}
		time.Sleep(time.Millisecond)
	}
}

func serving(r healthsvc.Report) bool    { return r.Serving }
func notServing(r healthsvc.Report) bool { return !r.Serving }

func because(reason healthsvc.Reason) func(healthsvc.Report) bool {
	return func(r healthsvc.Report) bool { return !r.Serving && r.Reason == reason }
}

func TestShimOfHealthyMemberServesAfterThreeProofs(t *testing.T) {
	run(t, healthy(), Config{}, func(t *testing.T, s *Shim) {
		took := within(t, s, time.Second, "a healthy member serves", serving)
		if took < 200*time.Millisecond || took > 350*time.Millisecond {
			t.Errorf("got serving after %v, want 200-350 ms: three proofs in a row, 100 ms apart", took)
		}
		r := s.Report()
		if !r.Quorum || !r.Read || !r.Write || !r.Voter || r.Leads || r.Reason != "" {
			t.Errorf("got %+v, want quorum, read, write, voter, no leader, no reason", r)
		}
		if r.Cluster != 1 || r.Member != 2 || r.Leader != 3 || r.Term != 5 || r.Start.IsZero() {
			t.Errorf("got identity %+v, want what the member said of itself", r.Identity)
		}
		always(t, s, time.Hour/60, "a healthy member goes on serving", serving)
	})
}
