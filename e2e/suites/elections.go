//go:build linux

package suites

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// The time between two changes of leader. A transfer takes milliseconds. A killed
// leader leaves everybody without one for one to two seconds: leases of 5 s, also those
// of the official client, need the cluster back for longer than that.
const (
	betweenTransfers = 500 * time.Millisecond
	betweenElections = 2 * time.Second
)

// How long one change of leader takes, about, with the time until the next.
const (
	killTakes     = 4 * time.Second
	transferTakes = 600 * time.Millisecond
	forceTakes    = 7 * time.Second
)

// elections are the scenarios in which the leader changes.
func elections() []Scenario {
	return []Scenario{
		leadersKilled("leaders-killed-3-times", 3, true),
		leadersKilled("leaders-killed-100-times", 100, false),
		leadershipTransferred("leadership-transferred-10-times", 10, true),
		leadershipTransferred("leadership-transferred-100-times", 100, false),
		{
			// One member may find its peers again later than the others, and be left for that.
			// Leases outlast the longest of these outages: nothing is excused.
			Name: "elections-forced-10-times", Suite: "elections", Shim: realetcd.ShimSidecar, Control: Suffers, App: longLeases(15 * time.Second),
			Does:  "all members lose each other until the leader gives up, ten times; nothing is lost, and no stream moves off a member that is as good as another",
			Steps: []Step{repeated("force an election", 10, forceTakes, forceElection)},
		},
		memberFlaps(Follower),
		memberFlaps(Leader),
	}
}

// leadersKilled ends leaders as a power cut does. Streams on them end for everybody:
// what the control suffers depends on chance.
func leadersKilled(name string, times int, quick bool) Scenario {
	return Scenario{
		Name: name, Suite: "elections", Shim: realetcd.ShimSidecar, Control: Suffers, Quick: quick,
		Does:  fmt.Sprintf("the leader is killed (SIGKILL) and started again, %d times, each time another member leads", times),
		Steps: []Step{repeated("kill the leader", times, killTakes, killLeader)},
	}
}

func leadershipTransferred(name string, times int, quick bool) Scenario {
	return Scenario{
		Name: name, Suite: "elections", Shim: realetcd.ShimSidecar, Control: Unharmed, Quick: quick,
		Does:  fmt.Sprintf("leadership is handed over %d times on healthy members; no stream moves", times),
		Steps: []Step{repeated("transfer leadership", times, transferTakes, transferLeadership)},
	}
}

// memberFlaps has a member that hears nobody and is heard half the time: its raft loop
// and its proofs come and go. It is bad for the whole minute, however it looks at a
// moment: streams that go back to it have to leave it again.
func memberFlaps(role Role) Scenario {
	f := Fault{Name: "flap", Effect: Isolates, Inflict: flap}
	return Scenario{
		Name: "flapping-" + string(role), Suite: "elections", Shim: realetcd.ShimSidecar, Target: role, Control: Stuck, Budget: noQuorum,
		Does: fmt.Sprintf("for a minute the %s hears nobody and half of what it sends is lost; nothing moves off the others, nothing stays on it", role),
		Steps: []Step{
			{
				Text: fmt.Sprintf("lose all that the %s is sent and half of what it sends", role), Mark: Inflicted, Wait: time.Minute,
				Do: func(ctx context.Context, st *Stage) error { return st.Inflict(ctx, f, st.Target) },
			},
			mend(10 * time.Second),
		},
	}
}

func flap(ctx context.Context, st *Stage, m *realetcd.Member) (lifter, error) {
	deaf, err := drop(inwards)(ctx, st, m)
	if err != nil {
		return nil, err
	}
	half, err := onFlows(outwards, func(l *nethosts.Lab, fs ...nethosts.Flow) (*nethosts.Fault, error) { return l.Lose(0.5, fs...) })(ctx, st, m)
	if err != nil {
		return nil, errors.Join(err, deaf(ctx))
	}
	return func(ctx context.Context) error { return errors.Join(half(ctx), deaf(ctx)) }, nil
}

// repeated does something so often, in one step; once takes each.
func repeated(text string, times int, each time.Duration, do func(context.Context, *Stage) error) Step {
	return Step{Text: fmt.Sprintf("%s, %d times", text, times), Mark: Noted, Takes: time.Duration(times) * each, Wait: 3 * time.Second, Do: func(ctx context.Context, st *Stage) error {
		for i := range times {
			if err := do(ctx, st); err != nil {
				return fmt.Errorf("%s, time %d of %d: %w", text, i+1, times, err)
			}
		}
		return nil
	}}
}

func killLeader(ctx context.Context, st *Stage) error {
	leader, err := st.Cluster.Leader(ctx)
	if err != nil {
		return err
	}
	healed := st.Hurt(leader, "killed", Ends)
	defer healed()
	if err := leader.Kill(); err != nil {
		return err
	}
	next, err := st.Cluster.WaitOtherLeader(ctx, leader)
	if err != nil {
		return err
	}
	st.Log.Info("leader killed", "member", leader.Name(), "next", next.Name())
	if err := leader.Start(ctx); err != nil {
		return err
	}
	return st.settled(ctx, betweenElections)
}

func transferLeadership(ctx context.Context, st *Stage) error {
	followers, err := st.Cluster.Followers(ctx)
	if err != nil {
		return err
	}
	if err := st.Cluster.TransferLeader(ctx, followers[st.Rand.IntN(len(followers))]); err != nil {
		return err
	}
	return sleep(ctx, betweenTransfers)
}

// forceElection takes the network between all members away until the leader has
// stepped down, which it does after an election timeout without a majority.
func forceElection(ctx context.Context, st *Stage) error {
	var all []nethosts.Flow
	for _, m := range st.Cluster.Members() {
		fs, err := inwards(ctx, st, m)
		if err != nil {
			return err
		}
		all = append(all, fs...)
	}
	cut, err := st.Lab.Drop(all...)
	if err != nil {
		return err
	}
	err = sleep(ctx, 2200*time.Millisecond) // two election timeouts and a tick
	if lifted := cut.Lift(); err == nil {
		err = lifted
	}
	if err != nil {
		return err
	}
	return st.settled(ctx, betweenElections)
}
