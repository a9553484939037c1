package prober

import (
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
)

func TestGatherAsksNoMoreThanItNeeds(t *testing.T) {
	for _, c := range []struct {
		name                       string
		shim, inproc               string
		checks, proofs, self, seek [2]int // least and most of each in ten minutes
	}{
		{"with a shim", "serving", "absent", [2]int{1200, 1210}, [2]int{0, 0}, [2]int{55, 80}, [2]int{1, 20}},
		{"in process", "none", "serving", [2]int{1200, 1210}, [2]int{0, 0}, [2]int{55, 80}, [2]int{1, 20}},
		{"stock", "none", "absent", [2]int{2400, 2420}, [2]int{595, 605}, [2]int{590, 625}, [2]int{2, 36}},
	} {
		s := newSim(t, []string{"a"})
		s.ends[0].shim.mode, s.ends[0].inproc.mode = c.shim, c.inproc
		s.until(s.at(10 * time.Minute))
		for what, bounds := range map[string]struct {
			got    int
			bounds [2]int
		}{
			"checks":       {s.orders[doCheck], c.checks},
			"proofs":       {s.orders[doProve], c.proofs},
			"observations": {s.orders[doObserve], c.self},
			"searches":     {s.orders[doSeekShim] + s.orders[doSeekEtcd], c.seek},
			"redials":      {s.orders[doRedial], [2]int{0, 0}},
		} {
			if bounds.got < bounds.bounds[0] || bounds.got > bounds.bounds[1] {
				t.Errorf("%s: %d %s in 10 minutes, want %d to %d: many clients ask this member", c.name, bounds.got, what, bounds.bounds[0], bounds.bounds[1])
			}
		}
	}
}

func TestGatherAsksADeadMemberNoMoreThanALiveOne(t *testing.T) {
	s := newSim(t, []string{"a"})
	s.ends[0].path = "refused"
	s.until(s.at(10 * time.Minute))
	if n := s.orders[doCheck]; n > 1260 {
		t.Errorf("%d checks of a refused port in 10 minutes, want one per poll", n)
	}
}

func TestGatherStretchesChecksAsTheServerWishes(t *testing.T) {
	s := newSim(t, []string{"a"})
	s.ends[0].set("shim", "serving", s.now)
	s.until(s.at(time.Second))
	s.ends[0].gather.ev.shim.news.Poll = time.Hour // nobody may stretch it without bounds
	if d := s.ends[0].gather.checkEvery(s.now); d != 10*time.Second {
		t.Errorf("the next check is in %v, want 10s: a silent cut would go unnoticed", d)
	}
}

func TestGatherScalesWithTheElectionTimeout(t *testing.T) {
	base, slow := scaled(Config{}), scaled(Config{ElectionTimeout: 4 * time.Second})
	for name, d := range map[string][2]time.Duration{
		"poll": {base.poll, slow.poll}, "timeout": {base.timeout, slow.timeout}, "hold": {base.hold, slow.hold},
		"proofs": {base.proofEvery, slow.proofEvery}, "proof deadline": {base.proofTimeout, slow.proofTimeout},
		"hard end": {base.hard, slow.hard}, "silence": {base.silent, slow.silent},
	} {
		if d[1] != 4*d[0] {
			t.Errorf("%s is %v at an election timeout of 4 s, want 4 times %v", name, d[1], d[0])
		}
	}
	if got := scaled(Config{ElectionTimeout: 4 * time.Second, Poll: time.Second}).poll; got != time.Second {
		t.Errorf("an explicit Poll of 1s became %v, want it untouched", got)
	}
	if got := scaled(Config{ElectionTimeout: 100 * time.Millisecond}); got != base {
		t.Errorf("a shorter election timeout changed the times, want the defaults as floor")
	}
}

