package servershim

import "time"

// gate lets good news through late and bad news at once. It opens after a number
// of independent good proofs in a row, and when the streak has lasted as long as
// the hold-down. It shuts the moment anything is bad.
//
// The hold-down is zero until the member flaps, that is, is lost within calm of
// coming back. Then it is first, and doubles with each further flap up to calm.
// Each whole calm without a loss halves it. A loss that an election explains is
// forgiven (excuse): in an election every member loses its quorum, and a cluster
// that elects often must not end with all its members waiting.
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
	before   time.Duration // hold-down before the last loss, to go back to when excused
	term     uint64        // raft term at the last loss; zero: not known
}

// good takes in one proof while everything else is good as well. One that began
// before the last one had completed does not count: what held up both let both go.
func (g *gate) good(begin, end time.Time) {
	if g.open || g.streak > 0 && begin.Before(g.last) {
		return
	}
	if g.streak == 0 {
		g.since = begin
	}
	g.last = end
	g.streak++
}

// ready reports whether the streak is long enough to open.
func (g *gate) ready(now time.Time) bool {
	return g.streak >= g.rounds && now.Sub(g.since) >= g.hold
}

// pass opens the gate.
func (g *gate) pass(now time.Time) {
	g.open = true
	g.streak = 0
	if g.losses > 0 {
		g.returned = now
	}
}

// bad shuts the gate and ends a streak.
func (g *gate) bad(now time.Time, term uint64) {
	g.streak = 0
	if !g.open {
		return
	}
	g.open = false
	g.losses++
	g.term = term
	g.before = g.hold
	if g.returned.IsZero() {
		return
	}
	halvings := int(now.Sub(g.returned) / g.calm)
	if halvings == 0 {
		g.hold = min(max(2*g.hold, g.first), g.calm)
		return
	}
	if g.hold >>= min(halvings, 62); g.hold < g.first {
		g.hold = 0
	}
}

// excuse takes back the growth of the hold-down by the last loss, when a higher
// term shows that there was an election.
func (g *gate) excuse(term uint64) {
	if !g.open && g.term != 0 && term > g.term {
		g.hold = min(g.hold, g.before)
	}
}
