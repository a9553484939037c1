package client_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// grades collects every change of an endpoint's grade for some time.
func grades(cli *client.Client, address string, d time.Duration, so []string) []string {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		e, _ := cli.Health().Endpoint(address)
		if len(so) == 0 || so[len(so)-1] != e.Grade {
			so = append(so, e.Grade)
		}
	}
	return so
}

// F10: one member's disk takes 0.5 to 1 s, then hangs altogether, then recovers.
// The member is left once and comes back once.
func TestMemberThatIsSlowAndThenHangsIsLeftOnce(t *testing.T) {
	for _, shim := range []fakeetcd.Shim{fakeetcd.ShimSidecar, fakeetcd.ShimNone} {
		for index, who := range []string{"leader", "follower"} {
			t.Run(fmt.Sprint(shim, " ", who), func(t *testing.T) {
				t.Parallel()
				inBubble(t, fakeetcd.Options{Shim: shim}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
					l := startLoad(t, c, cli, 5)
					m := c.Member(index)
					var so []string
					for _, ms := range []time.Duration{700, 500, 950, 600} {
						m.SetDiskLatency(ms * time.Millisecond)
						so = grades(cli, m.Address, 3*time.Second, so)
					}
					m.StallDisk()
					so = grades(cli, m.Address, 6*time.Second, so)
					m.Heal()
					for _, ms := range []time.Duration{900, 600, 0} {
						m.SetDiskLatency(ms * time.Millisecond)
						so = grades(cli, m.Address, 4*time.Second, so)
					}
					so = grades(cli, m.Address, 10*time.Second, so)
					left := 0
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

// F11: all members slow down together. None is left for another that is as slow,
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
					var so []string
					for _, ms := range []time.Duration{2200, 3000, 2500, 0} {
						slow(c, ms*time.Millisecond)
						for _, m := range c.Members() {
							so = grades(cli, m.Address, 2500*time.Millisecond, so)
						}
					}
					if slices.Contains(so, "unhealthy") {
						t.Errorf("the grades were %v, want nobody given up", so)
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
