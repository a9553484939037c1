package fakeetcd

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// inBubble runs a test against a cluster and the official client of all its members.
func inBubble(t *testing.T, opts Options, test func(t *testing.T, c *Cluster, cli *clientv3.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := New(3, opts)
		defer c.Close()
		cli := dial(t, c.ClientConfig())
		defer func() { _ = cli.Close() }()
		test(t, c, cli)
	})
}

func dial(t *testing.T, cfg clientv3.Config) *clientv3.Client {
	t.Helper()
	cli, err := clientv3.New(cfg)
	if err != nil {
		t.Fatalf("the official client does not start against the fake: %v", err)
	}
	return cli
}

// within5s is the deadline that applications commonly give a request.
func within5s(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestClusterAnswersPutAndGet(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		for range 9 { // every member serves a third of the calls
			if _, err := cli.Put(within5s(t), "k", "v"); err != nil {
				t.Fatalf("Put: %v", err)
			}
			resp, err := cli.Get(within5s(t), "k")
			if err != nil {
				t.Fatalf("Get: %v", err)
			}
			if len(resp.Kvs) != 1 || string(resp.Kvs[0].Value) != "v" {
				t.Fatalf("Get answered %v, want one key with value v", resp.Kvs)
			}
		}
	})
}
