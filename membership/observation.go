package membership

import "time"

// Observation is what one member says of itself, answered by it alone without
// asking its peers. It is context, never a proof: a member whose disk hangs, or
// that is cut off, repeats its last good values.
//
// A zero means that the member did not say: with authentication enabled etcd
// tells callers without credentials next to nothing.
type Observation struct {
	Cluster, Member ID
	Leader          ID     // zero: it knows of none, or did not say
	Term            uint64 // raft term
	RaftIndex       uint64 // newest index it knows to be committed
	AppliedIndex    uint64 // newest index it has applied
	Revision        int64  // of its key-value store: that of the newest change it has applied
	Voters          int    // voting members in its own member list; zero: did not say
	Learner         bool   // has no vote yet
	Removed         bool   // no longer in its own member list
	Alarms          []Alarm
	Version         string    // of its etcd server, such as 3.7.3
	At              time.Time // when the observation began
}
