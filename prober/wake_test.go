package prober

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// stage is a court whose judge is heard only when a prober's loop would have it rule: when a
// condition differs, when what it awaits is there, and when it said that it has to be asked again.
type stage struct {
	*court
	due     time.Time
	before  []sight // as they were 10 ms ago
	rulings int
	ruled   bool // 10 ms ago
}

func newStage(t *testing.T, names ...string) *stage {
	c := &stage{court: newCourt(t, names...)}
	c.set("all", isGood)
	c.run(time.Second)
	c.due, c.before = soonest(c.last.wake, c.now.Add(figures)), slices.Clone(c.seen)
	return c
}

// alter changes an endpoint's condition.
func (s *stage) alter(i int, f func(*condition)) {
	n := *s.seen[i].c
	f(&n)
	s.seen[i].c = &n
}

// prove has endpoints make a proof of their own that completes.
func (s *stage) prove(all ...int) {
	for _, i := range all {
		s.alter(i, func(n *condition) { n.answered, n.proven, n.proof = s.now, s.now, s.now })
	}
}

// play lets something happen every 10 ms, and rules when it is time to.
func (s *stage) play(d time.Duration, happens func()) {
	for end := s.now.Add(d); s.now.Before(end); s.now = s.now.Add(10 * ms) {
		happens()
		woken := !s.now.Before(s.due)
		for i := range s.seen {
			woken = woken || s.wakes(i, s.before[i].c, s.seen[i].c)
		}
		s.before = slices.Clone(s.seen)
		if s.ruled = woken; woken {
			s.last = s.judge.rule(s.now, s.seen)
			s.due = soonest(s.last.wake, s.now.Add(figures))
			s.rulings++
		}
	}
}

// wakes is what subscription.stand asks for, and probe.publish does.
func (s *stage) wakes(i int, before, c *condition) bool {
	outed := len(s.last.verdicts) > i && s.last.verdicts[i].Grade == Unhealthy
	awaits := slices.Contains(s.last.awaited, s.seen[i].address)
	return c.differs(before) || (outed || awaits) && !c.proof.Equal(before.proof) || awaits && !c.said.Equal(before.said)
}

// is is the grade and the reason of the first endpoint.
func (s *stage) is() string {
	return fmt.Sprint(s.last.verdicts[0].Grade, " ", s.last.verdicts[0].Reason)
}

// A client leaves its streams on a member that is condemned and settles.
func TestMemberCondemnedForNotProvingDoesNotSettle(t *testing.T) {
	s := newStage(t, "a", "b")
	s.set("a", because(ReasonSettling, s.now))
	proven := s.now
	lie := func() {
		s.alter(0, func(n *condition) { n.proven = proven })
		if s.now.Sub(proven)%(500*ms) == 0 || slices.Contains(s.last.ask, "a") {
			s.alter(0, func(n *condition) { n.said = s.now })
		}
		s.prove(1)
	}
	s.play(900*ms, lie)
	if got := s.is(); got != "suspect settling" {
		t.Errorf("a is %s 0.9 s after its last proof, want suspect settling", got)
	}
	s.play(1200*ms, lie)
	if got := s.is(); got != "unhealthy unproved" {
		t.Errorf("a is %s 2.1 s after its last proof, want unhealthy unproved: its streams are to go", got)
	}
}

// How old a proof is depends on how often the report is asked: less often the more watch it.
func TestMemberSettlesHoweverRarelyItsReportIsAsked(t *testing.T) {
	for _, row := range []struct {
		poll, age, rtt time.Duration
		asks           int // in 12 s, at most
	}{
		{500 * ms, 150 * ms, 10 * ms, 0},
		{500 * ms, 600 * ms, 10 * ms, 0},
		{500 * ms, 990 * ms, 10 * ms, 0}, // any older, and the shim finds no quorum
		{2 * time.Second, 150 * ms, 10 * ms, 12},
		{5 * time.Second, 990 * ms, 10 * ms, 12},
		{5 * time.Second, 600 * ms, 140 * ms, 12},
	} {
		for _, condemned := range []bool{true, false} {
			s := newStage(t, "a", "b")
			want := "suspect settling"
			if condemned {
				s.set("a", isBad(kindQuorum))
				s.run(time.Second)
				want = "unhealthy settling"
			}
			s.set("a", because(ReasonSettling, s.now))
			start, asked, asks := s.now, time.Time{}, 0
			word := func(began time.Time) {
				s.alter(0, func(n *condition) { n.said, n.proven = began, began.Add(-row.age) })
			}
			word(s.now)
			s.play(12*time.Second, func() {
				s.prove(1)
				if s.now.Sub(start)%row.poll == 0 {
					word(s.now)
				}
				if !asked.IsZero() && s.now.Sub(asked) >= row.rtt {
					word(asked)
					asked = time.Time{}
				}
				if s.ruled && slices.Contains(s.last.ask, "a") {
					asked, asks = s.now, asks+1
				}
				if got := s.is(); s.ruled && got != want {
					t.Fatalf("poll %v, proofs %v old at the answer: a is %s after %v, want %s: it proves its quorum all the while", row.poll, row.age, got, s.now.Sub(start), want)
				}
			})
			if asks > row.asks {
				t.Errorf("poll %v, proofs %v old at the answer: asked %d times in 12 s, want %d at most: all that watch it do", row.poll, row.age, asks, row.asks)
			}
			if s.rulings > 50 {
				t.Errorf("poll %v, proofs %v old at the answer: %d rulings in 12 s, want a few a second", row.poll, row.age, s.rulings)
			}
		}
	}
}

