//go:build linux

package suites

import (
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// revoked are the leases of an application that a server revoked though they had been
// kept alive. etcd does so when a leader whose process or disk stood still goes on; no
// client can keep a lease then. Without such a leader nothing is excused.
func (e *Evidence) revoked(leases []workload.LeaseRecord) (early []workload.LeaseRecord) {
	if !e.stalledLeader() {
		return nil
	}
	for _, l := range leases {
		if _, left := workload.RevokedEarly(l); left > 0 {
			early = append(early, l)
		}
	}
	return early
}

// stalledLeader says that a leader went out of service without having stopped.
func (e *Evidence) stalledLeader() bool {
	led := make(map[string]bool)
	for _, s := range e.Samples {
		switch s.State {
		case realetcd.Leader:
			led[s.Member] = true
		case realetcd.Frozen, realetcd.Mute, realetcd.NoQuorum:
			if led[s.Member] {
				return true
			}
		case realetcd.Quorum, realetcd.Stopped, realetcd.Learner, realetcd.NoLeader:
			led[s.Member] = false
		}
	}
	return false
}
