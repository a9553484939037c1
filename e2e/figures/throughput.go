package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/cluster"
)

const (
	workers = 8
	slice   = 400 * time.Millisecond
)

func throughputCommand() *cobra.Command {
	var rounds int
	cmd := &cobra.Command{
		Use:   "throughput",
		Short: "Gets and Puts with nothing wrong, against the official client, turn by turn",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rounds < 1 {
				return fmt.Errorf("--rounds = %d: want at least 1", rounds)
			}
			return throughput(cmd.Context(), cmd.OutOrStdout(), rounds)
		},
	}
	cmd.Flags().IntVar(&rounds, "rounds", 40, "how many turns each client gets for each kind of call")
	return cmd
}

// throughput lets two clients take turns on one cluster, so that whatever else
// the machine does hits both.
func throughput(ctx context.Context, w io.Writer, rounds int) error {
	c, err := cluster.Start(ctx, cluster.Config{Shim: cluster.ShimSidecar})
	if err != nil {
		return err
	}
	defer c.Close()
	cfg := clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()}
	official, err := clientv3.New(cfg)
	if err != nil {
		return err
	}
	defer official.Close()
	shims := make(map[string]string)
	for _, m := range c.Members() {
		shims[m.ClientAddr()] = m.ShimAddr()
	}
	ours, err := client.New(client.Config{Config: cfg, Health: client.Health{
		ShimAddress: func(address string) string { return shims[address] },
		Logger:      slog.New(slog.DiscardHandler),
	}})
	if err != nil {
		return err
	}
	defer ours.Close()

	fmt.Fprintf(w, "%d workers, %d turns of %v for each client\n\n", workers, rounds, slice)
	fmt.Fprintln(w, "| call | official, calls/s | quorumwise, calls/s | ratio | median ratio of neighbouring turns |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, kind := range []struct {
		name string
		call func(context.Context, *clientv3.Client) error
	}{
		{"Get", func(ctx context.Context, cli *clientv3.Client) error { _, err := cli.Get(ctx, "k"); return err }},
		{"Put", func(ctx context.Context, cli *clientv3.Client) error { _, err := cli.Put(ctx, "k", "v"); return err }},
	} {
		if err := compare(ctx, w, kind.name, kind.call, official, ours.Client, rounds); err != nil {
			return err
		}
	}
	return nil
}

func compare(ctx context.Context, w io.Writer, name string, call func(context.Context, *clientv3.Client) error, official, ours *clientv3.Client, rounds int) error {
	var sums [2]float64
	var ratios []float64
	for round := range rounds + 2 {
		var got [2]float64
		for i := range 2 {
			which := (round + i) % 2 // whoever goes first changes
			cli := official
			if which == 1 {
				cli = ours
			}
			rate, err := turn(ctx, cli, call)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			got[which] = rate
		}
		if round < 2 {
			continue // warm up
		}
		sums[0], sums[1] = sums[0]+got[0], sums[1]+got[1]
		ratios = append(ratios, got[1]/got[0])
	}
	n := float64(rounds)
	fmt.Fprintf(w, "| %s | %.0f | %.0f | %.3f | %.3f |\n", name, sums[0]/n, sums[1]/n, sums[1]/sums[0], median(ratios))
	return nil
}

// turn is one client's turn; it returns calls per second.
func turn(ctx context.Context, cli *clientv3.Client, call func(context.Context, *clientv3.Client) error) (float64, error) {
	var calls atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	began := time.Now()
	end := began.Add(slice)
	for range workers {
		wg.Go(func() {
			for time.Now().Before(end) {
				if err := call(ctx, cli); err != nil {
					failed.Store(&err)
					return
				}
				calls.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(calls.Load()) / time.Since(began).Seconds(), nil
}
