// Package cluster runs a real etcd cluster inside the process, with the network
// between its members, and between them and their clients, under control.
//
// Members listen on 127.0.0.1 and keep their data and logs in one directory. All
// of them advertise the address of a relay for peer traffic and speak TLS to each
// other, each under its own name, so that the relay knows which member dialled:
// every fault can be set for one direction between two members, and covers all
// that etcd sends to a peer (raft streams and pipelines, snapshots, forwarded
// keepalives, version checks).
//
// Applications reach the members through a [View]: doors of their own to every
// member's client port and to the shim beside it. What is cut for one view is
// whole for another one; the client ports themselves ([Member.ClientAddr]) are
// never faulty and are what checkers use.
//
// Faults lose bytes silently, as a dropping firewall or a stopped process does.
// [Cluster.Heal] ends them all and resets what was stuck, so that members are
// connected again at once; a network that drops packets would take TCP up to
// some seconds more.
//
// The zero Config is a cluster of three with etcd's default timing (heartbeat
// 100 ms, election 1 s) and no shims. Nothing is written to disk synchronously
// (a machine that loses power loses the test). All methods may be called
// concurrently, except that Close is last.
package cluster
