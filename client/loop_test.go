package client_test

import (
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// A client that was at rest looks at the age of the first call that comes.
func TestLoneCallOfAClientAtRestIsWatched(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		for i := range 20 {
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
