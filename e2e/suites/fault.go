package suites

import (
	"context"

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
	// Inflict makes the member suffer and returns how it is lifted. An
	// *nethosts.UnavailableError says that this machine cannot.
	Inflict func(context.Context, *Stage, *realetcd.Member) (lift func(context.Context) error, err error)
	// Everybody: the members are all out of the clients' reach, not only the target.
	Everybody bool
	// NeedsShim: the fault hits a sidecar and is nothing without.
	NeedsShim bool
	// Follower and Leader: how much harm is expected of the control when such a member
	// is hit.
	Follower, Leader Expect
}

// hits lists the members that suffer when m is the target.
func (f Fault) hits(st *Stage, m *realetcd.Member) []*realetcd.Member {
	switch {
	case f.Everybody:
		return st.Cluster.Members()
	case m == nil:
		return nil
	default:
		return []*realetcd.Member{m}
	}
}

// Harm is what is expected of the control when a member of this role is hit.
func (f Fault) Harm(role Role) Expect {
	if role == Leader {
		return f.Leader
	}
	return f.Follower
}
