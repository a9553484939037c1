package servershim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
)

// script drives a core by hand: no loop, no goroutine, no clock.
type script struct {
	*core
	now time.Time
	due time.Time
	out map[callKind][]call // not answered yet, oldest first
}

func newScript() *script {
	cfg := Config{}.withDefaults()
	return &script{core: newCore(cfg, start), now: start, out: make(map[callKind][]call)}
}

// wakeAt lets the loop wake then, and start what is due.
func (s *script) wakeAt(now time.Time) {
	s.now = now
	s.wake(s.due, now)
	s.turn()
}

func (s *script) turn() {
	s.settle(s.now)
	for _, c := range s.start(s.now) {
		s.out[c.kind] = append(s.out[c.kind], c)
	}
	s.due = s.next(s.now)
}

// answer answers the oldest call of a kind.
func (s *script) answer(kind callKind, o outcome) proofOutcome {
	o.call, o.end = s.out[kind][0], s.now
	s.out[kind] = s.out[kind][1:]
	how, _ := s.result(s.now, o)
	s.turn()
	return how
}

// run lets time pass with the loop awake on time. Everything is answered at once
// when well, otherwise nothing is.
func (s *script) run(long time.Duration, well bool) {
	for end := s.now.Add(long); ; {
		if well {
			for _, kind := range []callKind{callRead, callObserve, callProve} {
				for len(s.out[kind]) > 0 {
					s.answer(kind, outcome{seen: membership.Observation{Cluster: 1, Member: 2, Leader: 3, Term: 5, RaftIndex: 9, AppliedIndex: 9, At: s.now}})
				}
			}
		}
		if !s.due.Before(end) {
			s.wakeAt(end)
			return
		}
		s.wakeAt(s.due)
	}
}

func (s *script) report() healthsvc.Report { return s.decide(s.now, 0) }

func serves(t *testing.T) *script {
	t.Helper()
	s := newScript()
	s.wakeAt(start)
	s.run(time.Second, true)
	if r := s.report(); !r.Serving {
		t.Fatalf("got %+v after a second in which all is well, want serving", r)
	}
	return s
}

func TestCoreCountsAProofFromWhenItBegan(t *testing.T) {
	s := serves(t)
	s.run(99*ms, false) // one more proof is out
	begin := s.core.proofs.out[s.out[callProve][0].id].begin
	s.run(begin.Add(240*ms).Sub(s.now), false)
	if how := s.answer(callProve, outcome{}); how != proofCompleted {
		t.Fatalf("got %q for a proof of 240 ms, want completed", how)
	}
	held := s.held(s.now)
	left := s.heldUntil().Sub(begin)
	if !held || left < 240*ms || s.core.proofs.newest != begin {
		t.Fatalf("got held %v, newest %v, want it to count from its begin %v", held, s.core.proofs.newest, begin)
	}
	// One that comes back after a newer one takes nothing away.
	newest := s.core.proofs.newest
	s.core.proofs.completed(newest.Add(-ms))
	if s.core.proofs.newest != newest {
		t.Errorf("got newest %v after an older proof came late, want %v still", s.core.proofs.newest, newest)
	}
}

func TestCoreDoesNotHoldQuorumByAProofThatCameTooLate(t *testing.T) {
	s := serves(t)
	s.run(1400*ms, false)
	if s.report().Quorum {
		t.Fatal("got quorum after 1.4 s without a proof")
	}
	begin := s.core.proofs.out[s.out[callProve][0].id].begin
	if how := s.answer(callProve, outcome{}); how != proofLate || s.report().Quorum || s.core.gate.streak != 0 {
		t.Errorf("got %q, quorum %v, streak %d by a proof of %v, want late: it says what was true then", how, s.report().Quorum, s.core.gate.streak, s.now.Sub(begin))
	}
}

func TestCoreProofsOverlap(t *testing.T) {
	s := serves(t)
	s.run(time.Second, false)
	if n := len(s.out[callProve]); n < 9 || n > 11 {
		t.Errorf("got %d proofs out after a second without an answer, want ten: a doomed one must not hold the next back", n)
	}
	s.run(time.Minute, false)
	if n := len(s.out[callProve]); n != maxOutstanding {
		t.Errorf("got %d proofs out after a minute in which none came back, want %d", n, maxOutstanding)
	}
	if len(s.out[callRead]) != 1 || len(s.out[callObserve]) != 1 {
		t.Errorf("got %d reads and %d observations out, want one of each", len(s.out[callRead]), len(s.out[callObserve]))
	}
}

