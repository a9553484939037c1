package healthsvc

// Reason says in one word why a member is not serving; empty while it is. It travels in
// HeaderReason. A reader must accept words that are not listed here: shims are upgraded one by one.
type Reason string

const (
	// ReasonStarting: nothing has been published yet.
	ReasonStarting Reason = "starting"
	// ReasonUnreachable: etcd does not answer.
	ReasonUnreachable Reason = "unreachable"
	// ReasonNoQuorum: no linearizable read completes.
	ReasonNoQuorum Reason = "no-quorum"
	// ReasonNoLeader: the member itself says that it knows no leader.
	ReasonNoLeader Reason = "no-leader"
	// ReasonReadStalled: local reads do not complete.
	ReasonReadStalled Reason = "read-stalled"
	// ReasonCatchingUp: quorum is there, the applied index still lies in the past.
	ReasonCatchingUp Reason = "catching-up"
	// ReasonSettling: proofs complete again, but not yet for long enough.
	ReasonSettling Reason = "settling"
	// ReasonLearner: not a voting member.
	ReasonLearner Reason = "learner"
	// ReasonRemoved: no longer a member of its cluster.
	ReasonRemoved Reason = "removed"
	// ReasonDraining: about to stop; clients are asked to leave.
	ReasonDraining Reason = "draining"
	// ReasonNoSpace: the NOSPACE alarm is in force.
	ReasonNoSpace Reason = "nospace"
	// ReasonCorrupt: the CORRUPT alarm is in force.
	ReasonCorrupt Reason = "corrupt"
	// ReasonStale: the newest report is older than it may be: the shim's own loop stands still.
	ReasonStale Reason = "stale"
	// ReasonNotEtcd: what answers at the endpoint is not etcd.
	ReasonNotEtcd Reason = "not-etcd"
)
