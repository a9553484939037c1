//go:build linux

package suites

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// betweenMembers is how long the cluster must be whole before the next member is taken.
// It outlasts the proofs after which a member that was away is used again.
const betweenMembers = 3 * time.Second

// restartsTake is how long it takes, about, until all of three members have been restarted
// in turn and the cluster is whole after each.
const restartsTake = 38 * time.Second

// operations are what people do to clusters, under load.
func operations() []Scenario {
	scs := []Scenario{
		{
			Name: "rolling-restart", Control: Harmless, Quick: true,
			Does:  "every member is stopped and started again, one after the other",
			Steps: []Step{{Text: "restart every member in turn", Mark: Noted, Takes: restartsTake, Wait: betweenMembers, Do: restartAll}},
		},
		{
			Name: "learner-added-and-promoted", Control: Harmless,
			Does: "a learner joins, is given to the applications as an endpoint while it still learns, and gets its vote",
			Steps: []Step{
				{Text: "add a learner and tell the applications", Mark: Noted, Takes: 5 * time.Second, Wait: 5 * time.Second, Do: addLearner},
				{Text: "promote it", Mark: Noted, Wait: 8 * time.Second, Do: promoteLearner},
			},
			Judge: learnerUnused,
		},
		{
			Name: "attached-member-removed", Control: Harmless, Target: Follower,
			Does: "a member that applications are attached to is removed from the cluster; they go on knowing its address",
			Steps: []Step{
				{Text: "remove the member", Mark: Inflicted, Takes: 4 * time.Second, Wait: 8 * time.Second, Do: removeTarget},
				{Text: "tell the applications", Mark: Noted, Wait: 3 * time.Second, Do: tellApplications},
			},
			Timing: leftOnceBad(unreachable.Streams),
		},
		{
			Name: "members-replaced", Control: Harmless,
			Does:  "all members are replaced one by one by new ones with new addresses, told by SetEndpoints; a third client follows by AutoSync alone",
			Steps: []Step{{Text: "replace every member in turn", Mark: Noted, Takes: 17 * time.Second, Wait: betweenMembers, Do: replaceAll}},
			Judge: brokenClaims, Timing: lateClaims,
		},
		{
			Name: "shim-rolled-out", Control: Unharmed,
			Does: "members without shims get one each, one after the other; nothing moves",
			Steps: []Step{
				{Text: "start without shims", Wait: 5 * time.Second, Do: withoutShims},
				{Text: "start the shims one by one", Mark: Noted, Takes: 15 * time.Second, Wait: 5 * time.Second, Do: rollOut},
			},
			Shown: shimsCame,
		},
		shimsOn(1), shimsOn(2),
		{
			Name: "upgraded-from-previous-minor", Control: Harmless, Version: previousMinor, Upgrades: true,
			Does:  "the members are upgraded one by one from the previous minor version to this one",
			Steps: []Step{{Text: "upgrade every member in turn", Mark: Noted, Takes: restartsTake, Wait: betweenMembers, Do: upgradeAll}},
			Judge: brokenClaims,
		},
	}
	for i := range scs {
		scs[i].Suite, scs[i].Shim = "operations", realetcd.ShimSidecar
	}
	return append(scs, stored()...)
}

// each does something to every member that there is now, one after the other, and
// lets the cluster settle in between. Meanwhile the member's streams may leave it.
func each(ctx context.Context, st *Stage, what string, do func(*realetcd.Member) error) error {
	for _, m := range slices.Clone(st.Cluster.Members()) {
		st.Note("%s: %s", m.Name(), what)
		back := st.Hurt(m, what, Ends)
		if err := do(m); err != nil {
			return fmt.Errorf("%s: %s: %w", m.Name(), what, err)
		}
		back()
		if err := st.settled(ctx, betweenMembers); err != nil {
			return err
		}
	}
	return nil
}

// settles is how long a cluster may take to be whole again: longer than the minute for
// which a shim may hold down a member that flapped.
const settles = 90 * time.Second

// settled waits until the cluster has been whole for some time.
func (st *Stage) settled(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d+settles, fmt.Errorf("the cluster was not whole for %v within %v", d, d+settles))
	defer cancel()
	return st.Cluster.Settled(ctx, d)
}

func restartAll(ctx context.Context, st *Stage) error {
	return each(ctx, st, "restarted", func(m *realetcd.Member) error { return m.Restart(ctx, "") })
}

// upgradeAll ends at the version that this module uses, which is the one that the
// shims and the clients are built with.
func upgradeAll(ctx context.Context, st *Stage) error {
	binary, err := realetcd.Build(ctx, "")
	if err != nil {
		return err
	}
	version, err := realetcd.Version(ctx, binary)
	if err != nil {
		return err
	}
	return each(ctx, st, "upgraded to "+version, func(m *realetcd.Member) error { return upgrade(ctx, st, m, binary, version) })
}

// upgrade wants the member itself to say that it was of the previous minor version and is of
// this one: else nothing was upgraded.
func upgrade(ctx context.Context, st *Stage, m *realetcd.Member, binary, version string) error {
	before, err := runs(ctx, st, m)
	if err != nil {
		return err
	}
	if err := m.Restart(ctx, binary); err != nil {
		return err
	}
	after, err := runs(ctx, st, m)
	if err != nil {
		return err
	}
	wrong := notUpgraded(before, after, version)
	st.premise(wrong == "", "%s %s", m.Name(), wrong)
	return nil
}

