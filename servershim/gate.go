package servershim

import "time"

// gate lets good news through late and bad news at once. It opens after a number
// of independent good proofs in a row, and when the streak has lasted as long as
// the hold-down. It shuts the moment anything is bad.
//
// The hold-down is zero until the member is lost for the first time. Then it is
// first, and doubles with each loss within calm of coming back (a flap) up to calm.
// Each whole calm without a loss halves it, down to first. A loss that an election
// explains is forgiven (excuse): in an election every member loses its quorum, and a
// cluster that elects often must not end with all its members waiting. One that did not
// lead does not even wait for what it was lost for before: that it has waited for
// already. One that led may be why there was an election. So is a loss forgiven that is
// no illness: a learner waits for nothing when it has its vote.
//
// The first hold-down is no zero: a disk that stands still most of the time works in
// between for long enough to complete a few proofs.
type gate struct {
	rounds      int           // proofs in a row that it takes
	first, calm time.Duration // first hold-down; longest one, and time to halve it

	open     bool
	streak   int       // good proofs in a row, while shut
	since    time.Time // begin of the first of them
	last     time.Time // when the newest of them completed
	hold     time.Duration
	returned time.Time // when it last opened again after a loss; zero: never
	losses   int
	lost     time.Time     // when the last one was
	before   time.Duration // hold-down before the last loss, to go back to when excused
	term     uint64        // raft term before the last loss; zero: not known
	led      bool          // it led when it was lost
	excused  bool          // the last loss was, of one that did not lead
}

// good takes in one proof while everything else is good as well. One that began
// before the last one had completed does not count: what held up both let both go.
func (g *gate) good(begin, end time.Time) {
	if g.open || g.streak > 0 && begin.Before(g.last) {
		return
	}
	if g.streak == 0 {
		g.since = end
	}
	g.last = end
	g.streak++
}

// ready reports whether the streak is long enough to open.
func (g *gate) ready(now time.Time) bool {
	return g.streak >= g.rounds && (g.excused || now.Sub(g.since) >= g.hold)
}

// pass opens the gate.
func (g *gate) pass(now time.Time) {
	g.open = true
	g.streak = 0
	switch {
	case g.losses == 0:
	case !g.excused:
		g.returned = now
	case !g.returned.IsZero():
		g.returned = g.returned.Add(now.Sub(g.lost)) // the time that it was out was no calm
	}
}

// bad shuts the gate and ends a streak. It reports whether the gate was open. The term
// is that of the newest good proof, led says whether the member led then, for all that is
// known.
func (g *gate) bad(now time.Time, term uint64, ill, led bool) bool {
	g.streak = 0
	if !g.open {
		return false
	}
	g.open = false
	g.losses++
	g.lost = now
	g.term, g.led, g.excused = term, led, false
	g.before = g.hold
	if ill {
		g.hold = g.longer(now)
	}
	return true
}

// longer is the hold-down after a loss now.
func (g *gate) longer(now time.Time) time.Duration {
	if g.returned.IsZero() {
		return g.first
	}
	if halvings := int(now.Sub(g.returned) / g.calm); halvings > 0 {
		return max(g.hold>>min(halvings, 62), g.first)
	}
	return min(max(2*g.hold, g.first), g.calm)
}

// excuse takes back the growth of the hold-down by the last loss, when a higher
// term shows that there was an election, and reports whether it did. From one that did
// not lead it lifts the hold-down for this return.
func (g *gate) excuse(term uint64) bool {
	if g.open || g.term == 0 || term <= g.term {
		return false
	}
	if g.led {
		g.hold = min(g.hold, g.before)
		return true
	}
	g.hold, g.excused = g.before, true // calm before it counts at the next loss
	return true
}
