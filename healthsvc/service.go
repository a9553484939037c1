package healthsvc

import "slices"

// The services of the contract. Each is SERVING exactly when its comment holds, NOT_SERVING
// otherwise; there is no third answer for a known name.
const (
	// ServiceServing: a client may use this member: quorum, voter, local reads work, not
	// draining. The one clients balance on.
	ServiceServing = "etcd.serving"
	// ServiceQuorum: a linearizable read begun within the window has completed.
	ServiceQuorum = "etcd.quorum"
	// ServiceLeader: this member is leader, with quorum.
	ServiceLeader = "etcd.leader"
	// ServiceRead: a local (serializable) read completes.
	ServiceRead = "etcd.read"
	// ServiceWrite: quorum, and no NOSPACE or CORRUPT alarm in force.
	ServiceWrite = "etcd.write"
	// ServiceVoter: a voting member of its cluster: not a learner, not removed.
	ServiceVoter = "etcd.voter"
	// ServiceLive: the server of these services runs. It never depends on etcd, on quorum or on
	// peers, so that a liveness probe does not restart what only waits for others.
	ServiceLive = "etcd.live"
)

// services is in the order in which people read them: what clients use first, liveness last.
var services = []string{
	ServiceServing, ServiceQuorum, ServiceLeader, ServiceRead, ServiceWrite, ServiceVoter, ServiceLive,
}

// Services returns the names of the contract, always in the same order. The caller owns the slice.
func Services() []string { return slices.Clone(services) }

// isService reports whether name is one of ours.
func isService(name string) bool { return slices.Contains(services, name) }
