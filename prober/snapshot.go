package prober

import (
	"time"

	"github.com/quorumwise/quorumwise/membership"
)

// Verdict is what a prober holds of one endpoint.
type Verdict struct {
	Address string
	Grade   Grade
	// Reason is one of this package's Reason constants, or the word of a shim;
	// empty when there is nothing to explain.
	Reason string
	Since  time.Time // when Grade last changed
	Source Source

	Cluster, Member, Leader membership.ID // zero: not known
	Term                    uint64        // raft term as the member tells it; zero: not known

	ProofAge  time.Duration // age of the newest proof of quorum, zero: none
	RoundTrip time.Duration // smoothed round trip of the checks, zero: none
	Evidence  string        // one line for people
}

// Snapshot is the state of all endpoints at one instant. It is immutable: neither
// the prober nor its user writes to it.
type Snapshot struct {
	At       time.Time // when it was made: at a change, or to refresh the ages, which are up to 20 s old
	Verdicts []Verdict // in the order of SetEndpoints

	// Leader is named at the highest term, however long ago, unless most members that prove
	// their quorum have been at lower terms for 20 s: then that term is of before a restore from
	// a backup, or a shim's mistake. Zero: none known.
	Leader      membership.ID
	Term        uint64    // at which Leader was named; zero: none known
	LeaderSince time.Time // when this leader was first named; zero: none known
	// CommonSince is since when at least one endpoint has been Healthy without a
	// break; zero: none is.
	CommonSince time.Time
}

// Verdict returns the verdict on an address.
func (s *Snapshot) Verdict(address string) (Verdict, bool) {
	for _, v := range s.Verdicts {
		if v.Address == address {
			return v, true
		}
	}
	return Verdict{}, false
}
