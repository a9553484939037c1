//go:build linux

package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// field are cases that people who run etcd have reported, each reduced to one scenario.
// Those that are about stored data stand in their own files.
func field() []Scenario {
	scs := []Scenario{
		{
			Name: "link-to-leader-cut", Field: []string{"F3"}, Target: Follower, Control: Stuck, Budget: noQuorum,
			Does: "only the link between the leader and one follower is cut; the third member sees both and stays serving",
			Steps: []Step{
				{Text: "cut the link", Mark: Inflicted, Wait: 9 * time.Second, Do: on(first, "link")},
				mend(afterwards),
			},
			Timing: claims(shimSaysNo(noQuorum.Streams), othersServe),
		},
		{
			Name: "frozen-for-nine-seconds", Field: []string{"F4"}, Target: Follower, Control: Stuck, Budget: unreachable, Quick: true,
			Does: "one member stops (SIGSTOP) for 9 s while its kernel accepts connections; it stays out until it works",
			Steps: []Step{
				{Text: "freeze the follower", Mark: Inflicted, Wait: 9 * time.Second, Do: on(first, "freeze")},
				mend(8 * time.Second),
			},
			Timing: leftOnce,
		},
		{
			Name: "host-lost-without-a-word", Field: []string{"F6"}, Target: Follower, Control: Stuck, Budget: unreachable,
			Does: "everything between the clients and one member's host is dropped, without a FIN",
			Steps: []Step{
				{Text: "lose the member's host", Mark: Inflicted, Wait: 12 * time.Second, Do: on(first, "client-cut")},
				mend(8 * time.Second),
			},
			Timing: leftOnce,
		},
		{
			Name: "leader-disk-hangs", Field: []string{"F7"}, Target: Leader, Control: Stuck, Budget: noQuorum, Cluster: logsOnDisks,
			Does: "the disk under the leader's write-ahead log stops answering: its raft loop stands, Status still names it as leader, its shim does not serve",
			Steps: []Step{
				{Text: "stop the disk under the leader's log", Mark: Inflicted, Wait: 9 * time.Second, Do: on(first, "disk-hang")},
				mend(8 * time.Second),
			},
			Timing: claims(shimSaysNo(noQuorum.Streams), leaderNamedAllTheSame),
		},
		stalledLeader(),
		{
			Name: "slow-disk-then-hang", Field: []string{"F10"}, Target: Follower, Control: Stuck, Cluster: onDisks,
			Does:  "one member's disk takes 0.5 to 1 s, then hangs, then recovers; it is given up once and taken back once",
			Steps: slowThenHung(), Timing: leftOnce,
		},
		allFrozen(), allLate(),
		{
			Name: "large-packets-lost", Target: Follower, Control: Stuck, Budget: unreachable,
			Does: "only packets of more than 600 bytes between a follower and its peers are lost; heartbeats pass, appends do not, the member stays green by its own word",
			Steps: []Step{
				{Text: "lose large packets, write 32 KiB elsewhere", Mark: Inflicted, Wait: 9 * time.Second, Do: loseLarge},
				mend(8 * time.Second),
			},
			Timing: claims(shimSaysNo(unreachable.Streams), othersServe),
		},
		{
			// Big transactions fill the lines: what has to be moved waits behind them.
			Name: "big-events-follower-cut", Target: Follower, Control: Stuck, Budget: unreachable,
			Does: "while a follower loses its peers, events come in fragments: transactions that are too large for one response",
			App:  func(c *app.Config) { c.Big = 2 * time.Second },
			Steps: []Step{
				{Text: "cut the follower from its peers", Mark: Inflicted, Wait: 9 * time.Second, Do: on(first, "cut")},
				mend(6 * time.Second),
			},
			Judge: fragmented,
		},
		{
			Name: "attached-member-restarted-50-times", Field: []string{"F13"}, Target: Follower, Control: Suffers,
			Does: "the member that an application is attached to is killed and started again, 50 times",
			Steps: []Step{
				{Text: "kill and start it, 50 times", Mark: Noted, Takes: 50 * time.Second, Wait: 10 * time.Second, Do: restartTarget(50)},
			},
		},
		{
			Name: "all-gone-for-a-minute", Field: []string{"F13"}, Control: Suffers, App: longLeases(2 * time.Minute),
			Does: "all endpoints are gone for 60 s; afterwards nothing is silent",
			Steps: []Step{
				{Text: "lose all members", Mark: Inflicted, Wait: time.Minute, Do: on(first, "client-cut-all")},
				mend(12 * time.Second),
			},
		},
		{
			Name: "cut-until-a-snapshot", Field: []string{"F14"}, Target: Follower, Control: Stuck, Budget: noQuorum, Returns: true,
			Does:    "a follower is cut off for so long that it needs a snapshot; watches are delivered there again",
			Cluster: func(c *realetcd.Config) { c.SnapshotCount = 100 },
			App:     quickReturn,
			Steps: []Step{
				{Text: "cut the follower from its peers", Mark: Inflicted, Wait: 20 * time.Second, Do: on(first, "cut")},
				mend(15 * time.Second),
				{Text: "look for the snapshot", Do: snapshotApplied},
			},
			Judge: brokenClaims,
		},
		{
			Name: "many-watchers-members-restarted", Field: []string{"F15"}, Control: Harmless,
			Does:   "300 watchers of each application; members are restarted in turn, the last one gets its share back",
			App:    func(c *app.Config) { c.ManyWatchers, c.Rebalance = 300, 10*time.Second },
			Steps:  []Step{{Text: "restart every member in turn", Mark: Noted, Takes: restartsTake, Wait: 20 * time.Second, Do: restartAll}},
			Timing: streamsSpread,
		},
		{
			Name: "herd", Field: []string{"F16"}, Target: Follower, Control: Suffers, Shim: realetcd.ShimInProcess,
			Does:  "1,000 more clients watch a key that is counted up all the while; one member goes, and the others refuse new calls (ResourceExhausted) for 10 s",
			Steps: herdSteps(), App: func(c *app.Config) { c.Quiet, c.LeaseTTL = true, 3*refusing },
			Needs: []string{fmt.Sprintf("%d open files", herdFiles(3))},
			Judge: brokenClaims, Timing: lateClaims,
		},
		{
			Name: "unlock-on-a-cut-member", Field: []string{"F18"}, Target: Follower, Control: Stuck, Budget: noQuorum,
			Does: "a lock is taken through a member that then loses its peers, and unlocked at once; a second client gets it",
			App:  func(c *app.Config) { c.Locks = true },
			Steps: []Step{
				{Text: "lock, cut the follower from its peers, unlock", Mark: Inflicted, Takes: 6 * time.Second, Wait: faultLasts, Do: unlockWhileCut},
				mend(afterwards),
			},
			Judge: brokenClaims, Timing: lateClaims,
		},
	}
	for i := range scs {
		scs[i].Suite = "field"
		if scs[i].Shim == realetcd.ShimNone {
			scs[i].Shim = realetcd.ShimSidecar
		}
	}
	return scs
}

