package client_test

import (
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// Whatever cuts a member off, reads are answered elsewhere, streams
// move, the lease lives, and nothing is sent twice. The fake elects a leader 1.5
// s after it lost the old one; what a leader's loss costs beyond that is ours.
func TestMemberIsLeftInsideTheBudget(t *testing.T) {
	const election = 1500 * time.Millisecond
	type budget struct{ get, put, silence time.Duration }
	for _, tt := range []struct {
		name  string
		fault func(*fakeetcd.Member)
		heal  func(*fakeetcd.Member)
		index int
		shim  fakeetcd.Shim
		deaf  bool // the member does not hear that a stream is given up
		want  budget
	}{
		{"follower cut, sidecar", (*fakeetcd.Member).CutPeers, (*fakeetcd.Member).Heal, 1, fakeetcd.ShimSidecar, false, budget{callBudget, moveBudget, moveBudget}},
		{"follower cut, in process", (*fakeetcd.Member).CutPeers, (*fakeetcd.Member).Heal, 1, fakeetcd.ShimInProcess, false, budget{callBudget, moveBudget, moveBudget}},
		{"follower mute", (*fakeetcd.Member).MutePeers, (*fakeetcd.Member).Heal, 1, fakeetcd.ShimSidecar, false, budget{callBudget, moveBudget, moveBudget}},
		{"follower cut, no shim", (*fakeetcd.Member).CutPeers, (*fakeetcd.Member).Heal, 1, fakeetcd.ShimNone, false, budget{2 * time.Second, 2 * time.Second, 2 * time.Second}},
		{"follower frozen", (*fakeetcd.Member).Freeze, (*fakeetcd.Member).Thaw, 1, fakeetcd.ShimSidecar, true, budget{pathBudget, pathBudget, pathBudget}},
		{"follower frozen, no shim", (*fakeetcd.Member).Freeze, (*fakeetcd.Member).Thaw, 1, fakeetcd.ShimNone, true, budget{2 * time.Second, 2 * time.Second, 2 * time.Second}},
		{"client cut from a follower", (*fakeetcd.Member).CutClient, (*fakeetcd.Member).HealClient, 1, fakeetcd.ShimSidecar, true, budget{pathBudget, pathBudget, pathBudget}},
		{"leader cut, sidecar", (*fakeetcd.Member).CutPeers, (*fakeetcd.Member).Heal, 0, fakeetcd.ShimSidecar, false, budget{election + moveBudget, election + 2*time.Second + moveBudget, election + moveBudget}},
		{"leader's disk stalls", (*fakeetcd.Member).StallDisk, (*fakeetcd.Member).Heal, 0, fakeetcd.ShimSidecar, false, budget{election + moveBudget, election + 2*time.Second + moveBudget, election + moveBudget}},
		{"leader frozen", (*fakeetcd.Member).Freeze, (*fakeetcd.Member).Thaw, 0, fakeetcd.ShimSidecar, true, budget{election + pathBudget, election + 2*time.Second + pathBudget, election + pathBudget}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakeetcd.Options{Shim: tt.shim}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
				l := startLoad(t, c, cli, 5)
				m := c.Member(tt.index)
				tt.fault(m)
				time.Sleep(6 * time.Second) // longer than the lease's life
				get, put, silence := l.worst()
				t.Logf("longest Get %v, Put %v, silence of a watch %v", get, put, silence)
				if get > tt.want.get || put > tt.want.put || silence > tt.want.silence {
					t.Errorf("longest Get %v, Put %v, silence of a watch %v; want at most %v, %v, %v",
						get, put, silence, tt.want.get, tt.want.put, tt.want.silence)
				}
				if n := m.Streams("/etcdserverpb.Watch/Watch") + m.Streams("/etcdserverpb.Lease/LeaseKeepAlive"); n > 0 && !tt.deaf {
					t.Errorf("%d streams are still on the member that was given up, want none", n)
				}
				tt.heal(m)
				time.Sleep(3 * time.Second)
				if e, _ := cli.Health().Endpoint(m.Address); e.Grade != "healthy" {
					t.Errorf("3 s after the heal the member is %s (%s; %s), want it back", e.Grade, e.Reason, e.Evidence)
				}
				l.stop()
				l.checkWhole()
			})
		})
	}
}
