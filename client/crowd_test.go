package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// Many clients are on one member, which goes, and the others have too much
// to do for 10 s. They come back spread over time and over both, ask less often
// the longer it lasts, and miss nothing. (The case has 1,000 clients: with them
// the test holds too, and takes twelve times as long.)
func TestCrowdOfRefusedWatchesComesBackSpread(t *testing.T) {
	const clients = 80
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
		defer c.Close()
		cfg := c.ClientConfig() // of all: they share their probes
		left, others := c.Member(0), c.Members()[1:]
		for _, m := range others {
			m.CutClient()
		}
		var watches []*seen
		for range clients {
			cli := newClientOf(t, cfg, options{Rebalance: -1})
			defer cli.Close()
			watches = append(watches, numbered(t.Context(), cli, 0))
		}
		written := publish(c, time.Second, 2*time.Second)
		for _, m := range others {
			m.HealClient()
		}
		written = append(written, publish(c, time.Second, 5*time.Second)...)
		if n := left.Streams("Watch"); n != clients {
			t.Fatalf("%d of %d watches are on one member, want all: this tests nothing", n, clients)
		}

		for _, m := range others {
			m.Reject(codes.ResourceExhausted, "too many requests", "Watch")
		}
		gone := time.Now()
		left.Kill()
		written = append(written, publish(c, time.Second, 10*time.Second)...)
		for _, m := range others {
			m.Reject(codes.OK, "")
		}
		free := time.Now()
		written = append(written, publish(c, time.Second, 6*time.Second)...)
		synctest.Wait()

		refused, came := make([]int, 10), map[time.Duration]int{}
		for _, r := range c.Requests("Watch") {
			switch {
			case r.Message != nil || !r.At.After(gone):
			case r.At.Before(free):
				refused[r.At.Sub(gone)/time.Second]++
			default:
				came[r.At.Sub(free).Truncate(100*time.Millisecond)]++
			}
		}
		for second, n := range refused {
			if second > 2 && n > clients || n > 6*clients {
				t.Errorf("%d attempts of %d clients in second %d, want them to back off: %v", n, clients, second, refused)
			}
		}
		for at, n := range came {
			if n > clients/4 {
				t.Errorf("%d of %d came within 100ms, %v after there was room, want them spread: %v", n, clients, at, came)
			}
		}
		for i, m := range others {
			if n := m.Streams("Watch"); n < clients/4 || n > 3*clients/4 {
				t.Errorf("%d of %d watches are on one of the two members that are left (%d), want about a half", n, clients, i)
			}
		}
		for i, s := range watches {
			s.complete(t, i, written)
		}
	})
}