// fragmented demands that responses of ours came in fragments: else it shows nothing of them.
func fragmented(e *Evidence) []string {
	if e.Ours.Fragments > 0 {
		return nil
	}
	return []string{"no response of a watch came in fragments; want those of the big transactions"}
}

// loseLarge has what is written in the meantime be too large for the line: until then the
// member suffers nothing.
func loseLarge(ctx context.Context, st *Stage) error {
	const most, size = 600, 32 << 10
	f := Fault{Name: "large-packets", Effect: Isolates, Inflict: onFlows(bothWays, func(l *nethosts.Lab, fs ...nethosts.Flow) (*nethosts.Fault, error) {
		return l.LoseLarge(most, fs...)
	})}
	writer, err := newClient(st, bystanderConfig{Endpoints: []string{st.Others(st.Target)[0].Endpoint()}})
	if err != nil {
		return err
	}
	defer writer.Close()
	if err := st.Inflict(ctx, f, st.Target); err != nil {
		return err
	}
	_, err = writer.Put(ctx, "/bystanders/large", strings.Repeat("x", size))
	return err
}

// onDisks has all of a member wait for its disk, so that one whose disk hangs soon answers
// nothing. logsOnDisks has only the raft loop wait: what the member has in memory it tells.
func onDisks(c *realetcd.Config)     { c.Disks = true }
func logsOnDisks(c *realetcd.Config) { c.Disks, c.OnlyWAL = true, true }

