package client_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// A call begins, and wakes the loop, before it is filed: here long before, since
// an interceptor of the user's stands in between.
func TestCallThatIsSlowToStartIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
		defer c.Close()
		cfg := c.ClientConfig()
		att, err := client.Attach(&cfg, options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer att.Close()
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				time.Sleep(20 * time.Millisecond)
				return invoke(ctx, method, req, reply, cc, opts...)
			}))
		cli, err := clientv3.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer cli.Close()
		if _, err := cli.Get(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(21 * time.Second)
		for _, m := range c.Members() {
			m.SetDiskLatency(600 * time.Millisecond)
		}
		before := len(c.Requests("Range"))
		done := make(chan struct{})
		go func() { defer close(done); cli.Get(t.Context(), "k") }()
		time.Sleep(400 * time.Millisecond)
		if n := len(c.Requests("Range")) - before; n < 2 {
			t.Errorf("a call is unanswered for 380 ms and no proof was asked for (%d requests)", n)
		}
		<-done
	})
}

// A client that was at rest looks at the age of the first call that comes.
func TestLoneCallOfAClientAtRestIsWatched(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		for i := range 6 {
			time.Sleep(10*time.Second + time.Duration(i)*37*time.Millisecond)
			for _, m := range c.Members() {
				m.SetDiskLatency(600 * time.Millisecond)
			}
			before := len(c.Requests("Range"))
			done := make(chan struct{})
			go func() { defer close(done); cli.Get(t.Context(), "k") }()
			time.Sleep(400 * time.Millisecond)
			if n := len(c.Requests("Range")) - before; n < 2 {
				t.Fatalf("round %d: a call is unanswered for 400 ms and no proof was asked for (%d requests)", i, n)
			}
			<-done
			for _, m := range c.Members() {
				m.SetDiskLatency(0)
			}
		}
	})
}
