//go:build linux

// Package realetcd runs etcd servers as processes of their own, each on a host of
// its own of package nethosts, with the shim beside it or inside it.
//
//	realetcd.Register() // before nethosts.Enter
//	...
//	binary, err := realetcd.Build(ctx, "3.6")
//	c, err := realetcd.Start(ctx, realetcd.Config{Lab: lab, Binary: binary, Shim: realetcd.ShimSidecar})
//	defer c.Close()
//
// # Where things are
//
// Members are m1 to mN; members that join later get the next numbers. A member's
// host has its name. It speaks plain HTTP, to its peers on port 2380, to clients on
// 2379; a sidecar is on 2378. Data lie in the host's directory, or on a disk of its
// own where Config.Disks says so, or only the write-ahead log does (Config.OnlyWAL);
// what processes print is in the host's directory and is appended to from start to
// start.
//
// The harness reaches every member over the lab's own address, which no fault of
// the network touches: [Cluster.Client], and everything by which this package looks
// at members and changes them.
//
// # Shims
//
// A sidecar is the command quorumshim, run by this program itself under the name of
// a registered program. The in-process kind is a registered program too: etcd
// embedded at the version of go.mod, with the shim of package
// servershim/inproc, and can be told to refuse calls ([Member.Refuse]).
//
// # Mutations are counted where they arrive
//
// [Cluster.Arrived] counts them by value. A member of the in-process kind files what etcd is about
// to handle. For any other server, whatever its version, a capture on the member's host follows
// every connection to the client port from its first segment: HTTP/2 without TLS, and gRPC without
// compression. What cannot be followed, or was missed, is told as a gap. A mutation counts when
// all of its message has come, also where the server is frozen or dead. One that gRPC sends a
// second time, because a server that stops said that it had not processed it, counts twice.
//
// # Concurrency
//
// All methods may be called from any goroutine, except that Close is last. Those
// that start and stop one member's processes wait for each other. A [Sampler] never
// waits for a member: each is asked by a goroutine of its own, with a deadline.
//
// # Limits
//
// etcd 3.5 and later. Elections take etcd's default 1 s, heartbeats 100 ms. Without
// Disks nothing is written synchronously: a machine that loses power loses the test.
package realetcd
