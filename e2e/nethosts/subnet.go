//go:build linux

package nethosts

import (
	"errors"
	"net/netip"
	"sync"
)

// addressSpace holds the subnets of all labs of a harness. It exists in the
// harness's own namespace only, so that two harnesses use the same and do not
// meet.
var addressSpace = netip.MustParsePrefix("10.64.0.0/10")

const (
	subnetBits = 16
	mostLabs   = 1 << (subnetBits - 10) // at a time
)

// subnets numbers the labs that are open.
var subnets struct {
	mu    sync.Mutex
	taken [mostLabs]bool
}

func takeSubnet() (int, error) {
	subnets.mu.Lock()
	defer subnets.mu.Unlock()
	for i, taken := range subnets.taken {
		if !taken {
			subnets.taken[i] = true
			return i, nil
		}
	}
	return 0, errors.New("nethosts: 64 labs are open in this process, close one")
}

func returnSubnet(i int) {
	subnets.mu.Lock()
	defer subnets.mu.Unlock()
	subnets.taken[i] = false
}

// address is host k's in subnet i; 1 is the harness. ok is false when the subnet
// has no more.
func address(i, k int) (netip.Addr, bool) {
	if k >= 1<<(32-subnetBits)-1 {
		return netip.Addr{}, false
	}
	base := addressSpace.Addr().As4()
	return netip.AddrFrom4([4]byte{base[0], base[1] + byte(i), byte(k >> 8), byte(k)}), true
}
