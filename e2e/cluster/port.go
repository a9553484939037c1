package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports of members are chosen below the range from which kernels serve outgoing
// connections (from 32768 on Linux), so that a stopped member finds its own port
// free when it comes back.
const lowestPort, highestPort = 15000, 32000

// freeAddr returns an address of 127.0.0.1 on which nothing listens now and which
// is not in taken, and enters it there.
func freeAddr(taken map[string]bool) (string, error) {
	var last error
	for range 200 {
		addr := fmt.Sprintf("127.0.0.1:%d", lowestPort+rand.IntN(highestPort-lowestPort))
		if taken[addr] {
			continue
		}
		lis, err := net.Listen("tcp", addr)
		if err != nil {
			last = err
			continue
		}
		taken[addr] = true
		return addr, lis.Close()
	}
	return "", errors.Join(errors.New("cluster: no free port between 15000 and 32000"), last)
}
