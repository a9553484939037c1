package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumwise/quorumwise/e2e/cluster"
)

// elections are the scenarios in which the leader changes and no member is bad.
func elections() []Scenario {
	return []Scenario{
		{
			Name: "two-changes-of-leader", Shim: cluster.ShimSidecar, Control: Unharmed, Quick: true,
			Does:  "one transfer of leadership and one election on healthy members",
			Steps: []Step{transfers(1), forced(1)},
		},
		{
			Name: "twenty-transfers", Shim: cluster.ShimSidecar, Control: Unharmed,
			Does:  "leadership is handed over twenty times",
			Steps: []Step{transfers(20)},
		},
		{
			Name: "twenty-elections", Shim: cluster.ShimSidecar, Control: Unharmed,
			Does:  "all members lose each other until the leader gives up, twenty times",
			Steps: []Step{forced(20)},
		},
	}
}

// The time between two changes of leader. A transfer takes milliseconds. An
// election leaves everybody without a leader for about two seconds: leases of 5 s,
// also those of the official client, need the cluster back for longer than that.
const (
	afterTransfer = 500 * time.Millisecond
	afterElection = 2500 * time.Millisecond
)

func transfers(n int) Step {
	return Step{Text: fmt.Sprintf("transfer leadership, %d times", n), Wait: 2 * time.Second, Do: func(ctx context.Context, st *Stage) error {
		for range n {
			if _, err := st.Cluster.WaitLeader(ctx); err != nil {
				return err
			}
			if err := st.Cluster.TransferLeader(ctx, st.Cluster.Followers()[0]); err != nil {
				return err
			}
			if err := sleep(ctx, afterTransfer); err != nil {
				return err
			}
		}
		return nil
	}}
}

func forced(n int) Step {
	return Step{Text: fmt.Sprintf("force an election, %d times", n), Wait: 2 * time.Second, Do: func(ctx context.Context, st *Stage) error {
		for range n {
			if _, err := st.Cluster.ForceElection(ctx); err != nil {
				return err
			}
			if err := sleep(ctx, afterElection); err != nil {
				return err
			}
		}
		return nil
	}}
}

// nothingMoved files what our client has moved so far.
func nothingMoved(_ context.Context, st *Stage) error {
	if moves := st.Client.Health().Moves; len(moves) > 0 {
		st.moved = append(st.moved, fmt.Sprintf("before the fault it moved %v; want nothing: no member was bad", moves))
	}
	return nil
}