func TestCoreWakesWhenQuorumIsLostNotOnlyAtTicks(t *testing.T) {
	s := serves(t)
	for s.held(s.now) {
		s.run(s.due.Sub(s.now), false)
	}
	if late := s.now.Sub(s.heldUntil()); late > 1 {
		t.Errorf("got the loss %v after the window had ended, want at once", late)
	}
}

func TestCoreFailedProofEndsAStreakOnlyIfItBeganInIt(t *testing.T) {
	s := serves(t)
	s.run(time.Second, false) // lost; ten proofs are out
	stuck := s.out[callProve]
	s.out[callProve] = nil
	s.run(250*ms, true)
	streak := s.core.gate.streak
	if streak == 0 {
		t.Fatal("got no streak out of proofs that completed")
	}
	s.out[callProve] = append(stuck[:1:1], s.out[callProve]...)
	s.answer(callProve, outcome{err: errRefused})
	if s.core.gate.streak != streak {
		t.Errorf("got a streak of %d after a proof of long ago failed, want %d still", s.core.gate.streak, streak)
	}
	s.run(s.core.tick.Sub(s.now), false)
	s.answer(callProve, outcome{err: errRefused})
	if s.core.gate.streak != 0 {
		t.Errorf("got a streak of %d after the newest proof failed, want none", s.core.gate.streak)
	}
}

func TestCoreIgnoresWhatItDidNotAsk(t *testing.T) {
	s := serves(t)
	before := s.report()
	if how, _ := s.result(s.now, outcome{call: call{callProve, 12345}, end: s.now}); how != "" {
		t.Errorf("got %q for a proof that was never started, want nothing", how)
	}
	s.result(s.now, outcome{})
	if got := s.report(); got != before {
		t.Errorf("got %+v, want %+v as before", got, before)
	}
}

// On a machine that is slow for good nothing is forgiven for ever.
func TestCoreOfASlowMachineFindsALossInTheEnd(t *testing.T) {
	for _, slow := range []time.Duration{50 * ms, 200 * ms, 900 * ms} {
		s := serves(t)
		begin := s.now
		for s.report().Serving {
			s.wakeAt(s.due.Add(slow))
			if s.now.Sub(begin) > 3*time.Second {
				t.Fatalf("every wake %v late: got serving 3 s after the last proof, want the window, the ceiling and a wake at most", slow)
			}
		}
		s.run(100*ms, false)
	}
}

func TestCoreOfASlowMachineServesWhileProofsComplete(t *testing.T) {
	for _, slow := range []time.Duration{20 * ms, 50 * ms, 200 * ms, 500 * ms} {
		s := serves(t)
		for range 1000 {
			s.wakeAt(s.due.Add(slow))
			for len(s.out[callProve]) > 0 {
				s.answer(callProve, outcome{})
			}
			for len(s.out[callRead]) > 0 {
				s.answer(callRead, outcome{})
			}
			if r := s.report(); !r.Serving {
				t.Fatalf("every wake %v late: got %q, want serving: proofs complete", slow, r.Reason)
			}
		}
	}
}

func TestCoreDoesNotLeadByAnOldWord(t *testing.T) {
	s := serves(t)
	s.core.seen.Leader = s.core.seen.Member
	if r := s.report(); !r.Leads {
		t.Fatalf("got %+v of a member that has just named itself, want one that leads", r)
	}
	silent := s.now
	for s.now.Sub(silent) < 3*time.Second { // reads and proofs are answered, observations are not
		s.wakeAt(s.due)
		for _, kind := range []callKind{callRead, callProve} {
			for len(s.out[kind]) > 0 {
				s.answer(kind, outcome{})
			}
		}
	}
	if r := s.report(); !r.Serving || r.Leads {
		t.Errorf("got serving %v, leads %v after 3 s without a word on who leads; want true, false: it may have lost the lead since", r.Serving, r.Leads)
	}
}

