//go:build linux

package realetcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumwise/quorumwise/e2e/leak"
	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

// during returns the samples of a member that stood at some time between two moments.
func during(samples []Sample, member string, from, to time.Time) []Sample {
	var of []Sample
	for _, s := range samples {
		if s.Member != member || s.At.After(to) {
			continue
		}
		if !s.At.After(from) {
			of = of[:0] // superseded before
		}
		of = append(of, s)
	}
	return of
}

func states(samples []Sample) string {
	var b strings.Builder
	for _, s := range samples {
		fmt.Fprintf(&b, "%s %s %x/%d shim %s; ", s.At.Format("05.000"), s.State, s.Leader, s.Term, s.Shim)
	}
	return b.String()
}

// latest is a member's newest sample.
func (s *Sampler) latest(member string) Sample {
	for _, sample := range slices.Backward(s.found()) {
		if sample.Member == member {
			return sample
		}
	}
	return Sample{}
}

func TestSamplerTellsWhatMembersAreUnderFaults(t *testing.T) {
	ctx := within(t, 50*time.Second)
	c := started(ctx, t, Config{Shim: ShimSidecar})
	leader := must1(c.Leader(ctx))(t)
	followers := must1(c.Followers(ctx))(t)
	victim, witness := followers[0], followers[1]
	s := StartSampler(ctx, c, 0)

	type phase struct {
		name     string
		from, to time.Time
	}
	var phases []phase
	// play acts and waits until the sampler says so of the victim.
	play := func(name, shim string, state State, act func() error) {
		t.Helper()
		must(t, act())
		matches := func(s Sample) bool { return s.State == state && strings.HasPrefix(s.Shim, shim) }
		err := poll(ctx, 10*time.Millisecond, name, func() (bool, error) {
			got := s.latest(victim.name)
			return matches(got), fmt.Errorf("%s, shim %s", got.State, got.Shim)
		})
		must(t, err)
		from := time.Now()
		time.Sleep(300 * time.Millisecond)
		phases = append(phases, phase{name, from, time.Now()})
	}
	var cut *nethosts.Fault
	play("whole", ShimServing, Quorum, func() error { return nil })
	play("cut from its peers", "not-serving (no-quorum)", NoQuorum, func() error { cut = cutPeers(t, c, victim); return nil })
	play("cut for long", "not-serving (no-", NoLeader, func() error { return nil })
	play("healed", ShimServing, Quorum, func() error { return cut.Lift() })
	play("frozen", ShimNotServing, Frozen, func() error { return victim.Etcd().Freeze() })
	play("thawed, its shim frozen", ShimSilent, Quorum, func() error {
		return errors.Join(victim.Etcd().Thaw(), victim.Shim().Freeze())
	})
	play("killed, its shim too", ShimAbsent, Stopped, func() error { return errors.Join(victim.Kill(), victim.KillShim()) })
	play("started", ShimServing, Quorum, func() error { return victim.Start(ctx) })
	samples := s.Stop()

	// A busy machine takes a witness's word away for a moment; a sampler that waits for the victim
	// does so for the whole of a phase.
	for _, p := range phases {
		for other, want := range map[*Member]State{leader: Leader, witness: Quorum} {
			got := during(samples, other.name, p.from, p.to)
			if !slices.ContainsFunc(got, func(s Sample) bool { return s.State == want && s.Shim == ShimServing }) {
				t.Errorf("%s: %s, a witness: %s; want %s: one member must not delay another's", p.name, other.name, states(got), want)
			}
		}
	}
	if !slices.IsSortedFunc(samples, func(a, b Sample) int { return a.At.Compare(b.At) }) {
		t.Error("samples are not in order of time")
	}
	if len(samples) > 200 {
		t.Errorf("%d samples for a few changes", len(samples))
	}
}

// The leader's disk hangs, and it may still name itself leader.
func TestSamplerIsNotTakenInByALeaderWhoseDiskHangs(t *testing.T) {
	ctx := within(t, 40*time.Second)
	c := started(ctx, t, Config{Disks: true})
	old := must1(c.Leader(ctx))(t)
	s := StartSampler(ctx, c, 0)
	must(t, old.Disk().Hang())
	cli := must1(c.Client(old))(t)
	defer cli.Close()
	writing := make(chan struct{})
	go func() { // what becomes of it does not matter
		defer close(writing)
		cli.Put(ctx, "k", "makes the disk matter")
	}()
	must1(c.WaitOtherLeader(ctx, old))(t)
	said, mute := old.askSoon(ctx) // a member in the middle of a commit does not even say that
	must(t, poll(ctx, 10*time.Millisecond, "the sampler to see through it", func() (bool, error) {
		got := s.latest(old.name).State
		return got == NoQuorum || got == Mute, fmt.Errorf("%s while it says %+v, %v; want %s or %s", got, said, mute, NoQuorum, Mute)
	}))
	time.Sleep(500 * time.Millisecond)
	if got := s.latest(old.name); got.State != NoQuorum && got.State != Mute {
		t.Errorf("%s some time later; want it %s or %s still", got.State, NoQuorum, Mute)
	}
	t.Logf("it says %+v, %v", said, mute)
	must(t, old.Disk().Resume())
	<-writing
	must(t, c.Settled(ctx, 0))
	must(t, old.Disk().Hang())
	s.Stop()
	began := time.Now()
	if err := c.Close(); err != nil || time.Since(began) > 20*time.Second { // it would be for ever
		t.Errorf("Close with a disk that hangs took %v: %v", time.Since(began), err)
	}
}

