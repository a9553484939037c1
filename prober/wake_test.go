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
		if woken {
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
	return c.differs(before) || outed && !c.proof.Equal(before.proof) || awaits && !c.said.Equal(before.said)
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
