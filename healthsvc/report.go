package healthsvc

import "time"

// Identity says who is speaking. Zero fields are not known.
type Identity struct {
	Cluster, Member uint64
	Leader          uint64    // the leader as this member sees it; 0 also while it sees none
	Term            uint64    // raft term of that view
	Start           time.Time // when the speaker (the shim, not etcd) started
}

// Report is what a shim publishes about its member. The zero Report is NOT_SERVING everywhere.
type Report struct {
	Identity
	Reason Reason // why Serving is false; for a writeless member that serves, nospace or corrupt

	// One for each service, true for SERVING; what each means is said at the service's constant.
	// They are published as they are: that Serving goes with Quorum, say, is up to who publishes.
	// etcd.live has none, it is SERVING while the server runs.
	Serving bool // ServiceServing
	Quorum  bool // ServiceQuorum
	Leads   bool // ServiceLeader
	Read    bool // ServiceRead
	Write   bool // ServiceWrite
	Voter   bool // ServiceVoter

	LastProof time.Time     // when the newest completed proof of quorum began; zero: none yet
	RoundTrip time.Duration // smoothed round trip of such proofs; 0: not known
	Poll      time.Duration // how often clients should poll; 0: as often as they do by themselves
}

// facet returns what the report says for one service of the contract.
func (r *Report) facet(service string) bool {
	switch service {
	case ServiceServing:
		return r.Serving
	case ServiceQuorum:
		return r.Quorum
	case ServiceLeader:
		return r.Leads
	case ServiceRead:
		return r.Read
	case ServiceWrite:
		return r.Write
	case ServiceVoter:
		return r.Voter
	case ServiceLive:
		return true
	default:
		return false
	}
}
