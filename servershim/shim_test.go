package servershim

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
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
		time.Sleep(5 * time.Millisecond)
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

// settled waits until the shim serves and its window is at rest.
func settled(t *testing.T, s *Shim) {
	t.Helper()
	within(t, s, 2*time.Second, "the member serves at first", serving)
	time.Sleep(5 * time.Second)
	synctest.Wait()
}

func TestShimFindsLostQuorumWithinTheWindow(t *testing.T) {
	for _, phase := range []time.Duration{0, 20, 50, 99} {
		f := healthy()
		run(t, f, Config{}, func(t *testing.T, s *Shim) {
			settled(t, s)
			time.Sleep(phase * time.Millisecond)
			f.set(func(f *fakeSource) { f.proof = hangs })
			took := within(t, s, time.Second, "quorum is lost", notServing)
			// A proof that began in the very instant of the cut holds for the
			// whole window, and this test looks once a millisecond.
			if took > 251*time.Millisecond {
				t.Errorf("cut %v into an interval: got NOT_SERVING after %v, want at most the window of 250 ms", phase*time.Millisecond, took)
			}
			r := s.Report()
			if r.Reason != healthsvc.ReasonNoQuorum || r.Quorum || r.Write || r.Leads {
				t.Errorf("got %+v, want no quorum, no write, reason no-quorum", r)
			}
			if !r.Read || !r.Voter {
				t.Errorf("got %+v, want read and voter as before: only peers are cut", r)
			}
		})
	}
}

// The leader's disk hangs, and with it its raft loop. Its status goes on to
// name itself leader, and local reads go on to work.
func TestShimOfLeaderWithHangingDiskStopsServingThoughItNamesItself(t *testing.T) {
	f := healthy()
	f.seen.Leader = f.seen.Member
	run(t, f, Config{}, func(t *testing.T, s *Shim) {
		settled(t, s)
		if r := s.Report(); !r.Leads {
			t.Fatalf("got %+v, want a leader", r)
		}
		f.set(func(f *fakeSource) { f.proof = hangs })
		time.Sleep(400 * time.Millisecond)
		synctest.Wait()
		always(t, s, time.Minute, "it stays out while no proof completes", func(r healthsvc.Report) bool {
			if r.Leader == 0 || r.Leader != r.Member {
				t.Fatalf("got leader %x, want itself: a check of leader != 0 has to pass here, or this test shows nothing", r.Leader)
			}
			return !r.Serving && !r.Quorum && !r.Leads && r.Reason == healthsvc.ReasonNoQuorum
		})
	})
}

// Only the link to the leader is cut. The member is leaderless for good.
func TestShimOfLeaderlessMemberSaysSo(t *testing.T) {
	f := healthy()
	run(t, f, Config{}, func(t *testing.T, s *Shim) {
		settled(t, s)
		f.set(func(f *fakeSource) { f.proof = hangs })
		within(t, s, 250*time.Millisecond, "not serving before raft admits it", because(healthsvc.ReasonNoQuorum))
		time.Sleep(time.Second)
		f.set(func(f *fakeSource) { f.seen.Leader, f.proof = 0, leaderNo })
		within(t, s, 500*time.Millisecond, "the reason follows", because(healthsvc.ReasonNoLeader))
		always(t, s, time.Minute, "it stays out", because(healthsvc.ReasonNoLeader))
	})
}

// etcd is not there yet, then comes with its quota full.
func TestShimStartsBeforeEtcd(t *testing.T) {
	f := healthy()
	f.proof, f.read, f.observe = refuses, refuses, refuses
	run(t, f, Config{}, func(t *testing.T, s *Shim) {
		within(t, s, 200*time.Millisecond, "etcd is not there", because(healthsvc.ReasonUnreachable))
		always(t, s, time.Minute, "as long as it is not there", because(healthsvc.ReasonUnreachable))
		f.set(func(f *fakeSource) { f.proof, f.read, f.observe = works, works, works })
		if took := within(t, s, time.Second, "etcd is there", serving); took > 500*time.Millisecond {
			t.Errorf("got serving after %v, want within 500 ms: the first start is no flap", took)
		}
	})
}