func TestGatherDropsStaleNews(t *testing.T) {
	now := time.Unix(1000, 0)
	start := time.Unix(500, 0)
	identity := func(start time.Time, term uint64) healthsvc.Identity {
		return healthsvc.Identity{Member: 1, Term: term, Start: start}
	}
	for name, c := range map[string]struct {
		id      healthsvc.Identity
		session int
		after   time.Duration
		want    healthsvc.Status
	}{
		"same start, older term":                       {identity(start, 6), 2, 0, healthsvc.StatusServing},
		"earlier start":                                {identity(start.Add(-1), 9), 2, 0, healthsvc.StatusServing},
		"an earlier connection":                        {identity(start, 8), 1, 0, healthsvc.StatusServing},
		"same start, newer term":                       {identity(start, 8), 2, 0, healthsvc.StatusNotServing},
		"later start":                                  {identity(start.Add(1), 1), 2, 0, healthsvc.StatusNotServing},
		"another member took the address":              {healthsvc.Identity{Member: 2, Term: 1}, 2, 0, healthsvc.StatusNotServing},
		"older term, but the known one is out of date": {identity(start, 6), 2, time.Minute, healthsvc.StatusNotServing},
	} {
		g := newGather(scaled(Config{}), true, func() float64 { return 0 })
		g.shim.start(now)
		g.shim.start(now) // the second session
		g.told(true, 2, healthsvc.News{Status: healthsvc.StatusServing, Identity: identity(start, 7), Heard: now, Began: now}, now)
		at := now.Add(c.after)
		g.told(true, c.session, healthsvc.News{Status: healthsvc.StatusNotServing, Identity: c.id, Heard: at, Began: at}, at)
		if got := g.ev.shim.news.Status; got != c.want {
			t.Errorf("%s: the report is taken for %v, want %v", name, got, c.want)
		}
	}
}

func TestGatherReplacesAConnectionThatIsSilent(t *testing.T) {
	s := newSim(t, []string{"a"})
	s.ends[0].set("shim", "serving", s.now)
	s.until(s.at(2 * time.Second))
	s.ends[0].path = "dead"
	s.until(s.at(3200 * time.Millisecond))
	if n := s.orders[doRedial]; n != 0 {
		t.Errorf("replaced %d times after 1.2 s, want patience: something was answered less than 1 s ago", n)
	}
	s.until(s.at(3600 * time.Millisecond))
	if n := s.orders[doRedial]; n != 1 {
		t.Errorf("replaced %d times after 1.6 s, want once: TCP's own retransmission waits ever longer", n)
	}
	s.until(s.at(2 * time.Minute))
	if n := s.orders[doRedial]; n > 62 {
		t.Errorf("replaced %d times in 2 minutes, want at most every 2 s", n)
	}
}

// lateGather is a gatherer whose loop wakes late every time.
type lateGather struct {
	*gather
	now  time.Time
	late time.Duration
	out  map[int]time.Time // calls that are out, and when they are cut off
}

// turn is one turn of the loop, whose calls are answered at once or never.
func (l *lateGather) turn(answered bool) {
	l.now = later(l.wake(l.now), l.now.Add(ms)).Add(l.late)
	l.woke(l.late)
	for id, end := range l.out {
		switch {
		case answered:
			l.done(id, outcome{result: resultAnswered, answer: answerOK}, l.now)
		case !l.now.Before(end):
			l.done(id, outcome{}, l.now)
		default:
			continue
		}
		delete(l.out, id)
	}
	for _, o := range l.tick(l.now) {
		if o.timeout > 0 {
			l.out[o.id] = l.now.Add(o.timeout)
		}
	}
}

