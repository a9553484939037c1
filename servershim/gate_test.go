package servershim

import (
	"testing"
	"time"
)

func testGate() gate { return gate{rounds: 3, first: time.Second, calm: time.Minute} }

// streak gives the gate n good proofs, one each 100 ms, and returns the end.
func streak(g *gate, from time.Time, n int) time.Time {
	for range n {
		g.good(from, from.Add(ms))
		from = from.Add(100 * ms)
	}
	return from
}

// comeBack runs good proofs until the gate opens, and returns when.
func comeBack(g *gate, from time.Time) time.Time {
	for !g.ready(from) {
		from = streak(g, from, 1)
	}
	g.pass(from)
	return from
}

func TestGateOpensAfterGoodProofsInARow(t *testing.T) {
	g := testGate()
	now := streak(&g, start, 2)
	if g.ready(now) {
		t.Error("got ready after two proofs, want three")
	}
	g.bad(now, 0, true, false)
	now = streak(&g, now, 2)
	if g.ready(now) {
		t.Error("got ready after two, bad news, two: want three in a row")
	}
	now = streak(&g, now, 1)
	if !g.ready(now) {
		t.Error("got not ready after three in a row")
	}
}

// What held up one proof held up those begun meanwhile; one recovery let all go.
func TestGateCountsOverlappingProofsOnce(t *testing.T) {
	g := testGate()
	end := at(500 * ms)
	for i := range 5 {
		g.good(at(time.Duration(i)*100*ms), end)
	}
	if g.streak != 1 {
		t.Errorf("got a streak of %d out of five proofs that ended together, want 1", g.streak)
	}
}

func TestGateHoldDown(t *testing.T) {
	type step struct {
		calm time.Duration // open for so long before the loss
		want time.Duration // hold-down after it
	}
	for _, c := range []struct {
		why   string
		steps []step
	}{
		{"the first loss costs the first wait, whenever it comes", []step{{time.Second, 1}}},
		{"flaps double it up to the maximum", []step{{0, 1}, {0, 2}, {0, 4}, {59, 8}, {0, 16}, {0, 32}, {0, 60}, {0, 60}}},
		{"a calm time halves it", []step{{0, 1}, {0, 2}, {0, 4}, {0, 8}, {61, 4}, {0, 8}, {121, 2}}},
		{"a long calm forgets it", []step{{0, 1}, {0, 2}, {0, 4}, {0, 8}, {1 << 30, 1}, {0, 2}}},
	} {
		g := testGate()
		now := start
		for i, s := range c.steps {
			now = comeBack(&g, now).Add(s.calm * time.Second)
			g.bad(now, 0, true, false)
			if want := s.want * time.Second; g.hold != want {
				t.Errorf("%s, loss %d: got %v, want %v", c.why, i+1, g.hold, want)
			}
		}
	}
}

func TestGateWaitsOutTheHoldDownFromTheStreakOn(t *testing.T) {
	g := testGate()
	g.hold = 4 * time.Second
	now := streak(&g, start, 39)
	if g.ready(now.Add(-ms)) {
		t.Error("got ready before the hold-down is over")
	}
	g.bad(now, 0, true, false)
	begin := now
	now = comeBack(&g, now)
	if got := now.Sub(begin); got < 4*time.Second || got > 4200*ms {
		t.Errorf("got back after %v, want 4 s anew: the streak was broken", got)
	}
}

func TestGateExcusesALossInAnElection(t *testing.T) {
	g := testGate()
	now := comeBack(&g, start)
	for term := uint64(5); term < 105; term++ {
		g.bad(now, term, true, false)
		g.excuse(term)     // no news
		g.excuse(term + 1) // an election
		g.excuse(term + 1)
		now = comeBack(&g, now)
	}
	if g.hold != 0 {
		t.Errorf("got a hold-down of %v after 100 elections, want none", g.hold)
	}
	g.bad(now, 105, true, false)
	g.excuse(105)
	if g.hold != time.Second {
		t.Errorf("got %v after a flap in the same term, want 1 s", g.hold)
	}
	g.bad(now, 0, true, false) // shut already
	if g.hold != time.Second {
		t.Errorf("got %v, want that only a loss counts, not bad news while it is shut", g.hold)
	}
}

// A member that was lost before waits for that once, and not again after each election: in one
// all members are out, and while none serves nobody leaves the leader that is gone.
func TestGateLiftsAHoldDownThatWasServedWhenAnElectionExplainsTheLoss(t *testing.T) {
	for _, c := range []struct {
		why  string
		led  bool
		term uint64 // that is seen after the loss
		want time.Duration
	}{
		{"a follower in an election", false, 6, 0},
		{"a follower in the same term", false, 5, 8 * time.Second},
		{"the leader that was replaced", true, 6, 4 * time.Second},
	} {
		g := testGate()
		now := comeBack(&g, start)
		for range 3 { // holds of 1, 2 and 4 s
			g.bad(now, 5, true, false)
			now = comeBack(&g, now)
		}
		back := g.returned
		g.bad(now, 5, true, c.led)
		g.excuse(c.term)
		lost := now
		now = comeBack(&g, now)
		if got := now.Sub(lost); got < c.want || got > c.want+400*ms {
			t.Errorf("%s: back after %v, want %v and three proofs", c.why, got, c.want)
		}
		if c.want == 0 && !g.returned.Equal(back.Add(now.Sub(lost))) {
			t.Errorf("%s: calm since %v, want since %v: an election is no return, and the time out no calm", c.why, g.returned, back.Add(now.Sub(lost)))
		}
		g.bad(now, c.term, true, false)
		if want := 2 * max(c.want, 4*time.Second); g.hold != want {
			t.Errorf("%s: the next flap costs %v, want %v: what it was lost for before still counts", c.why, g.hold, want)
		}
	}
}

// flapped is a gate that was lost n times in a row, open again.
func flapped(n int) (g gate, now time.Time) {
	g = testGate()
	now = comeBack(&g, start)
	for range n {
		g.bad(now, 5, true, false)
		now = comeBack(&g, now)
	}
	return g, now
}

// A half-dead disk does not begin anew after each long outage that holds an election.
func TestGateTimeThatAMemberIsOutIsNoCalm(t *testing.T) {
	g, now := flapped(5) // 1, 2, 4, 8, 16 s
	g.bad(now, 5, true, false)
	now = now.Add(5 * time.Minute)
	g.excuse(6)
	now = comeBack(&g, now).Add(time.Second)
	if g.bad(now, 6, true, false); g.hold != 32*time.Second {
		t.Errorf("the next flap costs %v, want 32 s", g.hold)
	}
}

func TestGateCalmHalvesTheHoldDownOnceHoweverManyElectionsFollow(t *testing.T) {
	g, now := flapped(6)
	now = now.Add(61 * time.Second)
	for term := uint64(5); term < 11; term++ {
		g.bad(now, term, true, false)
		g.excuse(term + 1)
		now = comeBack(&g, now).Add(time.Second)
	}
	if g.bad(now, 11, true, false); g.hold != 16*time.Second {
		t.Errorf("after a calm and six elections a flap costs %v, want 16 s: one calm halves it once", g.hold)
	}
}
