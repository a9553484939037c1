// Package sidecar is a health shim as a server of its own beside one etcd member: a connection to
// that member, the shim of package servershim, and a gRPC server with the health services of
// package healthsvc, where the empty name means etcd.serving. The command quorumshim is this
// package with flags; programs and tests can run it without a process:
//
//	side, err := sidecar.New(sidecar.Config{EtcdEndpoint: "http://127.0.0.1:2379"})
//	...
//	err = side.Run(ctx) // until ctx ends, then drained
//
// New fails on what cannot get better by waiting: flags that contradict each other, files that are
// missing, an address in use. Its errors name the flag, the value and the way out. What can get
// better, such as an etcd that is not there yet, is waited for: the services are NOT_SERVING with
// reason unreachable meanwhile, and etcd.live is SERVING, since restarting the sidecar would help
// nobody.
//
// Certificates, keys and roots are read again at each handshake. Files that do not go
// together, as in the middle of a rotation, leave the last good ones in use, with one line in the
// log; so do files that take more than 2 s to be read.
//
// When ctx ends, the member is NOT_SERVING with reason draining, and still answers for DrainTime so
// that clients leave; then every stream ends, and Run returns within a second more, whatever the
// clients do.
//
// One connection may have 1000 calls and watches open at once; what it asks beyond that waits in the
// client, so that nobody takes our memory over a single connection.
//
// A Sidecar's Addr and MetricsAddr may be called from anywhere, Run once.
package sidecar