func TestGatherForgivesALoopThatIsAlwaysLateOnlyForAWhile(t *testing.T) {
	for _, late := range []time.Duration{110 * ms, 300 * ms, 700 * ms} {
		start := time.Unix(1000, 0)
		g := lateGather{newGather(scaled(Config{}), false, func() float64 { return 0 }), start, late, make(map[int]time.Time)}
		for g.now.Sub(start) < time.Minute {
			if g.turn(true); !g.ev.check.failing.IsZero() {
				t.Fatalf("late by %v each time: a member that answers is missed after %v", late, g.now.Sub(start))
			}
		}
		stopped := g.now
		for g.ev.check.failing.IsZero() && g.now.Sub(stopped) < time.Minute {
			g.turn(false)
		}
		if got, want := g.now.Sub(stopped), 5*time.Second; got > want {
			t.Errorf("late by %v each time: a member that hangs is missed after %v, want at most %v: being late is no excuse for it for good", late, got, want)
		}
	}
}

func TestGatherForgivesOneSleepInFull(t *testing.T) {
	start := time.Unix(1000, 0)
	g := lateGather{newGather(scaled(Config{}), false, func() float64 { return 0 }), start, 0, make(map[int]time.Time)}
	for range 20 {
		g.turn(true)
	}
	g.turn(false) // a call goes out
	g.late = time.Minute
	g.turn(false)
	g.late = 0
	g.now = g.now.Add(100 * ms)
	g.tick(g.now)
	if !g.ev.check.failing.IsZero() {
		t.Errorf("after one minute's sleep a check is missed at once, want its time anew: it was not the member that slept")
	}
}

// prover is a gatherer of a stock member that answers its checks, with proofs that a test makes.
type prover struct {
	*gather
	now time.Time
}

func newProver() *prover {
	p := &prover{newGather(scaled(Config{}), false, func() float64 { return 0 }), time.Unix(1000, 0)}
	p.call(doCheck, ms, outcome{result: resultAnswered, answer: answerOK})
	return p
}

// call makes one call that takes so long.
func (p *prover) call(what do, takes time.Duration, o outcome) {
	due := p.now.Add(p.checkRTT.deadline(p.t.timeout, p.t.hard))
	if what == doProve {
		due = p.now.Add(p.proofDeadline(p.now))
	}
	orders := p.begin(p.now, what, due, nil)
	p.now = p.now.Add(takes)
	p.overdue(p.now, nil)
	p.done(orders[0].id, o, p.now)
}

func (p *prover) prove(takes time.Duration, r result) { p.call(doProve, takes, outcome{result: r}) }

// An endpoint that was condemned for slow proofs returns by quick ones. Condemned once more,
// for another reason and when it is farther away, it must not be held to that deadline.
func TestGatherEndsTheDeadlineOfACondemnationWithIt(t *testing.T) {
	p := newProver()
	p.prove(ms, resultAnswered)
	p.prove(p.t.hard, resultSilent)
	p.out(true, p.now)
	if got := p.proofDeadline(p.now); got != p.t.proofTimeout {
		t.Fatalf("condemned for a proof that took longer than %v: the deadline is %v, want the same", p.t.proofTimeout, got)
	}
	for range 3 {
		p.prove(240*ms, resultAnswered)
	}
	if got := p.proofDeadline(p.now); got != p.t.proofTimeout {
		t.Errorf("after three proofs, while it is condemned, the deadline is %v, want %v still: slow ones do not bring it back", got, p.t.proofTimeout)
	}
	p.now = p.now.Add(time.Minute)
	for range 50 {
		p.prove(800*ms, resultAnswered)
	}
	p.out(false, p.now)
	p.out(true, p.now)
	if got := p.proofDeadline(p.now); got < 800*ms {
		t.Errorf("condemned again, 800 ms away by now: the deadline is %v, want more than the distance: it would not return for a minute", got)
	}
}

// The same for a deadline that only a suspicion began with.
func TestGatherEndsTheDeadlineOfASuspicionWithIt(t *testing.T) {
	p := newProver()
	p.prove(ms, resultAnswered)
	for range 50 {
		p.prove(800*ms, resultAnswered) // the first is late
	}
	p.out(true, p.now)
	if got := p.proofDeadline(p.now); got < 800*ms {
		t.Errorf("condemned for something else, 800 ms away: the deadline is %v, want more than the distance: it would not return for a minute", got)
	}
}