func TestMemberThatProvesNothingMoreDoesNotSettle(t *testing.T) {
	for _, row := range []struct {
		name          string
		poll, answers time.Duration // how long a report takes to answer, when it is asked before its time
		within        time.Duration // from the last proof
	}{
		{"it says settling all the same", 500 * ms, 0, 1490 * ms},
		{"the same, asked rarely", 5 * time.Second, 0, 2000 * ms},
		{"it is silent", time.Hour, time.Hour, 2140 * ms},
		{"it answers late", time.Hour, 400 * ms, 2140 * ms},
	} {
		s := newStage(t, "a", "b")
		s.set("a", isBad(kindQuorum))
		s.run(time.Second)
		s.set("a", because(ReasonSettling, s.now))
		proven, asked := s.now, time.Time{}
		stopped := proven
		said := proven.Add(990 * ms)
		word := func() { s.alter(0, func(n *condition) { n.said, n.proven = s.now, proven }) }
		happens := func() {
			s.prove(1)
			switch {
			case s.now.Equal(said), s.now.After(said) && s.now.Sub(said)%row.poll == 0:
				word()
			case s.ruled && slices.Contains(s.last.ask, "a"):
				asked = s.now
			}
			if !asked.IsZero() && s.now.Sub(asked) >= row.answers {
				word()
				asked = time.Time{}
			}
		}
		word()
		s.play(row.within, happens)
		if got := s.is(); got != "unhealthy settling" {
			t.Errorf("%s: a is %s %v after its last proof, want it to settle while a word stands that told of a young one", row.name, got, s.now.Sub(stopped))
		}
		s.play(20*ms, happens)
		if got := s.is(); got != "unhealthy unproved" {
			t.Errorf("%s: a is %s %v after its last proof, want unhealthy unproved: its streams are to go", row.name, got, s.now.Sub(stopped))
		}
		s.play(500*ms, happens)
		if got := s.is(); got != "unhealthy unproved" {
			t.Errorf("%s: a is %s, want unhealthy unproved as long as it proves nothing", row.name, got)
		}
		proven = s.now
		word()
		s.play(10*ms, func() {})
		if got := s.is(); got != "unhealthy settling" {
			t.Errorf("%s: a is %s when it tells of a proof again, want unhealthy settling at once", row.name, got)
		}
	}
}

// Who was graded before it in the same ruling had nobody to be compared with.
func TestReturningMemberIsAWitnessAtOnce(t *testing.T) {
	for i, name := range []string{"a", "b"} { // the bad one comes before the other, or after it
		other := 1 - i
		s := newStage(t, "a", "b")
		s.set(s.seen[other].address, isBad(kindQuorum))
		s.run(time.Second)
		bad := func(c *condition) { isBad(kindPath)(c); c.own = true }
		s.set(name, bad)
		s.play(100*ms, func() {})
		if got := s.last.verdicts[i].Grade; got != Suspect {
			t.Errorf("%s is %v while nobody is better, want suspect", name, got)
		}
		s.set(s.seen[other].address, isGood)
		s.play(400*ms, func() { s.prove(other) })
		s.want(map[string]string{"a": "a:unhealthy b:healthy", "b": "a:healthy b:unhealthy"}[name], "the other has been good for longer than the hold")
		if s.rulings > 15 {
			t.Errorf("%d rulings in 0.5 s, want a few: a return makes for one more", s.rulings)
		}
	}
}

// All members told users' calls "no leader", and proofs that are slow disprove it, one after the
// other. The first is no one to compare the others with for the time before that: it would draw
// all that they carry, though they are as good.
func TestFirstMemberToDisproveNoLeaderCondemnsNobody(t *testing.T) {
	for _, wait := range []time.Duration{200 * time.Millisecond, 320 * time.Millisecond, 600 * time.Millisecond, 1200 * time.Millisecond} {
		s := newStage(t, "a", "b", "c")
		for _, a := range []string{"a", "b", "c"} {
			s.judge.noLeader(a, s.now)
		}
		s.last = s.judge.rule(s.now, s.seen)
		s.play(wait, func() {})
		s.alter(1, func(n *condition) { n.answered, n.proven, n.proof = s.now, s.now, s.now })
		s.last = s.judge.rule(s.now, s.seen)
		for i, want := range []Grade{Suspect, Healthy, Suspect} {
			if v := s.last.verdicts[i]; v.Grade != want {
				t.Errorf("proved after %v: %s is %v (%s), want %v", wait, v.Address, v.Grade, v.Reason, want)
			}
		}
	}
}

// What comes between a ruling and the wish to be woken by it is not lost.
func TestWordThatComesWhileTheJudgeIsHeardWakesItAgain(t *testing.T) {
	for _, c := range []struct {
		why    string
		awaits bool
		news   bool
		want   int
	}{
		{"awaited, and there meanwhile", true, true, 1},
		{"awaited, and not there yet", true, false, 0},
		{"not awaited", false, true, 0},
	} {
		notify := make(chan struct{}, 1)
		p := &probe{kick: make(chan struct{}, 1), subs: make(map[*subscription]struct{})}
		sub := &subscription{probe: p, notify: notify}
		p.subs[sub] = struct{}{}
		now := time.Unix(1e9, 0)
		p.newest.Store(&condition{state: stateGood, proven: now, proof: now, said: now})
		judged := sub.condition()
		if c.news {
			p.publish(condition{state: stateGood, proven: now.Add(ms), proof: now.Add(ms), said: now})
		}
		sub.stand(false, c.awaits, judged)
		if got := len(notify); got != c.want {
			t.Errorf("%s: woken %d times, want %d", c.why, got, c.want)
		}
	}
}