// runs is the version that a member says it is of.
func runs(ctx context.Context, st *Stage, m *realetcd.Member) (string, error) {
	cli, err := st.Cluster.Client(m)
	if err != nil {
		return "", err
	}
	defer cli.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := cli.Status(ctx, m.Endpoint())
	if err != nil {
		return "", fmt.Errorf("version of %s: %w", m.Name(), err)
	}
	return status.Version, nil
}

// notUpgraded says what is wrong with the versions that a member was of before and after;
// "" nothing is.
func notUpgraded(before, after, want string) string {
	switch {
	case !strings.HasPrefix(before, previousMinor+"."):
		return fmt.Sprintf("ran %s before its upgrade; want %s", before, previousMinor)
	case after != want:
		return fmt.Sprintf("runs %s after its upgrade; want %s", after, want)
	default:
		return ""
	}
}

// tell gives both applications the endpoints of all members.
func tell(ctx context.Context, st *Stage, members ...*realetcd.Member) error {
	var endpoints []string
	shims := make(map[string]string)
	for _, m := range members {
		endpoints = append(endpoints, m.Endpoint())
		if addr := m.ShimAddr(); addr != "" {
			shims[m.Endpoint()] = addr
		}
	}
	return errors.Join(st.Ours.App.SetEndpoints(ctx, endpoints, shims), st.Control.App.SetEndpoints(ctx, endpoints, shims))
}

func tellApplications(ctx context.Context, st *Stage) error {
	return tell(ctx, st, st.Cluster.Members()...)
}

// learnerJoined and learnerPromoted are remarks that learnerUnused looks for.
const (
	learnerJoined   = "learner joined: "
	learnerPromoted = "learner promoted: "
)

// addLearner says where the learner is before the applications know it.
func addLearner(ctx context.Context, st *Stage) error {
	m, err := st.Cluster.AddLearner(ctx)
	if err != nil {
		return err
	}
	st.Note(learnerJoined+"%s", m.Endpoint())
	return tellApplications(ctx, st)
}

func promoteLearner(ctx context.Context, st *Stage) error {
	members := st.Cluster.Members()
	learner := members[len(members)-1]
	if err := st.Cluster.Promote(ctx, learner); err != nil {
		return err
	}
	st.Note(learnerPromoted+"%s", learner.Endpoint())
	return nil
}

// removeTarget hurts for good: a member that was removed does not come back.
func removeTarget(ctx context.Context, st *Stage) error {
	st.Hurt(st.Target, "removed", Ends)
	return st.Cluster.Remove(ctx, st.Target)
}

// replaceAll tells the applications after each replacement, as a deployment does that
// rolls out a new list. A third client is told nothing.
func replaceAll(ctx context.Context, st *Stage) error {
	third, err := attend(ctx, st, bystanderConfig{AutoSync: time.Second})
	if err != nil {
		return err
	}
	for _, old := range slices.Clone(st.Cluster.Members()) {
		st.Note("replace %s", old.Name())
		back := st.Hurt(old, "replaced", Ends)
		if _, err := st.Cluster.Replace(ctx, old); err != nil {
			return errors.Join(err, third.close())
		}
		if err := tellApplications(ctx, st); err != nil {
			return errors.Join(err, third.close())
		}
		st.follow()
		if err := st.settled(ctx, betweenMembers); err != nil {
			return errors.Join(err, third.close())
		}
		back()
	}
	known := third.endpoints()
	missing, err := third.leave(ctx)
	st.judgeFollower(known, st.Cluster.Endpoints(), missing)
	return err
}

// withoutShims is how a deployment looks before the first shim.
func withoutShims(_ context.Context, st *Stage) error {
	for _, m := range st.Cluster.Members() {
		if err := m.KillShim(); err != nil {
			return err
		}
	}
	return nil
}

func rollOut(ctx context.Context, st *Stage) error {
	for i, m := range st.Cluster.Members() {
		if err := m.StartShim(ctx); err != nil {
			return err
		}
		st.Note("%d members have a shim", i+1)
		if err := sleep(ctx, 5*time.Second); err != nil {
			return err
		}
	}
	return nil
}

// shimsOn has shims on some members only, the target among them. Its shim says that it
// is bad; that the others are better the clients find out by themselves.
func shimsOn(n int) Scenario {
	return Scenario{
		Name: fmt.Sprintf("cut-with-%d-of-3-shims", n), Control: Stuck, Target: Follower, Budget: noShim,
		Does: fmt.Sprintf("%d of three members have a shim, and a follower that has one loses its peers", n),
		Steps: []Step{
			{Text: fmt.Sprintf("leave shims on %d of the members", n), Wait: 5 * time.Second, Do: func(_ context.Context, st *Stage) error {
				for _, m := range st.Others(st.Target)[n-1:] {
					if err := m.KillShim(); err != nil {
						return err
					}
				}
				return nil
			}},
			{Text: "cut the follower from its peers", Mark: Inflicted, Wait: faultLasts, Do: on(first, "cut")},
			mend(afterwards),
		},
	}
}

// longLeases keeps leases through what takes all members away at once.
func longLeases(ttl time.Duration) func(*app.Config) {
	return func(c *app.Config) { c.LeaseTTL = ttl }
}

// quickReturn has streams drift back to members within the scenario.
func quickReturn(c *app.Config) { c.Rebalance = 3 * time.Second }
