package scenario

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/e2e/cluster"
)

// upkeep are the scenarios in which people do to members what people do.
func upkeep() []Scenario {
	return []Scenario{
		{
			Name: "members-restarted-in-turn", Shim: cluster.ShimSidecar, Control: Open,
			Does:  "every member is stopped and started again, one after the other",
			Steps: []Step{{Text: "restart every member in turn", Wait: 3 * time.Second, Do: restartAll}},
		},
		{
			Name: "follower-defragmented", Shim: cluster.ShimSidecar, Target: Follower, Control: Open,
			Does:  "a follower is defragmented five times under load",
			Steps: []Step{{Text: "defragment the follower five times", Wait: 3 * time.Second, Do: defragment}},
		},
	}
}

func restartAll(ctx context.Context, st *Stage) error {
	for _, m := range st.Cluster.Members() {
		if err := m.Stop(); err != nil {
			return err
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
		if err := m.Start(ctx); err != nil {
			return err
		}
		if err := st.Cluster.Settled(ctx, 3*time.Second); err != nil {
			return err
		}
	}
	return nil
}

func defragment(ctx context.Context, st *Stage) error {
	cli, err := clientv3.New(officialConfig([]string{st.Target.ClientAddr()}))
	if err != nil {
		return err
	}
	defer cli.Close()
	for range 5 {
		if _, err := cli.Defragment(ctx, st.Target.ClientAddr()); err != nil {
			return fmt.Errorf("defragment %s: %w", st.Target.Name(), err)
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil
}