func TestCoreReasonOrder(t *testing.T) {
	s := serves(t)
	for _, c := range []struct {
		change func()
		want   healthsvc.Reason
	}{
		{func() {}, ""},
		{func() { s.core.seen.Alarms = []membership.Alarm{membership.AlarmNoSpace} }, healthsvc.ReasonNoSpace},
		{func() { s.core.seen.Alarms = append(s.core.seen.Alarms, membership.AlarmCorrupt) }, healthsvc.ReasonCorrupt},
		{func() { s.core.gate.open = false }, healthsvc.ReasonSettling},
		{func() { s.core.behind = true }, healthsvc.ReasonCatchingUp},
		{func() { s.core.reads.failed = true }, healthsvc.ReasonReadStalled},
		{func() { s.core.proofs.newest = start.Add(-time.Hour); s.core.reads.failed = false }, healthsvc.ReasonNoQuorum},
		{func() { s.core.seen.Leader = 0 }, healthsvc.ReasonNoLeader},
		{func() { s.core.reads.err, s.core.observes.err = errRefused, errRefused }, healthsvc.ReasonUnreachable},
		{func() { s.core.refusal = fmt.Errorf("wrapped: %w", membership.ErrNotEtcd) }, healthsvc.ReasonNotEtcd},
		{func() { s.core.learner = true }, healthsvc.ReasonLearner},
		{func() { s.core.seen.Removed = true }, healthsvc.ReasonRemoved},
		{func() { s.core.draining = true }, healthsvc.ReasonDraining},
	} {
		c.change()
		if r := s.report(); r.Reason != c.want || r.Serving != (c.want == "" || c.want == healthsvc.ReasonNoSpace || c.want == healthsvc.ReasonCorrupt) {
			t.Errorf("got reason %q, serving %v, want %q", r.Reason, r.Serving, c.want)
		}
	}
}

// Whatever comes, in whatever order: serving implies a proof that began within
// the ceiling and what was forgiven, a read that works, and a voter.
func TestCoreNeverServesWithoutProof(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		s := newScript()
		s.wakeAt(start)
		lastProof := time.Time{}
		for range 300 {
			kind := callKind(1 + rnd.IntN(3))
			switch {
			case rnd.IntN(3) == 0:
				s.wakeAt(s.due.Add(time.Duration(rnd.ExpFloat64() * float64(20*ms))))
			case rnd.IntN(50) == 0:
				s.wakeAt(s.now.Add(time.Duration(rnd.Int64N(int64(3 * time.Second)))))
			case len(s.out[kind]) > 0:
				o := outcome{seen: membership.Observation{Member: 1, Term: uint64(rnd.IntN(9)), Learner: rnd.IntN(9) == 0, At: s.now}}
				o.err = []error{nil, nil, nil, errRefused, context.DeadlineExceeded, membership.ErrLearner, membership.ErrNoLeader}[rnd.IntN(7)]
				if kind == callProve && o.err == nil {
					if b := s.core.proofs.out[s.out[kind][0].id].begin; b.After(lastProof) {
						lastProof = b
					}
				}
				s.answer(kind, o)
			}
			r := s.report()
			if !r.Serving {
				continue
			}
			if age := s.now.Sub(lastProof); lastProof.IsZero() || age > 2*s.cfg.ElectionTimeout {
				t.Fatalf("seed %d: serving with the newest proof %v old, want at most a ceiling and a ceiling forgiven", seed, age)
			}
			if !r.Quorum || !r.Voter || !r.Read || !r.Write {
				t.Fatalf("seed %d: got %+v, want that serving implies quorum, voter and read", seed, r)
			}
		}
	}
}

func TestSampleNeverRunsTwice(t *testing.T) {
	s := sample{deadline: time.Second}
	if s.works(start) {
		t.Error("got working before anything was asked")
	}
	if !s.start(start, 100*ms) || s.start(at(time.Hour), 100*ms) {
		t.Error("want one call, and no second one while it is out")
	}
	s.finish(at(ms), nil)
	if !s.works(at(ms)) || s.start(at(99*ms), 100*ms) || !s.start(at(100*ms), 100*ms) {
		t.Error("want it to work, and the next one an interval after the first began")
	}
	if !s.works(at(1100*ms)) || s.works(at(1101*ms)) {
		t.Error("want it to work until the call that is out passes its deadline of 1 s")
	}
	s.finish(at(2*time.Second), errors.New("deadline"))
	if s.works(at(2 * time.Second)) {
		t.Error("want it not to work after a failure")
	}
}

