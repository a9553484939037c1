// Package inproc asks an etcd server that runs in the same process, without a
// network and without credentials. It is what membership.Remote is over the API:
// a source for package servershim.
//
// It links an etcd server; programs that only talk to etcd must not import it.
//
// A Source is safe for concurrent use. Calls end with their context, except that
// a read which the storage does not answer leaves one goroutine behind until it
// does; there is never more than one.
package inproc
