package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports of members are chosen below the range from which kernels serve outgoing
// connections (from 32768 on Linux), so that a stopped member finds its own port
// free when it comes back. They come in blocks, of which a cluster has one to itself:
// a port that is free now may be another cluster's in a moment, and test programs
// run side by side.
const (
	lowestPort, highestPort = 15000, 32000
	blockSize               = 50 // more than the largest cluster needs: others may sit on some
)

// block is a run of ports that no other cluster on this host chooses from, for as
// long as its claim, on the first of them, is open.
type block struct {
	claim     net.Listener
	next, end int
}

// claimBlock takes a block that is free.
func claimBlock() (*block, error) {
	var last error
	for range 200 {
		first := lowestPort + blockSize*rand.IntN((highestPort-lowestPort)/blockSize)
		lis, err := net.Listen("tcp", loopback(first))
		if err == nil {
			return &block{claim: lis, next: first + 1, end: first + blockSize}, nil
		}
		last = err
	}
	return nil, errors.Join(fmt.Errorf("cluster: no free ports between %d and %d", lowestPort, highestPort), last)
}

// freeAddr returns an address of the block on which nothing listens now; each once.
func (b *block) freeAddr() (string, error) {
	var last error
	for ; b.next < b.end; b.next++ {
		lis, err := net.Listen("tcp", loopback(b.next))
		if err == nil {
			b.next++
			return lis.Addr().String(), lis.Close()
		}
		last = err
	}
	return "", errors.Join(fmt.Errorf("cluster: no free port below %d is left", b.end), last)
}

// release gives the block back; a nil one is none.
func (b *block) release() error {
	if b == nil {
		return nil
	}
	return b.claim.Close()
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
