package scenario

import (
	"context"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/cluster"
)

const (
	faultLasts = 9 * time.Second
	afterwards = 3 * time.Second
)

// Budgets, from the fault, at etcd's default timing.
var (
	noQuorum    = Budget{Calls: 400 * time.Millisecond, Streams: 800 * time.Millisecond}
	unreachable = Budget{Calls: time.Second, Streams: time.Second}
	// Without a shim the proof is a read that each client makes once a second.
	noShim = Budget{Calls: 2 * time.Second, Streams: 2 * time.Second}
)

// fault is a step that takes something away, and one that heals everything.
func fault(text string, do func(*Stage)) []Step {
	return []Step{
		{Text: text, Mark: Fault, Wait: faultLasts, Do: func(_ context.Context, st *Stage) error { do(st); return nil }},
		heal(afterwards),
	}
}

func heal(wait time.Duration) Step {
	return Step{Text: "heal the network", Mark: Mended, Wait: wait, Do: func(_ context.Context, st *Stage) error { st.Cluster.Heal(); return nil }}
}

func cutLink(ctx context.Context, st *Stage) error {
	leader, err := st.Cluster.WaitLeader(ctx)
	if err == nil {
		st.Cluster.CutLink(st.Target, leader)
	}
	return err
}

// All lists every scenario.
func All() []Scenario {
	scs := []Scenario{
		{
			Name: "follower-cut", Quick: true, Target: Follower, Budget: noQuorum,
			Does:  "a follower loses its peers both ways; its client port stays open",
			Steps: fault("cut the follower from its peers", func(st *Stage) { st.Cluster.CutPeers(st.Target) }),
		},
		{
			Name: "leader-cut", Quick: true, Target: Leader, Budget: noQuorum,
			Does:  "the leader loses its peers both ways and is replaced",
			Steps: fault("cut the leader from its peers", func(st *Stage) { st.Cluster.CutPeers(st.Target) }),
		},
		{
			Name: "follower-one-way-out", Target: Follower, Budget: noQuorum,
			Does:  "what a follower sends to its peers is lost; it still hears them",
			Steps: fault("lose what the follower sends", func(st *Stage) { st.Cluster.CutOneWay(st.Target, cluster.Out) }),
		},
		{
			Name: "follower-one-way-in", Target: Follower, Budget: noQuorum,
			Does:  "what its peers send to a follower is lost; they still hear it",
			Steps: fault("lose what the follower is sent", func(st *Stage) { st.Cluster.CutOneWay(st.Target, cluster.In) }),
		},
		{
			Name: "link-to-leader-cut", Target: Follower, Budget: noQuorum,
			Does:  "only the link between a follower and the leader is cut; the third member hears both",
			Steps: []Step{{Text: "cut the link to the leader", Mark: Fault, Wait: faultLasts, Do: cutLink}, heal(afterwards)},
		},
		{
			Name: "client-cut", Target: Follower, Budget: unreachable,
			Does: "the applications lose one member that is healthy; the cluster notices nothing",
			Steps: fault("cut both applications from the member", func(st *Stage) {
				st.Cluster.CutView(st.Ours.View, st.Target)
				st.Cluster.CutView(st.Control.View, st.Target)
			}),
		},
		{
			Name: "follower-frozen", Quick: true, Target: Follower, Budget: unreachable,
			Does:  "a follower stops as by SIGSTOP: it accepts connections and never answers",
			Steps: fault("freeze the follower", func(st *Stage) { st.Cluster.Freeze(st.Target) }),
		},
		{
			Name: "leader-frozen", Target: Leader, Budget: unreachable,
			Does:  "the leader stops as by SIGSTOP: it accepts connections and never answers",
			Steps: fault("freeze the leader", func(st *Stage) { st.Cluster.Freeze(st.Target) }),
		},
		{
			Name: "heal-and-return", Target: Follower, Budget: noQuorum, Returns: true,
			Does:   "a follower is cut off and comes back: calls return and streams drift back",
			Health: client.Health{Rebalance: 3 * time.Second},
			Steps: []Step{
				fault("cut the follower from its peers", func(st *Stage) { st.Cluster.CutPeers(st.Target) })[0],
				heal(12 * time.Second),
			},
		},
		{
			Name: "follower-cut-of-five", Members: 5, Target: Follower, Budget: noQuorum,
			Does:  "one of four followers loses its peers",
			Steps: fault("cut the follower from its peers", func(st *Stage) { st.Cluster.CutPeers(st.Target) }),
		},
	}
	for i := range scs {
		scs[i].Shim = cluster.ShimSidecar
	}
	return slices.Concat(scs, shims(), elections(), upkeep())
}

// shims are the scenarios about the shims themselves.
func shims() []Scenario {
	cut := fault("cut the follower from its peers", func(st *Stage) { st.Cluster.CutPeers(st.Target) })
	return []Scenario{
		{
			Name: "follower-cut-in-process", Shim: cluster.ShimInProcess, Target: Follower, Budget: noQuorum,
			Does: "a follower loses its peers; the shims are inside the members", Steps: cut,
		},
		{
			Name: "follower-cut-no-shim", Shim: cluster.ShimNone, Quick: true, Target: Follower, Budget: noShim,
			Does: "a follower loses its peers and there are no shims at all", Steps: cut,
		},
		{
			Name: "leader-cut-no-shim", Shim: cluster.ShimNone, Target: Leader, Budget: noShim,
			Does:  "the leader loses its peers and there are no shims at all",
			Steps: fault("cut the leader from its peers", func(st *Stage) { st.Cluster.CutPeers(st.Target) }),
		},
		{
			Name: "shim-killed", Shim: cluster.ShimSidecar, Target: Follower, Control: Unharmed,
			Does: "the shim beside one healthy member is killed and started again",
			Steps: []Step{
				{Text: "kill the shim", Wait: 6 * time.Second, Do: func(_ context.Context, st *Stage) error { return st.Target.KillShim() }},
				{Text: "start it again", Wait: 4 * time.Second, Do: func(_ context.Context, st *Stage) error { return st.Target.StartShim() }},
			},
		},
		{
			Name: "all-shims-killed", Shim: cluster.ShimSidecar, Target: Follower, Budget: noShim,
			Does: "every shim is killed; then a follower loses its peers",
			Steps: append([]Step{
				{Text: "kill every shim", Wait: 5 * time.Second, Do: killAll},
				{Text: "nothing has moved", Do: nothingMoved},
			}, cut...),
		},
		{
			Name: "shims-lie", Shim: cluster.ShimLying, Quick: true, Target: Follower, Control: Unharmed,
			Does:  "every shim says NOT_SERVING of a healthy member, all the time",
			Steps: []Step{{Text: "use the cluster all the same", Wait: 8 * time.Second}},
		},
	}
}

func killAll(_ context.Context, st *Stage) error {
	for _, m := range st.Cluster.Members() {
		if err := m.KillShim(); err != nil {
			return err
		}
	}
	return nil
}
