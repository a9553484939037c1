//go:build linux

package suites

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/healthsvc"
)

// stored are the operations on what members have stored.
func stored() []Scenario {
	return []Scenario{
		{
			Name: "defragmented-online", Suite: "operations", Field: []string{"F9"}, Shim: realetcd.ShimSidecar, Target: Follower, Control: Suffers, Returns: true,
			Does:    "a follower with a big store is defragmented under load, which takes it away for more than a second",
			Cluster: func(c *realetcd.Config) { c.Args = append(c.Args, fmt.Sprintf("--max-txn-ops=%d", keysAtOnce)) },
			App:     quickReturn,
			Prepare: growStore, Prepares: 20 * time.Second,
			Steps: []Step{
				{Text: "defragment the follower", Mark: Inflicted, Do: defragmentTarget},
				mend(12 * time.Second),
			},
			Judge: brokenClaims,
		},
		{
			Name: "quota-full", Suite: "operations", Field: []string{"F30"}, Shim: realetcd.ShimSidecar, Control: Suffers,
			Does:    "the quota of the store is used up: no member takes writes, all take reads, nothing moves; then it is freed",
			Cluster: func(c *realetcd.Config) { c.QuotaBytes = quota },
			Prepare: freeableStore,
			Steps: []Step{
				{Text: "fill the store, wait, compact, defragment, disarm", Mark: Noted, Takes: 13 * time.Second, Wait: 5 * time.Second, Do: fillQuota},
			},
			Judge: brokenClaims, Timing: claims(lateClaims, noStreamMoved),
		},
	}
}

const fillerPrefix = "/filler/"

// keysAtOnce is how many keys a filling transaction writes.
const keysAtOnce = 1000

// absence is how long defragmentation must take a member away: longer than the proofs
// after which it is left.
const absence = time.Second

// growStore makes the store so big that defragmenting it takes longer than absence. It
// tries on a member that the scenario is not aimed at.
func growStore(ctx context.Context, st *Stage) error {
	cli, err := st.Cluster.Client(st.Cluster.Members()...)
	if err != nil {
		return err
	}
	defer cli.Close()
	const rounds = 16
	for round := range rounds {
		if err := addKeys(ctx, cli, round, 150); err != nil {
			return err
		}
		began := time.Now()
		if err := st.Others(st.Target)[0].Defragment(ctx); err != nil {
			return err
		}
		took := time.Since(began)
		st.Log.Info("store grown", "keys", (round+1)*150*keysAtOnce, "defragmented in", took)
		if took > absence*3/2 {
			return st.settled(ctx, betweenMembers)
		}
	}
	return fmt.Errorf("defragmenting a store of %d keys is over too soon on this machine to be noticed", rounds*150*keysAtOnce)
}

// addKeys writes so many transactions of keysAtOnce small keys: what makes defragmenting
// slow is their number.
func addKeys(ctx context.Context, cli *clientv3.Client, round, transactions int) error {
	value := strings.Repeat("v", 128)
	for n := range transactions {
		var puts []clientv3.Op
		for i := range keysAtOnce {
			puts = append(puts, clientv3.OpPut(fmt.Sprintf("%s%d/%d/%d", fillerPrefix, round, n, i), value))
		}
		if _, err := cli.Txn(ctx).Then(puts...).Commit(); err != nil {
			return err
		}
	}
	return nil
}

func defragmentTarget(ctx context.Context, st *Stage) error {
	began := time.Now()
	back := st.Hurt(st.Target, "defragmented", Slows)
	err := st.Target.Defragment(ctx)
	back()
	took := time.Since(began)
	if err != nil {
		return err
	}
	st.judgeAbsence(took)
	return nil
}

// Sizes of the scenario in which the quota is used up.
const (
	quota    = 24 << 20
	freeable = 12 << 20 // of it goes when the store is compacted
	kept     = 6 << 20  // of it is used up before the load begins
	bigValue = 64 << 10
	pinch    = 16 << 10 // is written at a time under load, so that no member falls behind
)

