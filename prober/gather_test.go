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
