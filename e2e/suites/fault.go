//go:build linux

package suites

import (
	"context"
	"time"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// Effect is what a fault does to a member, as its users see it.
type Effect int

// The effects.
const (
	Spares   Effect = iota // the member is as good as before: nothing may move off it
	Slows                  // it works, later or less surely: it may be left, nothing may be lost
	Isolates               // it accepts calls and completes none that needs the others
	Silences               // it answers nobody, or not these clients
	Ends                   // its connections end: everybody notices at once
)

// Fault is one line of the fault table.
type Fault struct {
	Name   string // in words with dashes
	Does   string // what happens to the member, such as "loses its peers both ways"
	Effect Effect
	// Inflict makes the member suffer and returns how it is lifted; nil: it is over
	// already. An *nethosts.UnavailableError says that this machine cannot.
	Inflict func(context.Context, *Stage, *realetcd.Member) (lift func(context.Context) error, err error)
	// Clients: it hits the clients, whatever the member is. Everybody: they lose all
	// members. Otherwise it hits one member.
	Clients, Everybody bool
	// Sidecar: it hits the shim beside the member, or it and the member.
	Sidecar bool
	// Spreads: of a leader it slows all members, for each asks the leader about every
	// linearizable read and sends it every write.
	Spreads bool
	// OnlyFollower: of a leader it would be another fault.
	OnlyFollower bool
	// Needs is what the machine must have, for people; "" nothing more than any fault.
	Needs string
	// Halts: it may end a process, or hold one that something else should end: no two such,
	// and none with a cut, fit on one member.
	Halts bool
	// Disks: members need disks of their own. Clock: applications need wall clocks that
	// can be stepped.
	Disks, Clock bool
	// Follower and Leader: how much harm is expected of the control when such a member
	// is hit.
	Follower, Leader Expect
	// Lasts in a scenario of its own; default faultLasts.
	Lasts time.Duration
	// LeaseTTL of the applications, where the fault outlasts the usual one.
	LeaseTTL time.Duration
}

// What some faults need.
const (
	controlGroups = "control groups"
	tunDevice     = "/dev/net/tun"
)

func (f Fault) needs() []string {
	if f.Needs == "" {
		return nil
	}
	return []string{f.Needs}
}

// hits lists the members that suffer when m is the target.
func (f Fault) hits(st *Stage, m *realetcd.Member) []*realetcd.Member {
	switch {
	case f.hitsAll(m, st.Leader):
		return st.Cluster.Members()
	case f.Clients && f.Effect == Spares, m == nil:
		return nil
	default:
		return []*realetcd.Member{m}
	}
}

// hitsAll says that every member suffers when m is the target and another one, or m
// itself, leads.
func (f Fault) hitsAll(m, leader *realetcd.Member) bool {
	return f.Everybody || f.Spreads && m != nil && m == leader
}

// Harm is what is expected of the control when a member of this role is hit.
func (f Fault) Harm(role Role) Expect {
	if role == Leader {
		return f.Leader
	}
	return f.Follower
}

// Budgets, from the fault, at etcd's default timing.
var (
	noQuorum    = Budget{Calls: 400 * time.Millisecond, Streams: 800 * time.Millisecond}
	unreachable = Budget{Calls: time.Second, Streams: time.Second}
	// Without a shim the proof is a read that each client makes once a second.
	noShim = Budget{Calls: 2 * time.Second, Streams: 2 * time.Second}
)

// Budget is how soon our client must have left a member that suffers the fault.
func (f Fault) Budget(shim realetcd.Shim) Budget {
	switch {
	case f.Everybody:
		return Budget{} // there is nowhere to go
	case f.Effect == Isolates && shim == realetcd.ShimNone, f.Effect == Silences && shim == realetcd.ShimNone:
		return noShim
	case f.Effect == Isolates:
		return noQuorum
	case f.Effect == Silences, f.Effect == Ends:
		return unreachable
	default:
		return Budget{}
	}
}
