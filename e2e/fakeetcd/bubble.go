package fakeetcd

import (
	_ "unsafe" // for go:linkname

	_ "go.etcd.io/etcd/client/v3"
)

// neverDone is a channel of clientv3 that nobody closes or sends on: the context of a watch stream
// waits for it. It is made when the program starts, so it belongs to no bubble, and whoever waits
// for it keeps the time of a bubble from advancing: with one open watch a test hangs.
//
//go:linkname neverDone go.etcd.io/etcd/client/v3.valCtxCh
var neverDone chan struct{}

// A context whose Done channel is nil is one that never ends, too, and nobody waits for it.
func init() { neverDone = nil }