func TestSamplerFollowsTheMembership(t *testing.T) {
	ctx := within(t, 30*time.Second)
	c := started(ctx, t, Config{Members: 3, Shim: ShimInProcess})
	s := StartSampler(ctx, c, 50*time.Millisecond)
	m := must1(c.AddLearner(ctx))(t)
	until := func(state State) {
		t.Helper()
		must(t, poll(ctx, 10*time.Millisecond, string(state), func() (bool, error) {
			got := s.latest(m.name).State
			return got == state, fmt.Errorf("it is %q", got)
		}))
	}
	until(Learner)
	must(t, c.Remove(ctx, m))
	until(Stopped)
	var of []State
	for _, sample := range s.Stop() {
		if sample.Member == m.name {
			of = append(of, sample.State)
		}
	}
	if !slices.Contains(of, Learner) || of[len(of)-1] != Stopped {
		t.Errorf("states of a learner that was removed: %v; want learner, and stopped at last", of)
	}
}

func TestSamplerIsCheapAndLeavesNothing(t *testing.T) {
	ctx := within(t, 30*time.Second)
	c := started(ctx, t, Config{Members: 5, Shim: ShimSidecar})
	must(t, c.Member("m5").Etcd().Freeze())
	for _, m := range c.Members() {
		must(t, m.wire.close()) // the count of mutations would look at the sampler's calls, at its own cost
	}
	standing := goleak.IgnoreCurrent()
	const lasts = 2 * time.Second
	var spent, bare time.Duration
	for range 3 { // what else runs on the machine makes the same work dearer
		before := used(t)
		question(ctx, c, lasts)
		bare = used(t) - before
		before = used(t)
		s := StartSampler(context.WithoutCancel(ctx), c, 0)
		time.Sleep(lasts)
		began := time.Now()
		s.Stop()
		if took := time.Since(began); took > askTimeout+2*time.Second { // a busy machine takes some of it
			t.Errorf("Stop took %v", took)
		}
		if spent = used(t) - before; !dear(spent, bare, lasts) {
			break
		}
	}
	t.Logf("%.1f%% of a core, bare questions %.1f%%", 100*spent.Seconds()/lasts.Seconds(), 100*bare.Seconds()/lasts.Seconds())
	if dear(spent, bare, lasts) && !raceEnabled {
		t.Errorf("five members for %v cost %v of processor time, bare questions %v; want below %v, or where the machine makes them that dear twice as much", lasts, spent, bare, limit(lasts))
	}
	leak.VerifyNone(t, leak.Harness, standing)
}

// limit is what a sampler of five members may cost: 3% of a core.
func limit(lasts time.Duration) time.Duration { return lasts * 3 / 100 }

// dear says that a sampler costs too much for a machine on which questions alone cost so much.
func dear(spent, bare, lasts time.Duration) bool { return spent >= limit(lasts) && spent > 2*bare }

func TestOnlyADearMachineExcusesADearSampler(t *testing.T) {
	const lasts = 2 * time.Second // 60 ms
	for _, row := range []struct {
		name        string
		spent, bare time.Duration
		want        bool
	}{
		{"cheap", 59 * time.Millisecond, 25 * time.Millisecond, false},
		{"cheap, and questions are cheaper by far", 59 * time.Millisecond, time.Millisecond, false},
		{"dear on the same machine", 80 * time.Millisecond, 25 * time.Millisecond, true},
		{"dear, as are questions", 80 * time.Millisecond, 40 * time.Millisecond, false},
		{"dearer than such questions explain", 90 * time.Millisecond, 40 * time.Millisecond, true},
	} {
		if got := dear(row.spent, row.bare, lasts); got != row.want {
			t.Errorf("%s: too dear %v, want %v", row.name, got, row.want)
		}
	}
}

// question asks members as often as a sampler does, and does nothing else.
func question(ctx context.Context, c *Cluster, lasts time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var asking sync.WaitGroup
	for _, m := range c.Members() {
		if m.Etcd().Frozen() {
			continue
		}
		asking.Go(func() {
			for tick := time.NewTicker(sampleEvery); ctx.Err() == nil; {
				_, _ = m.proveSoon(ctx)
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	asking.Wait()
}

// used is the processor time of this process so far.
func used(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
