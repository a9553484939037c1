// Package fakeetcd is an etcd cluster in memory, for tests in testing/synctest bubbles.
//
// The members speak the etcd API and the health services over gRPC on connections in memory, so
// that the official client works against them while time is virtual: an hour passes in
// milliseconds, and nothing touches the network. Start a cluster with [New] inside the bubble,
// give clients its [Cluster.Endpoints] and [Cluster.DialOptions], take something away with the
// methods of [Member], and end it with [Cluster.Close] after the clients.
//
// What it reproduces is how etcd 3.7 looks from a client when something breaks: which calls
// answer, which hang and for how long, what is told about the leader and when, which streams fall
// silent, which leases die. Behind it stands no raft but a single log: a member that takes part
// has applied all of it, one that does not stays where it was and catches up when it is back.
// Consensus takes no time, unless a latency is set.
//
// Guarantees: all methods may be called concurrently; faults are in force when the method returns;
// Close leaves no goroutine. No delay, fault or election is random, and no time passes that was not
// asked for; only the order of what happens at one instant is the scheduler's.
//
// Importing the package changes one variable of clientv3 that would keep a bubble's time from
// advancing while a watch is open; see bubble.go. It is for tests only.
//
// Not there: adding and promoting members, users and roles beyond one user, snapshots, quotas,
// fragmented watch answers; the database sizes in Status are made up. A frozen member's own timers
// go on. What waits for consensus and is given up by its client is not applied later, which etcd
// may do.
package fakeetcd