func TestSampleBelievesAFailureOnlyWhenItIsRepeated(t *testing.T) {
	s := sample{deadline: time.Second, interval: 100 * ms}
	every := 500 * ms
	for _, step := range []struct {
		begin, end time.Duration
		err        error
		works      bool
		next       time.Duration // when it is asked again
		why        string
	}{
		{0, ms, nil, true, 500 * ms, "answered"},
		{500 * ms, 501 * ms, errRefused, true, 600 * ms, "one failure may be a connection that was reset"},
		{600 * ms, 601 * ms, nil, true, 1100 * ms, "it was"},
		{1100 * ms, 1350 * ms, errRefused, true, 1400 * ms, "one failure again, the earlier one is forgotten"},
		{1400 * ms, 1401 * ms, errRefused, false, 1500 * ms, "two in a row"},
		{1500 * ms, 1501 * ms, errRefused, false, 1600 * ms, "and on"},
		{1600 * ms, 1601 * ms, nil, true, 2100 * ms, "answered"},
		{2100 * ms, 3100 * ms, errRefused, false, 3200 * ms, "silent for its whole deadline"},
	} {
		if !s.start(at(step.begin), every) {
			t.Fatalf("at %v: got no call, want one: %s", step.begin, step.why)
		}
		s.finish(at(step.end), step.err)
		if got := s.works(at(step.end)); got != step.works || s.next != at(step.next) {
			t.Errorf("at %v: got works %v, asked again at %v; want %v, %v: %s", step.end, got, s.next.Sub(start), step.works, step.next, step.why)
		}
	}
}

func TestSampleSparesACallOnceWhenTheLoopWasLate(t *testing.T) {
	s := sample{deadline: time.Second}
	s.start(start, 100*ms)
	s.finish(at(ms), nil)
	s.start(at(100*ms), 100*ms)
	s.late(at(5 * time.Second))
	if !s.works(at(6 * time.Second)) {
		t.Error("got not working, want the call's time to begin anew at the late wake")
	}
	s.finish(at(6*time.Second), errRefused)
	if !s.works(at(6*time.Second)) || !s.start(at(6*time.Second), 100*ms) {
		t.Error("want the failure to be no evidence, and the call to be repeated at once")
	}
	s.late(at(9 * time.Second))
	s.finish(at(10*time.Second), errRefused)
	if s.works(at(10 * time.Second)) {
		t.Error("got working, want a second late wake to be no excuse")
	}
}

func TestPollHintGrowsWithTheCrowd(t *testing.T) {
	for watchers, want := range map[int]time.Duration{
		-1: 500 * ms, 0: 500 * ms, 1000: 500 * ms, 2000: time.Second, 5000: 2500 * ms, 10000: 5 * time.Second, 1 << 40: 5 * time.Second,
	} {
		if got := pollHint(500*ms, watchers); got != want {
			t.Errorf("%d watchers: got %v, want %v", watchers, got, want)
		}
	}
}

// Who led is known from when proofs still completed; where nobody tells, it may have been this
// member. (etcd tells its leader only to a user with authentication enabled.)
func TestCoreReplacedLeaderWaitsOutItsHoldDown(t *testing.T) {
	for _, c := range []struct {
		why           string
		before, after membership.Observation
		least, most   time.Duration
	}{
		{"it led",
			membership.Observation{Cluster: 1, Member: 2, Leader: 2, Term: 5, RaftIndex: 9, AppliedIndex: 9},
			membership.Observation{Cluster: 1, Member: 2, Leader: 3, Term: 6, RaftIndex: 9, AppliedIndex: 9}, 4 * time.Second, 5 * time.Second},
		{"nobody tells who led",
			membership.Observation{Cluster: 1, Member: 2, Term: 5, Revision: 9},
			membership.Observation{Cluster: 1, Member: 2, Term: 6, Revision: 9}, 4 * time.Second, 5 * time.Second},
		{"another one led",
			membership.Observation{Cluster: 1, Member: 2, Leader: 4, Term: 5, RaftIndex: 9, AppliedIndex: 9},
			membership.Observation{Cluster: 1, Member: 2, Leader: 3, Term: 6, RaftIndex: 9, AppliedIndex: 9}, 0, 500 * ms},
	} {
		s := newScript()
		say := c.before
		step := func(long time.Duration, well bool) {
			for end := s.now.Add(long); ; {
				for _, kind := range []callKind{callRead, callObserve, callProve} {
					for len(s.out[kind]) > 0 && (well || kind != callProve) {
						o := say
						o.At = s.now
						s.answer(kind, outcome{seen: o})
					}
				}
				if !s.due.Before(end) {
					s.now = end
					return
				}
				s.wakeAt(s.due)
			}
		}
		s.wakeAt(s.now)
		step(5*time.Second, true)
		for range 3 { // holds of 1, 2 and 4 s
			step(1500*ms, false)
			step(10*time.Second, true)
		}
		say = c.after // its last word before the loss is noticed names the next leader
		step(1500*ms, false)
		back := s.now
		for !s.report().Serving && s.now.Sub(back) < time.Minute {
			step(10*ms, true)
		}
		if took := s.now.Sub(back); took < c.least || took > c.most {
			t.Errorf("%s: serving %v after its proofs complete, want %v to %v", c.why, took, c.least, c.most)
		}
	}
}
