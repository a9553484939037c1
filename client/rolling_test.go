package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// Many watchers, each with a stream of its own, and the members restarted in
// turn. Left to itself the last one restarted would stay empty.
func TestLastMemberRestartedGetsItsShareOfTheWatchesBack(t *testing.T) {
	const watchers, rebalance = 150, 10 * time.Second
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{Rebalance: rebalance}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		var watches []*seen
		for i := range watchers {
			watches = append(watches, numbered(t.Context(), cli, i))
		}
		streams := func() (n [3]int) {
			for i, m := range c.Members() {
				n[i] = m.Streams("Watch")
			}
			return n
		}
		whole := func(when string) {
			t.Helper()
			synctest.Wait()
			if n := streams(); n[0]+n[1]+n[2] != watchers {
				t.Errorf("%s: streams %v, want %d together", when, n, watchers)
			}
		}
		written := publish(c, time.Second, 2*time.Second)
		whole("at first")
		for _, m := range c.Members() {
			m.Kill()
			written = append(written, publish(c, time.Second, 3*time.Second)...)
			whole("while one is down")
			m.Restart()
			written = append(written, publish(c, time.Second, 3*time.Second)...)
		}
		written = append(written, publish(c, time.Second, rebalance)...)
		whole("after the rebalance time")
		for i, n := range streams() {
			if n < 42 || n > 58 {
				t.Errorf("member %d has %d of %d streams after the rebalance time, want a third", i, n, watchers)
			}
		}
		for i, s := range watches {
			s.complete(t, i, written)
		}
	})
}