func TestShimKnowsNothingBeforeItRuns(t *testing.T) {
	s, err := New(healthy(), healthsvc.NewServer(healthsvc.ServerOptions{EmptyName: true}), Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	if r := s.Report(); r.Serving || r.Reason != healthsvc.ReasonStarting {
		t.Errorf("got %+v, want not serving, reason starting", r)
	}
}

// The quota is full on every member, so that moving would not help.
func TestShimKeepsServingUnderAlarms(t *testing.T) {
	for alarm, reason := range map[membership.Alarm]healthsvc.Reason{
		membership.AlarmNoSpace: healthsvc.ReasonNoSpace, membership.AlarmCorrupt: healthsvc.ReasonCorrupt,
	} {
		f := healthy()
		run(t, f, Config{}, func(t *testing.T, s *Shim) {
			settled(t, s)
			f.set(func(f *fakeSource) { f.seen.Alarms = []membership.Alarm{alarm} })
			within(t, s, 600*time.Millisecond, "no writes", func(r healthsvc.Report) bool { return !r.Write })
			always(t, s, time.Minute, "all but writes works", func(r healthsvc.Report) bool {
				return r.Serving && r.Quorum && r.Read && !r.Write && r.Reason == reason
			})
			f.set(func(f *fakeSource) { f.seen.Alarms = nil })
			within(t, s, 600*time.Millisecond, "the alarm is disarmed", func(r healthsvc.Report) bool { return r.Write && r.Reason == "" })
		})
	}
}

func TestShimNamesEachReason(t *testing.T) {
	for _, c := range []struct {
		why    string
		change func(*fakeSource)
		want   healthsvc.Reason
		limit  time.Duration
	}{
		{"a learner refuses proofs and lists", func(f *fakeSource) { f.proof, f.observe = learnerNo, learnerNo }, healthsvc.ReasonLearner, 200 * time.Millisecond},
		{"in process a learner proves, and says that it is one", func(f *fakeSource) { f.seen.Learner = true }, healthsvc.ReasonLearner, 600 * time.Millisecond},
		{"removed from its cluster", func(f *fakeSource) { f.seen.Removed = true }, healthsvc.ReasonRemoved, 600 * time.Millisecond},
		{"removed, then gone", func(f *fakeSource) {
			f.seen.Removed = true
			f.proof, f.read = refuses, refuses
		}, healthsvc.ReasonRemoved, 600 * time.Millisecond},
		{"the process is gone", func(f *fakeSource) { f.proof, f.read, f.observe = refuses, refuses, refuses }, healthsvc.ReasonUnreachable, 300 * time.Millisecond},
		{"the process stands still", func(f *fakeSource) { f.proof, f.read, f.observe = hangs, hangs, hangs }, healthsvc.ReasonUnreachable, 2 * time.Second},
		{"something else listens", func(f *fakeSource) { f.proof, f.read, f.observe = alien, alien, alien }, healthsvc.ReasonNotEtcd, 300 * time.Millisecond},
		{"local reads hang", func(f *fakeSource) { f.read = hangs }, healthsvc.ReasonReadStalled, 1600 * time.Millisecond},
		{"local reads fail", func(f *fakeSource) { f.read = refuses }, healthsvc.ReasonReadStalled, 700 * time.Millisecond},
	} {
		t.Run(c.why, func(t *testing.T) {
			f := healthy()
			run(t, f, Config{}, func(t *testing.T, s *Shim) {
				settled(t, s)
				f.set(c.change)
				within(t, s, c.limit, "the reason is "+string(c.want), because(c.want))
				always(t, s, time.Minute, "it stays", because(c.want))
			})
		})
	}
}

// A reset connection fails one read on a member that is well.
func TestShimKeepsServingWhenOneLocalReadFails(t *testing.T) {
	f := healthy()
	run(t, f, Config{}, func(t *testing.T, s *Shim) {
		settled(t, s)
		for range 5 {
			f.set(func(f *fakeSource) { f.read, f.readsOnce = refuses, true })
			always(t, s, 2*time.Second, "one read failed, the next is answered", serving)
			f.set(func(f *fakeSource) {
				if f.read != works {
					t.Error("no read was made in 2 s: this test shows nothing")
				}
			})
		}
	})
}

func TestShimWaitsForTheAppliedIndex(t *testing.T) {
	f := healthy()
	f.seen.RaftIndex, f.seen.AppliedIndex = 1000, 10
	run(t, f, Config{}, func(t *testing.T, s *Shim) {
		within(t, s, time.Second, "catching up", because(healthsvc.ReasonCatchingUp))
		// The commit index runs on meanwhile; only the first one seen counts.
		f.set(func(f *fakeSource) { f.seen.RaftIndex, f.seen.AppliedIndex = 2000, 999 })
		always(t, s, 10*time.Second, "still behind", because(healthsvc.ReasonCatchingUp))
		f.set(func(f *fakeSource) { f.seen.AppliedIndex = 1000 })
		within(t, s, 300*time.Millisecond, "it has caught up", serving)
	})
}

func TestShimServesWithoutObservations(t *testing.T) {
	for name, observe := range map[string]answer{"refused": refuses, "hanging": hangs} {
		f := healthy()
		f.observe = observe
		run(t, f, Config{}, func(t *testing.T, s *Shim) {
			within(t, s, time.Second, "proofs are enough when observations are "+name, serving)
			always(t, s, time.Minute, "and stay enough", serving)
		})
	}
}

// A member that comes and goes has to stay good for longer each time, up to the
// maximum; a long calm makes that good again.
func TestShimHoldsAFlappingMemberDown(t *testing.T) {
	f := healthy()
	run(t, f, Config{}, func(t *testing.T, s *Shim) {
		settled(t, s)
		var took []time.Duration
		flap := func() {
			f.set(func(f *fakeSource) { f.proof = hangs })
			within(t, s, 2*time.Second, "lost", notServing)
			time.Sleep(2 * time.Second)
			f.set(func(f *fakeSource) { f.proof = works })
			took = append(took, within(t, s, 2*time.Minute, "back", serving).Round(time.Second))
			time.Sleep(5 * time.Second)
		}
		for range 9 {
			flap()
		}
		want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}
		for i := range want {
			if want[i] *= time.Second; took[i] != want[i] {
				t.Fatalf("got waits %v, want the %d. about %v: doubling up to 60 s", took, i+1, want[i])
			}
		}
		time.Sleep(20 * time.Minute)
		flap()
		if last := took[len(took)-1]; last != time.Second {
			t.Errorf("got a wait of %v after 20 calm minutes, want 1 s as after the first loss", last)
		}
	})
}

