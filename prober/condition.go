package prober

import (
	"time"

	"github.com/quorumwise/quorumwise/membership"
)

// state is what one endpoint's evidence says, taken alone.
type state int

const (
	stateNothing state = iota // nothing either way
	stateGood                 // positive evidence stands
	stateBad                  // a cause for suspicion stands
	stateParked               // etcd itself says that it has no vote or no place
)

func (s state) String() string {
	switch s {
	case stateNothing:
		return "nothing"
	case stateGood:
		return "good"
	case stateBad:
		return "bad"
	case stateParked:
		return "parked"
	}
	return "invalid"
}

// kind says what a cause for suspicion has to be compared with.
type kind int

const (
	kindNone   kind = iota
	kindPath        // no answer: compare with the paths to other endpoints
	kindQuorum      // no consensus, or NOT_SERVING: compare with other members' proofs
)

// condition is a detector's output: one endpoint's evidence reduced to what a judge
// compares. Immutable once published.
type condition struct {
	state  state
	reason string
	kind   kind
	// since is when the state began. Bad with changing causes is one stretch, of which the
	// first cause counts.
	since time.Time
	// from is when the evidence against the endpoint began: only what another endpoint showed
	// later than this is a comparison.
	from   time.Time
	source Source
	own    bool // the cause is what we saw ourselves, not the report of a shim

	answered time.Time     // begin of the newest check that was answered
	proven   time.Time     // begin of the newest proof of quorum, the shim's or our own
	proof    time.Time     // begin of the newest proof of our own
	run      int           // our own proofs completed in time, in a row
	took     time.Duration // how long the newest completed proof of our own took
	late     time.Duration // the same, while proofs complete but come too late to end a suspicion; else zero
	waived   time.Time     // begin of the newest proof that stands for a completed one though it was turned away

	said time.Time // when the newest word of a report was asked for, or pushed

	cluster, member, leader membership.ID
	term                    uint64
	heard                   time.Time     // when the identity was told
	itself                  membership.ID // cluster that etcd itself names; zero: did not say

	wrongShim bool // a shim answers that speaks for another member
	alone     bool // every place was searched, and no report is followed
	rtt       time.Duration
}

// differs reports whether a subscriber has something new to judge. Times that move with
// every answer do not count: nobody is woken at steady state.
func (c *condition) differs(o *condition) bool {
	return c.state != o.state || c.reason != o.reason || c.kind != o.kind || c.source != o.source ||
		!c.since.Equal(o.since) || c.cluster != o.cluster || c.member != o.member || c.leader != o.leader ||
		c.term != o.term || c.itself != o.itself || c.wrongShim != o.wrongShim || c.alone != o.alone
}