// slowThenHung freezes the disk for 0.75 s of each second, then for good, then not at
// all. To the clients it is one illness.
func slowThenHung() []Step {
	slow := Fault{Name: "disk-very-slow", Effect: Slows, Inflict: func(_ context.Context, _ *Stage, m *realetcd.Member) (lifter, error) {
		if m.Disk() == nil {
			return nil, &nethosts.UnavailableError{What: "a slow disk", Why: m.Name() + " has no disk of its own"}
		}
		stop, err := m.Disk().Slow(750*time.Millisecond, 250*time.Millisecond)
		return func(context.Context) error { return stop() }, err
	}}
	return []Step{
		{Text: "make the follower's disk take 0.5 to 1 s", Mark: Inflicted, Wait: 10 * time.Second, Do: func(ctx context.Context, st *Stage) error {
			return st.Inflict(ctx, slow, st.Target)
		}},
		{Text: "stop it altogether", Mark: Noted, Wait: 10 * time.Second, Do: func(ctx context.Context, st *Stage) error {
			return errors.Join(st.Lift(ctx), st.Inflict(ctx, FaultNamed("disk-hang"), st.Target))
		}},
		mend(20 * time.Second),
	}
}

// together is how late all members are when they slow down together.
const together = 2500 * time.Millisecond

// allFrozen stops all members at once for a while, again and again: an overload that
// hits all alike.
func allFrozen() Scenario {
	return Scenario{
		Name: "all-slow-together", Field: []string{"F11"}, Control: Unharmed, App: longLeases(15 * time.Second),
		Does: fmt.Sprintf("all members stand still for %v together, three times; nobody is given up for an equally slow one, no stream moves", together),
		Steps: []Step{{Text: fmt.Sprintf("stop all members for %v, three times", together), Mark: Noted, Takes: 3 * (together + 6*time.Second), Wait: 6 * time.Second, Do: func(ctx context.Context, st *Stage) error {
			for range 3 {
				if err := stopAll(ctx, st, together); err != nil {
					return err
				}
				if err := sleep(ctx, 6*time.Second); err != nil {
					return err
				}
			}
			return nil
		}}},
		Timing: nobodyLeft, Shown: everybodyWaits(together / 2),
	}
}

func stopAll(ctx context.Context, st *Stage, d time.Duration) error {
	var thaws []lifter
	thaw := func() error {
		var errs []error
		for _, t := range thaws {
			errs = append(errs, t(ctx))
		}
		return errors.Join(errs...)
	}
	for _, m := range st.Cluster.Members() {
		t, err := freeze(etcd)(ctx, st, m)
		if err != nil {
			return errors.Join(err, thaw())
		}
		thaws = append(thaws, t)
	}
	return errors.Join(sleep(ctx, d), thaw())
}

// allLate makes the answers of all members late, and nothing else. Calls with less patience
// than that fail on any member; but no stream may move, for it would be no better off.
func allLate() Scenario {
	late := Fault{Name: "answers-late", Effect: Slows, Clients: true, Everybody: true, Inflict: func(_ context.Context, st *Stage, _ *realetcd.Member) (lifter, error) {
		var fs []nethosts.Flow
		for _, host := range st.Clients() {
			for _, m := range st.Cluster.Members() {
				fs = append(fs, nethosts.Flow{From: m.Host(), To: host})
			}
		}
		return lifting(st.Lab.Delay(together, fs...))
	}}
	return Scenario{
		Name: "all-answers-late", Field: []string{"F11"}, Control: Unharmed, App: longLeases(15 * time.Second), Needs: []string{tunDevice},
		Does: fmt.Sprintf("the answers of all members are %v late; nobody is given up for an equally slow one, no stream moves", together),
		Steps: []Step{
			{Text: "delay the answers of all members", Mark: Inflicted, Wait: 15 * time.Second, Do: func(ctx context.Context, st *Stage) error { return st.Inflict(ctx, late, nil) }},
			mend(6 * time.Second),
		},
		Timing: nobodyLeft, Shown: everybodyWaits(together / 2),
	}
}

// restartTarget does not wait for anything to settle.
func restartTarget(times int) func(context.Context, *Stage) error {
	return func(ctx context.Context, st *Stage) error {
		back := st.Hurt(st.Target, "killed and started", Ends)
		for range times {
			if err := st.Target.Kill(); err != nil {
				return err
			}
			if err := st.Target.Start(ctx); err != nil {
				return err
			}
			if err := sleep(ctx, time.Duration(200+st.Rand.IntN(800))*time.Millisecond); err != nil {
				return err
			}
		}
		back()
		return nil
	}
}

// snapshotApplied looks into the target's log: without a snapshot the scenario would
// have shown nothing.
func snapshotApplied(_ context.Context, st *Stage) error {
	log, err := os.ReadFile(st.Target.Log())
	if err != nil {
		return err
	}
	st.judgeSnapshot(st.Target.Name(), string(log))
	return nil
}