// A hundred elections must not end with every member held down.
func TestShimForgivesLossesInElections(t *testing.T) {
	f := healthy()
	run(t, f, Config{}, func(t *testing.T, s *Shim) {
		settled(t, s)
		for i := range 100 {
			f.set(func(f *fakeSource) { f.proof = hangs })
			time.Sleep(1500 * time.Millisecond)
			f.set(func(f *fakeSource) { f.proof = works; f.seen.Term++ })
			if took := within(t, s, 5*time.Second, "back after an election", serving); took > 600*time.Millisecond {
				t.Fatalf("election %d: got serving after %v, want within 600 ms: nobody's fault", i, took)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// One that had been lost before is back as soon as any other: else nobody would serve after the
// leader of a restless cluster is gone.
func TestShimThatFlappedIsBackAtOnceAfterAnElection(t *testing.T) {
	f := healthy()
	run(t, f, Config{}, func(t *testing.T, s *Shim) {
		settled(t, s)
		out := func(then func(*fakeSource)) time.Duration {
			f.set(func(f *fakeSource) { f.proof = hangs })
			time.Sleep(1500 * time.Millisecond)
			f.set(func(f *fakeSource) { f.proof = works; then(f) })
			return within(t, s, time.Minute, "back", serving)
		}
		for range 3 {
			out(func(*fakeSource) {})
			time.Sleep(2 * time.Second)
		}
		if took := out(func(f *fakeSource) { f.seen.Term++ }); took > 600*time.Millisecond {
			t.Errorf("got serving %v after an election, want within 600 ms though it flapped before", took)
		}
		time.Sleep(2 * time.Second)
		if took := out(func(*fakeSource) {}); took < 8*time.Second {
			t.Errorf("got serving %v after one more flap, want 8 s at least: those before still count", took)
		}
	})
}

func TestShimDrains(t *testing.T) {
	run(t, healthy(), Config{}, func(t *testing.T, s *Shim) {
		settled(t, s)
		s.Drain()
		s.Drain()
		synctest.Wait()
		if r := s.Report(); r.Serving || r.Reason != healthsvc.ReasonDraining || !r.Quorum || !r.Write {
			t.Errorf("got %+v, want NOT_SERVING, draining, at once, and everything else as it is", r)
		}
		always(t, s, time.Minute, "it stays drained", because(healthsvc.ReasonDraining))
	})
}

// A cluster across regions: a round trip longer than the floor of the window.
func TestShimFollowsALongRoundTrip(t *testing.T) {
	f := healthy()
	f.rtt = 400 * time.Millisecond
	run(t, f, Config{}, func(t *testing.T, s *Shim) {
		within(t, s, 5*time.Second, "it serves once the window has followed", serving)
		always(t, s, 2*time.Minute, "it never flaps", serving)
		f.set(func(f *fakeSource) { f.proof = hangs })
		if took := within(t, s, 2*time.Second, "lost", notServing); took > time.Second {
			t.Errorf("got NOT_SERVING after %v, want at most the ceiling", took)
		}
	})
}

func TestShimBoundsProofsThatHang(t *testing.T) {
	f := healthy()
	run(t, f, Config{}, func(t *testing.T, s *Shim) {
		settled(t, s)
		f.set(func(f *fakeSource) { f.proof, f.read, f.observe = hangs, hangs, hangs })
		begun := 0
		f.set(func(f *fakeSource) { begun = f.proofs })
		time.Sleep(time.Minute)
		f.set(func(f *fakeSource) {
			if f.most > 16+2 {
				t.Errorf("got %d calls at once, want at most 16 proofs (1.5 s of them, 100 ms apart), a read and an observation", f.most)
			}
			if n := f.proofs - begun; n < 595 || n > 605 {
				t.Errorf("got %d proofs in a minute, want 600: the rate stays the same while it is out", n)
			}
		})
	})
}

// stubborn ignores its context for a while.
type stubborn struct {
	*fakeSource
	release chan struct{}
}

func (s *stubborn) Prove(context.Context) error {
	s.set(func(f *fakeSource) { f.hanging++; f.most = max(f.most, f.hanging) })
	<-s.release
	return errRefused
}

func TestShimSurvivesASourceThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &stubborn{healthy(), make(chan struct{})}
		srv := healthsvc.NewServer(healthsvc.ServerOptions{})
		s, err := New(src, srv, Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		src.set(func(f *fakeSource) {
			if f.most != maxOutstanding {
				t.Errorf("got %d proofs out, want no more than %d", f.most, maxOutstanding)
			}
		})
		cancel()
		begin := time.Now()
		if err := <-ended; err != nil || time.Since(begin) > leaveTime {
			t.Errorf("got %v after %v, want nil within %v", err, time.Since(begin), leaveTime)
		}
		close(src.release)
	})
}

// dozing is a log handler that takes its time, and so holds up the loop.
type dozing struct {
	slog.Handler
	nap *atomic.Int64
}

func (d dozing) Handle(context.Context, slog.Record) error {
	time.Sleep(time.Duration(d.nap.Load()))
	return nil
}

func (d dozing) Enabled(context.Context, slog.Level) bool { return true }

// pausing returns a config whose loop stands still for nap at each change of the
// verdict. An alarm is such a change, and no bad news about quorum.
func pausing(nap *atomic.Int64) Config {
	return Config{Logger: slog.New(dozing{slog.DiscardHandler, nap})}
}

func TestShimThatWokeLateDoesNotBlameTheMember(t *testing.T) {
	f := healthy()
	var nap atomic.Int64
	run(t, f, pausing(&nap), func(t *testing.T, s *Shim) {
		settled(t, s)
		for range 20 {
			nap.Store(0)
			f.set(func(f *fakeSource) { f.seen.Alarms = nil })
			time.Sleep(time.Second)
			nap.Store(int64(900 * time.Millisecond))
			f.set(func(f *fakeSource) { f.seen.Alarms = []membership.Alarm{membership.AlarmNoSpace} })
			always(t, s, 3*time.Second, "a late loop is no evidence", serving)
		}
	})
}

func TestShimThatWokeLateStillFindsALoss(t *testing.T) {
	f := healthy()
	var nap atomic.Int64
	run(t, f, pausing(&nap), func(t *testing.T, s *Shim) {
		settled(t, s)
		nap.Store(int64(900 * time.Millisecond))
		f.set(func(f *fakeSource) { f.seen.Alarms = []membership.Alarm{membership.AlarmNoSpace} })
		within(t, s, time.Second, "the loop pauses", func(r healthsvc.Report) bool { return r.Reason == healthsvc.ReasonNoSpace })
		f.set(func(f *fakeSource) { f.proof = hangs })
		within(t, s, 900*time.Millisecond+250*time.Millisecond, "a loss during the pause is seen a window after it at most", notServing)
	})
}

// A pause of many seconds. What was known is void, and one proof brings it
// back, if there is one.
func TestShimThatWokeVeryLateKnowsNothing(t *testing.T) {
	for name, back := range map[string]bool{"member is well": true, "member has no quorum": false} {
		t.Run(name, func(t *testing.T) {
			f := healthy()
			var nap atomic.Int64
			run(t, f, pausing(&nap), func(t *testing.T, s *Shim) {
				settled(t, s)
				nap.Store(int64(9 * time.Second))
				f.set(func(f *fakeSource) { f.seen.Alarms = []membership.Alarm{membership.AlarmNoSpace} })
				within(t, s, time.Second, "the loop pauses", func(r healthsvc.Report) bool { return r.Reason == healthsvc.ReasonNoSpace })
				nap.Store(0)
				f.set(func(f *fakeSource) { f.rtt = 10 * time.Millisecond })
				if !back {
					f.set(func(f *fakeSource) { f.proof = hangs })
				}
				time.Sleep(9*time.Second - time.Millisecond)
				within(t, s, 5*time.Millisecond, "after it nothing is known", because(healthsvc.ReasonStale))
				if back {
					within(t, s, 20*time.Millisecond, "until one proof", serving)
					return
				}
				within(t, s, 300*time.Millisecond, "no proof came", because(healthsvc.ReasonNoQuorum))
				always(t, s, time.Minute, "it stays out", because(healthsvc.ReasonNoQuorum))
			})
		})
	}
}

func TestShimLogsOneLineAChange(t *testing.T) {
	f := healthy()
	var lines atomic.Int64
	count := countingHandler{slog.DiscardHandler, &lines}
	run(t, f, Config{Logger: slog.New(count)}, func(t *testing.T, s *Shim) {
		settled(t, s)
		begin := lines.Load()
		time.Sleep(10 * time.Minute)
		if lines.Load() != begin {
			t.Errorf("got %d lines in ten minutes in which nothing changed, want none", lines.Load()-begin)
		}
		f.set(func(f *fakeSource) { f.proof = hangs })
		time.Sleep(10 * time.Minute)
		if lines.Load() != begin+1 {
			t.Errorf("got %d lines for one loss, want one", lines.Load()-begin)
		}
	})
}

type countingHandler struct {
	slog.Handler
	lines *atomic.Int64
}

func (c countingHandler) Handle(context.Context, slog.Record) error { c.lines.Add(1); return nil }

func (c countingHandler) Enabled(context.Context, slog.Level) bool { return true }

func TestShimOfPromotedLearnerSettlesFirst(t *testing.T) {
	f := healthy()
	run(t, f, Config{}, func(t *testing.T, s *Shim) {
		settled(t, s)
		f.set(func(f *fakeSource) { f.seen.Learner = true })
		within(t, s, 600*time.Millisecond, "it is a learner", because(healthsvc.ReasonLearner))
		time.Sleep(10 * time.Second)
		f.set(func(f *fakeSource) { f.seen.Learner = false })
		within(t, s, 200*time.Millisecond, "promoted, it settles", because(healthsvc.ReasonSettling))
		within(t, s, 400*time.Millisecond, "then it serves", serving)
	})
}

// A completed proof says by itself that the member is up to date; indexes that
// are told no more must not keep it out.
func TestShimDoesNotWaitForIndexesThatAreToldNoMore(t *testing.T) {
	f := healthy()
	f.seen.RaftIndex, f.seen.AppliedIndex = 1000, 10
	run(t, f, Config{}, func(t *testing.T, s *Shim) {
		within(t, s, time.Second, "catching up", because(healthsvc.ReasonCatchingUp))
		f.set(func(f *fakeSource) { f.observe = hangs })
		within(t, s, 1500*time.Millisecond, "it serves by its proofs", serving)
	})
}
