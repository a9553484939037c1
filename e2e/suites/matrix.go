//go:build linux

package suites

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

const (
	faultLasts = 5500 * time.Millisecond
	afterwards = 4000 * time.Millisecond
)

// shims in the order of the matrix.
var shims = []realetcd.Shim{realetcd.ShimSidecar, realetcd.ShimInProcess, realetcd.ShimNone}

// matrix is every fault of the table on each kind of member, cluster and shim.
func matrix() []Scenario {
	var scs []Scenario
	for _, f := range Faults() {
		for _, role := range f.roles() {
			for _, members := range []int{3, 5} {
				for _, shim := range shims {
					if f.Sidecar && shim != realetcd.ShimSidecar {
						continue
					}
					scs = append(scs, f.scenario(role, members, shim))
				}
			}
		}
	}
	return scs
}

// roles are those that the fault can hit.
func (f Fault) roles() []Role {
	switch {
	case f.Clients:
		return []Role{Nobody}
	case f.OnlyFollower:
		return []Role{Follower}
	default:
		return []Role{Follower, Leader}
	}
}

// quick are the lines of the matrix that run on every change: one path through every
// mechanism.
var quick = map[string]bool{
	"follower-cut-3-sidecar":        true,
	"leader-cut-3-in-process":       true,
	"follower-cut-3-none":           true,
	"follower-one-way-in-5-sidecar": true,
	"follower-freeze-3-sidecar":     true,
	"leader-freeze-3-none":          true,
	"follower-kill-shim-3-sidecar":  true,
	"leader-disk-hang-3-sidecar":    true,
	"follower-client-cut-3-sidecar": true,
	"client-cut-all-3-sidecar":      true,
}

// scenario is the fault on one kind of member, cluster and shim.
func (f Fault) scenario(role Role, members int, shim realetcd.Shim) Scenario {
	name := fmt.Sprintf("%s-%d-%s", f.Name, members, shimWord(shim))
	does := fmt.Sprintf("of %d members a %s %s; shim: %v", members, role, f.Does, shim)
	if role == Nobody {
		does = fmt.Sprintf("of %d members %s; shim: %v", members, f.Does, shim)
	} else {
		name = string(role) + "-" + name
	}
	return Scenario{
		Name: name, Suite: "matrix", Does: does, Fault: f.grouped(role), Members: members, Shim: shim,
		Target: role, Control: f.Harm(role), Budget: f.Budget(shim), Steps: f.steps(), Quick: quick[name],
		App: f.app, Cluster: f.cluster, Clock: f.Clock, Needs: f.needs(),
	}
}

// grouped is the name that figures of this fault are grouped by.
func (f Fault) grouped(role Role) string {
	return strings.TrimPrefix(string(role)+" "+f.Name, " ")
}

// steps inflict the fault on the target and lift it.
func (f Fault) steps() []Step {
	lasts := f.Lasts
	if lasts == 0 {
		lasts = faultLasts
	}
	return []Step{
		{Text: f.Name, Mark: Inflicted, Wait: lasts, Do: func(ctx context.Context, st *Stage) error { return st.Inflict(ctx, f, st.Target) }},
		mend(afterwards),
	}
}

// mend is a step that lifts everything.
func mend(wait time.Duration) Step {
	return Step{Text: "heal", Mark: Mended, Wait: wait, Do: func(ctx context.Context, st *Stage) error { return st.Lift(ctx) }}
}

func (f Fault) app(c *app.Config) {
	if f.LeaseTTL > 0 {
		c.LeaseTTL = f.LeaseTTL
	}
}

func (f Fault) cluster(c *realetcd.Config) { c.Disks = c.Disks || f.Disks }

func shimWord(s realetcd.Shim) string { return strings.ReplaceAll(s.String(), " ", "-") }
