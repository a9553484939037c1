package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// By whichever way of clientv3 a mutation goes, the caller finds the
// MovedError in what comes back, and the servers saw it once. LeaseGrant and
// LeaseRevoke are of the kind that clientv3 repeats by itself when it may.
func TestEveryKindOfMutationIsSentOnceAndItsOutcomeUnknown(t *testing.T) {
	type call struct {
		method string
		do     func(context.Context, *client.Client) error
	}
	calls := []call{
		{"Put", func(ctx context.Context, cli *client.Client) error { _, err := cli.Put(ctx, "k", "put"); return err }},
		{"DeleteRange", func(ctx context.Context, cli *client.Client) error { _, err := cli.Delete(ctx, "d"); return err }},
		{"Compact", func(ctx context.Context, cli *client.Client) error { _, err := cli.Compact(ctx, 1); return err }},
		{"Txn", func(ctx context.Context, cli *client.Client) error {
			_, err := cli.Txn(ctx).Then(clientv3.OpPut("k", "txn")).Commit()
			return err
		}},
		{"Txn", func(ctx context.Context, cli *client.Client) error {
			_, err := concurrency.NewSTM(cli.Client, func(s concurrency.STM) error { s.Put("k", "stm"); return nil }, concurrency.WithAbortContext(ctx))
			return err
		}},
		{"LeaseGrant", func(ctx context.Context, cli *client.Client) error { _, err := cli.Grant(ctx, 77); return err }},
		{"LeaseRevoke", func(ctx context.Context, cli *client.Client) error { _, err := cli.Revoke(ctx, 7); return err }},
		{"UserAdd", func(ctx context.Context, cli *client.Client) error { _, err := cli.UserAdd(ctx, "u", "p"); return err }},
		{"MemberAdd", func(ctx context.Context, cli *client.Client) error {
			_, err := cli.MemberAdd(ctx, []string{"http://x:2380"})
			return err
		}},
	}
	for i, tt := range calls {
		t.Run(tt.method, func(t *testing.T) {
			inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
				for _, m := range c.Members() {
					m.DropAnswer(tt.method)
				}
				before := len(c.Requests(tt.method))
				result := make(chan error, 1)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				go func() { result <- tt.do(ctx, cli) }()
				time.Sleep(50 * time.Millisecond)
				sent := c.Requests(tt.method)
				if len(sent) != before+1 {
					t.Fatalf("%d requests arrived, want the one (call %d)", len(sent)-before, i)
				}
				c.Member(sent[before].Member).CutPeers()
				err := <-result
				var moved *client.MovedError
				if !client.IsOutcomeUnknown(err) || !errors.As(err, &moved) || !strings.HasSuffix(moved.Method, tt.method) {
					t.Errorf("%v, want a MovedError of unknown outcome", err)
				}
				time.Sleep(5 * time.Second)
				if n := len(c.Requests(tt.method)) - before; n != 1 {
					t.Errorf("%d requests arrived, want one: it was sent again", n)
				}
			})
		})
	}
}

// A leader that was lost before the mutation was sent has nothing of it, however long it
// waited for a connection.
func TestMutationThatWaitedForAConnectionIsNotOfTheLostLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
		defer c.Close()
		c.SetLatency(200 * time.Millisecond)
		cfg := c.ClientConfig()
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			if strings.HasSuffix(address, ":2379") {
				select {
				case <-time.After(2800 * time.Millisecond):
				case <-ctx.Done():
				}
			}
			return c.Dial(ctx, address)
		}))
		cli := newClientOf(t, cfg, options{})
		defer closeInTime(t, cli)
		time.AfterFunc(500*time.Millisecond, func() { c.Elect(1, 100*time.Millisecond) })
		began := time.Now()
		_, err := cli.Put(t.Context(), "k", "v")
		if took := time.Since(began); err != nil || took < 2800*time.Millisecond {
			t.Errorf("the Put ended after %v with %v, want it answered once there is a connection", took, err)
		}
		if h := cli.Health(); h.Term != c.Term() || h.Term < 3 {
			t.Errorf("the client knows term %d of %d, want the second leader's: this tests nothing", h.Term, c.Term())
		}
	})
}
