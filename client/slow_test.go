package client_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// history is every change of the endpoints' grades, by address.
type history map[string][]string

// follow goes on with the history for some time. A grade that nothing contradicts
// lasts longer than one look in twenty a second can miss.
func (h history) follow(cli *client.Client, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, e := range cli.Health().Endpoints {
			if so := h[e.Address]; len(so) == 0 || so[len(so)-1] != e.Grade {
				h[e.Address] = append(so, e.Grade)
			}
		}
	}
}

// One member's disk takes 0.5 to 1 s, then hangs altogether, then recovers.
// The member is left once and comes back once.
func TestMemberThatIsSlowAndThenHangsIsLeftOnce(t *testing.T) {
	for _, shim := range []fakeetcd.Shim{fakeetcd.ShimSidecar, fakeetcd.ShimNone} {
		for index, who := range []string{"leader", "follower"} {
			t.Run(fmt.Sprint(shim, " ", who), func(t *testing.T) {
				t.Parallel()
				inBubble(t, fakeetcd.Options{Shim: shim}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
					l := startLoad(t, c, cli, 5)
					m := c.Member(index)
					was := history{}
					for _, ms := range []time.Duration{700, 500, 950, 600} {
						m.SetDiskLatency(ms * time.Millisecond)
						was.follow(cli, 2*time.Second)
					}
					m.StallDisk()
					was.follow(cli, 6*time.Second)
					m.Heal()
					for _, ms := range []time.Duration{900, 600, 0} {
						m.SetDiskLatency(ms * time.Millisecond)
						was.follow(cli, 2*time.Second)
					}
					was.follow(cli, 6*time.Second)
					left, so := 0, was[m.Address]
					for _, g := range so {
						if g == "unhealthy" {
							left++
						}
					}
					if left != 1 || so[len(so)-1] != "healthy" {
						t.Errorf("the member was %v, want it left once and back at the end", so)
					}
					l.stop()
					l.checkWhole()
				})
			})
		}
	}
}

// All members slow down together. None is left for another that is as slow,
// and no stream moves.
func TestMembersThatAreSlowTogetherAreNotLeft(t *testing.T) {
	slowers := map[string]func(*fakeetcd.Cluster, time.Duration){
		"everything": func(c *fakeetcd.Cluster, d time.Duration) { c.SetLatency(d) },
		"disks": func(c *fakeetcd.Cluster, d time.Duration) {
			for _, m := range c.Members() {
				m.SetDiskLatency(d)
			}
		},
	}
	for name, slow := range slowers {
		for _, shim := range []fakeetcd.Shim{fakeetcd.ShimSidecar, fakeetcd.ShimInProcess, fakeetcd.ShimNone} {
			t.Run(fmt.Sprint(name, " ", shim), func(t *testing.T) {
				t.Parallel()
				inBubble(t, fakeetcd.Options{Shim: shim}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
					l := startLoad(t, c, cli, 30)
					was := history{}
					for _, ms := range []time.Duration{2200, 3000, 2500, 0} {
						slow(c, ms*time.Millisecond)
						was.follow(cli, 5*time.Second)
					}
					for address, so := range was {
						if slices.Contains(so, "unhealthy") {
							t.Errorf("%s was %v, want nobody given up", address, so)
						}
					}
					if n := streamMoves(cli); n > 0 {
						t.Errorf("%d streams moved (%v), want none: nobody is better", n, cli.Health().Moves)
					}
					l.stop()
					l.checkWhole()
				})
			})
		}
	}
}