// freeableStore overwrites big values by small ones, so that compaction at a revision
// before the load's first frees room and takes nothing of what the checks need.
func freeableStore(ctx context.Context, st *Stage) error {
	cli, err := st.Cluster.Client(st.Cluster.Members()...)
	if err != nil {
		return err
	}
	defer cli.Close()
	for name, part := range map[string]int{"kept": kept, "old": freeable} {
		if err := putAll(ctx, cli, name, part/bigValue, strings.Repeat("v", bigValue)); err != nil {
			return err
		}
	}
	return putAll(ctx, cli, "old", freeable/bigValue, "")
}

func putAll(ctx context.Context, cli *clientv3.Client, name string, times int, value string) error {
	for n := range times {
		if _, err := cli.Put(ctx, fmt.Sprintf("%s%s/%d", fillerPrefix, name, n), value); err != nil {
			return err
		}
	}
	return nil
}

// fillQuota hurts all members alike, so that failed writes are nobody's fault.
func fillQuota(ctx context.Context, st *Stage) error {
	cli, err := st.Cluster.Client(st.Cluster.Members()...)
	if err != nil {
		return err
	}
	defer cli.Close()
	for _, m := range st.Cluster.Members() {
		defer st.Hurt(m, "out of space", Slows)()
	}
	if err := untilFull(ctx, cli); err != nil {
		return err
	}
	st.Note(quotaUsedUp)
	if err := st.serve(ctx, true, false); err != nil {
		return err
	}
	if err := sleep(ctx, 4*time.Second); err != nil {
		return err
	}
	st.Note(quotaFreed)
	if err := freeSpace(ctx, st, cli); err != nil {
		return err
	}
	st.Note("there is room again")
	return st.serve(ctx, true, true)
}

func untilFull(ctx context.Context, cli *clientv3.Client) error {
	for n := range quota / pinch {
		_, err := cli.Put(ctx, fmt.Sprintf("%snew/%d", fillerPrefix, n), strings.Repeat("v", pinch))
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return nil
		}
		if err = errors.Join(err, sleep(ctx, 10*time.Millisecond)); err != nil {
			return err
		}
	}
	return fmt.Errorf("the quota of %d bytes was written and nobody refused", quota)
}

// freeSpace compacts up to the last small value that freeableStore has written.
func freeSpace(ctx context.Context, st *Stage, cli *clientv3.Client) error {
	last, err := cli.Get(ctx, fillerPrefix+"old/", clientv3.WithLastRev()...)
	if err != nil {
		return err
	}
	if _, err := cli.Compact(ctx, last.Kvs[0].ModRevision, clientv3.WithCompactPhysical()); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	for _, m := range st.Cluster.Members() {
		if err := m.Defragment(ctx); err != nil {
			return fmt.Errorf("defragment %s: %w", m.Name(), err)
		}
		if err := st.settled(ctx, time.Second); err != nil {
			return err
		}
	}
	_, err = cli.AlarmDisarm(ctx, new(clientv3.AlarmMember))
	return err
}

// serve claims that every shim comes to say this of reads and writes within two seconds,
// and that the member serves either way.
func (st *Stage) serve(ctx context.Context, reads, writes bool) error {
	asks := make(map[string]asker)
	for _, m := range st.Cluster.Members() {
		asks[m.Name()] = func(ctx context.Context) (map[string]bool, error) { return says(ctx, m) }
	}
	return st.claimSays(ctx, asks, map[string]bool{healthsvc.ServiceServing: true, healthsvc.ServiceRead: reads, healthsvc.ServiceWrite: writes})
}

// says asks a member's shim of which of its services that are about serving it is SERVING.
func says(ctx context.Context, m *realetcd.Member) (map[string]bool, error) {
	conn, err := grpc.NewClient(m.ShimAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	said := make(map[string]bool)
	for _, service := range []string{healthsvc.ServiceServing, healthsvc.ServiceRead, healthsvc.ServiceWrite} {
		resp, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
		if err != nil {
			return nil, fmt.Errorf("shim of %s: %s: %w", m.Name(), service, err)
		}
		said[service] = resp.GetStatus() == healthpb.HealthCheckResponse_SERVING
	}
	return said, nil
}
