package healthsvc

// Headers that accompany every answer: of Check and List each time, of Watch once, when the
// stream begins. All of them are optional for whoever reads them.
const (
	HeaderClusterID = "etcd-cluster-id"    // hex, as etcdctl prints it
	HeaderMemberID  = "etcd-member-id"     // hex
	HeaderLeaderID  = "etcd-leader-id"     // hex; absent while no leader is known
	HeaderRaftTerm  = "etcd-raft-term"     // decimal
	HeaderReason    = "etcd-health-reason" // a Reason; absent when there is nothing to explain
	HeaderShimStart = "etcd-shim-start"    // Unix time in nanoseconds
	HeaderProofAge  = "etcd-proof-age-ms"  // since the newest proof began, when the answer was made
	HeaderRoundTrip = "etcd-proof-rtt-us"  // smoothed round trip of a proof
	HeaderPoll      = "etcd-poll-ms"       // how often the server wishes to be polled
)
