package prober

import "github.com/quorumwise/quorumwise/healthsvc"

// The words of Verdict.Reason, beside those of a shim (healthsvc.Reason), which are
// passed on as they came.
const (
	// ReasonChecking: nothing was heard yet. Ends with the first answer or the first miss.
	ReasonChecking string = "checking"
	// ReasonNoShim: no report is followed; etcd itself answers and knows a leader.
	ReasonNoShim string = "no-shim"
	// ReasonWrongShim: as no-shim, because the shim at the address speaks for another member.
	ReasonWrongShim string = "wrong-shim"
	// ReasonUnproved: the member answers, but nothing has disproved its last bad word yet.
	ReasonUnproved string = "unproved"
	// ReasonUnreachable: etcd's own port does not answer, or refuses connections.
	ReasonUnreachable string = "unreachable"
	// ReasonNoLeader: the member itself says that it knows no leader.
	ReasonNoLeader string = "no-leader"
	// ReasonProofFailed: a linearizable read was not answered in time.
	ReasonProofFailed string = "proof-failed"
	// ReasonNotServing: NOT_SERVING without a word why.
	ReasonNotServing string = "not-serving"
	// ReasonSettling: good again, but not yet for long enough after it was condemned.
	ReasonSettling string = "settling"
	// ReasonDraining: the shim, or the member, is about to stop, and asks its clients to leave.
	ReasonDraining string = string(healthsvc.ReasonDraining)
	// ReasonLearner: etcd itself says that the member has no vote.
	ReasonLearner string = "learner"
	// ReasonRemoved: etcd itself says that the member is no longer one of its cluster.
	ReasonRemoved string = "removed"
	// ReasonOtherCluster: most other endpoints belong to one cluster, this one to another.
	ReasonOtherCluster string = "other-cluster"
)
