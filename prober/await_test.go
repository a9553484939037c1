package prober

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// The answer of a report that is asked once more says the same as before. It has the judge rule
// all the same: the wait for it ends with it.
func TestAnswerThatChangesNothingEndsTheWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, true, "a", "b", "c")
		p := ms.prober(t, Config{})
		within(t, p, time.Second, "healthy healthy healthy")
		time.Sleep(777 * time.Millisecond)
		ms.all[0].say(false, healthsvc.ReasonNoQuorum)
		within(t, p, 10*time.Millisecond, "suspect healthy healthy")
		if took := within(t, p, 450*time.Millisecond, "unhealthy healthy healthy"); took > 305*time.Millisecond {
			t.Errorf("unhealthy after %v, want 300ms: the report answered at once when it was asked", took)
		}
	})
}

// Neither proofs that are slow nor polls that are rare make a member that settles one that does not.
func TestMemberThatSettlesKeepsSettling(t *testing.T) {
	for _, poll := range []time.Duration{0, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ms := newMembers(t, true, "a", "b", "c")
			p := ms.prober(t, Config{})
			within(t, p, time.Second, "healthy healthy healthy")
			time.Sleep(777 * time.Millisecond)
			a := ms.all[0]
			a.say(false, healthsvc.ReasonNoQuorum)
			within(t, p, 450*time.Millisecond, "unhealthy healthy healthy")
			for begin := time.Now(); time.Since(begin) < 12*time.Second; time.Sleep(100 * time.Millisecond) {
				a.set(func() {
					a.last.Reason, a.last.Poll = healthsvc.ReasonSettling, poll
					a.last.LastProof = time.Now().Add(-600 * time.Millisecond)
					a.shim.Publish(a.last)
				})
				synctest.Wait()
				if v, _ := p.Snapshot().Verdict("a:2379"); time.Since(begin) > 500*time.Millisecond && v.Reason != ReasonSettling {
					t.Fatalf("polled every %v: a is %v (%s) after %v, want it to settle: its proofs complete, 600 ms after they began", poll, v.Grade, v.Reason, time.Since(begin))
				}
			}
			a.say(true, "")
			within(t, p, 60*time.Millisecond, "healthy healthy healthy")
		})
	}
}

// The age of a proof goes over the wire in whole milliseconds: one that is younger is a proof too.
func TestMemberSettlesHoweverYoungItsProofs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, true, "a", "b", "c")
		p := ms.prober(t, Config{})
		within(t, p, time.Second, "healthy healthy healthy")
		time.Sleep(777 * time.Millisecond)
		a := ms.all[0]
		a.say(false, healthsvc.ReasonSettling)
		for begin := time.Now(); time.Since(begin) < 3*time.Second; time.Sleep(500 * time.Microsecond) {
			a.set(func() {
				a.last.LastProof = time.Now()
				a.shim.Publish(a.last)
			})
			if v, _ := p.Snapshot().Verdict("a:2379"); v.Grade == Unhealthy {
				t.Fatalf("a is %v (%s) after %v, want it suspect for as long as it settles: its proofs are less than 1 ms old", v.Grade, v.Reason, time.Since(begin))
			}
		}
	})
}

// With all members suspect there is nobody to compare with: the proof that disproves a member's
// word is all that happens.
func TestMembersThatAllSaidNoLeaderAreBackWithALaterProof(t *testing.T) {
	for _, shims := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ms := newMembers(t, shims, "a", "b", "c")
			p := ms.prober(t, Config{})
			within(t, p, 2*time.Second, "healthy healthy healthy")
			time.Sleep(3 * time.Second)
			for _, e := range ms.endpoints() {
				p.Prove(e.Address)
			}
			synctest.Wait()
			time.Sleep(50 * time.Millisecond)
			for _, e := range ms.endpoints() {
				p.NoLeader(e.Address)
			}
			within(t, p, 0, "suspect suspect suspect")
			within(t, p, 100*time.Millisecond, "healthy healthy healthy")
		})
	}
}
