package client

import "github.com/quorumwise/quorumwise/prober"

// otherReason is what moves are counted under whose reason is a shim's own word. A shim may
// have any number of those, and each count, and each series of the metric, stays for ever.
const otherReason = "other"

// countedReason is the word that a move is counted under.
func countedReason(reason string) string {
	switch reason {
	case ReasonDrift, ReasonKeepalive, ReasonEndpointRemoved, ReasonLeaderLost:
	case prober.ReasonChecking, prober.ReasonNoShim, prober.ReasonWrongShim, prober.ReasonUnproved, prober.ReasonUnreachable,
		prober.ReasonNoLeader, prober.ReasonProofFailed, prober.ReasonNotServing, prober.ReasonSettling, prober.ReasonDraining,
		prober.ReasonLearner, prober.ReasonRemoved, prober.ReasonOtherCluster:
	case "starting", "no-quorum", "read-stalled", "catching-up", "nospace", "corrupt", "stale", "not-etcd":
		// The rest of package healthsvc, which only the prober deals with.
	default:
		return otherReason
	}
	return reason
}