func TestGatherLetsRefusalsPassForAProofAfterAMinuteOfNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		once func(*prover) // after 50 s of refusals
		anew bool
	}{
		"nothing else":               {func(*prover) {}, false},
		"a check":                    {func(p *prover) { p.call(doCheck, ms, outcome{result: resultAnswered, answer: answerOK}) }, false},
		"a proof fails":              {func(p *prover) { p.prove(ms, resultFailed) }, true},
		"a proof is answered so":     {func(p *prover) { p.prove(ms, resultNoLeader) }, true},
		"a proof hangs":              {func(p *prover) { p.prove(p.t.hard, resultSilent) }, true},
		"a proof completes":          {func(p *prover) { p.prove(ms, resultAnswered) }, true},
		"a check finds no leader":    {func(p *prover) { p.call(doCheck, ms, outcome{result: resultAnswered, answer: answerNoLeader}) }, true},
		"a check is not answered":    {func(p *prover) { p.call(doCheck, p.t.hard, outcome{}) }, true},
		"the port refuses":           {func(p *prover) { p.call(doCheck, ms, outcome{result: resultBroken}) }, true},
		"it is condemned only then":  {func(p *prover) { p.out(false, p.now); p.out(true, p.now) }, true},
		"a refusal that comes late":  {func(p *prover) { p.prove(time.Second, resultRefused) }, false},
		"a proof that met no server": {func(p *prover) { p.prove(ms, resultNothing) }, false},
	} {
		p := newProver()
		p.prove(p.t.hard, resultSilent)
		p.out(true, p.now)
		start := p.now
		refused := func(until time.Duration) {
			for p.now.Sub(start) < until {
				p.prove(250*ms, resultRefused)
			}
		}
		refused(50 * time.Second)
		c.once(p)
		refused(59 * time.Second)
		if !p.ev.proof.waived.IsZero() || p.ev.proof.failing.IsZero() && name == "nothing else" {
			t.Errorf("%s: after less than a minute of refusals they pass for a proof, want them to prove nothing", name)
		}
		refused(62 * time.Second)
		if anew := p.ev.proof.waived.IsZero(); anew != c.anew {
			t.Errorf("%s: after 62 s the minute began anew is %t, want %t", name, anew, c.anew)
		}
		if !c.anew && (!p.ev.proof.failing.IsZero() || !p.ev.proof.completed.IsZero()) {
			t.Errorf("%s: the failed proof stands %t, a completed one is known %t; want neither", name, !p.ev.proof.failing.IsZero(), !p.ev.proof.completed.IsZero())
		}
		if c.anew {
			refused(125 * time.Second)
			if p.ev.proof.waived.IsZero() {
				t.Errorf("%s: after a minute of nothing but refusals they do not pass for a proof, want them to: it would never return", name)
			}
		}
	}
}

func TestRoundTripFollowsTheDistance(t *testing.T) {
	var r roundTrip
	if got := r.deadline(150*ms, 2*time.Second); got != 150*ms {
		t.Errorf("with no sample the deadline is %v, want the floor", got)
	}
	for range 50 {
		r.sample(300 * ms)
	}
	if got := r.deadline(150*ms, 2*time.Second); got < 300*ms || got > 350*ms {
		t.Errorf("at a steady 300 ms the deadline is %v, want a little above", got)
	}
	r.sample(time.Hour)
	if got := r.deadline(150*ms, 2*time.Second); got != 2*time.Second {
		t.Errorf("after an hour's answer the deadline is %v, want the ceiling", got)
	}
	for range 100 {
		r.sample(0)
	}
	if got := r.deadline(150*ms, 2*time.Second); got != 150*ms {
		t.Errorf("back nearby the deadline is %v, want the floor", got)
	}
}
