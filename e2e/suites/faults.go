//go:build linux

package suites

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// inflict and lifter are what the table's functions are.
type (
	inflict = func(context.Context, *Stage, *realetcd.Member) (lifter, error)
	lifter  = func(context.Context) error
)

// Faults is the fault table.
func Faults() []Fault {
	return slices.Concat(partitions(), badLines(), processes(), machines(), clients())
}

// FaultNamed returns a line of the table, and panics when there is none: names are
// written in source.
func FaultNamed(name string) Fault {
	all := Faults()
	i := slices.IndexFunc(all, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		panic("suites: no fault is named " + name)
	}
	return all[i]
}

// partitions are cuts between members; the client port stays open.
func partitions() []Fault {
	return []Fault{
		{Name: "cut", Does: "loses its peers both ways", Effect: Isolates, Inflict: drop(bothWays)},
		{Name: "one-way-in", Does: "hears its peers no more; they hear it", Effect: Isolates, Inflict: drop(inwards)},
		{Name: "one-way-out", Does: "is heard by its peers no more; it hears them", Effect: Isolates, Inflict: drop(outwards)},
		{Name: "link", Does: "loses the link to the leader; the others hear both", Effect: Isolates, OnlyFollower: true, Inflict: drop(toLeader)},
	}
}

// badLines are networks between members that are worse than they should be.
func badLines() []Fault {
	return []Fault{
		{Name: "loss", Does: "loses 30 % of the packets from and to its peers", Effect: Slows, Spreads: true, Follower: Suffers, Leader: Suffers, Inflict: onFlows(bothWays, func(l *nethosts.Lab, fs ...nethosts.Flow) (*nethosts.Fault, error) {
			return l.Lose(0.3, fs...)
		})},
		{Name: "delay", Does: "has 300 ms more to and from its peers, each way", Effect: Slows, Spreads: true, Follower: Suffers, Leader: Suffers, Needs: tunDevice, Inflict: onFlows(bothWays, func(l *nethosts.Lab, fs ...nethosts.Flow) (*nethosts.Fault, error) {
			return l.Delay(300*time.Millisecond, fs...)
		})},
		{Name: "rate", Does: "has 20 kB/s to and from its peers", Effect: Slows, Spreads: true, Follower: Suffers, Leader: Suffers, Needs: tunDevice, Inflict: onFlows(bothWays, func(l *nethosts.Lab, fs ...nethosts.Flow) (*nethosts.Fault, error) {
			return l.Rate(20_000, fs...)
		})},
	}
}

// processes are faults of etcd's process and of the shim's.
func processes() []Fault {
	return []Fault{
		{Name: "freeze", Does: "stops as by SIGSTOP: it accepts connections and never answers", Effect: Silences, Halts: true, Inflict: freeze(etcd)},
		{Name: "freeze-shim", Does: "has a shim that stops as by SIGSTOP", Effect: Spares, Sidecar: true, Follower: Unharmed, Leader: Unharmed, Halts: true, Inflict: freeze(shim)},
		{Name: "freeze-both", Does: "stops as by SIGSTOP, and its shim too", Effect: Silences, Sidecar: true, Halts: true, Inflict: freeze(etcd, shim)},
		{Name: "kill", Does: "is killed and stays away", Effect: Ends, Follower: Harmless, Leader: Suffers, Halts: true, Inflict: kill},
		{Name: "kill-restart", Does: "is killed and started again at once", Effect: Ends, Follower: Harmless, Leader: Suffers, Halts: true, Inflict: killRestart},
		{Name: "kill-shim", Does: "has a shim that is killed", Effect: Spares, Sidecar: true, Follower: Unharmed, Leader: Unharmed, Halts: true, Inflict: killShim},
	}
}

// machines are faults of what a member runs on.
func machines() []Fault {
	return []Fault{
		{Name: "disk-hang", Does: "has a disk that answers no more", Effect: Isolates, Disks: true, Halts: true, Inflict: hangDisk},
		{Name: "disk-slow", Does: "has a disk that stands still for 200 ms of each 300 ms", Effect: Slows, Spreads: true, Disks: true, Follower: Harmless, Leader: Harmless, Inflict: slowDisk},
		{Name: "memory", Does: "has hardly the memory that it needs, or less", Effect: Slows, Spreads: true, Disks: true, Follower: Harmless, Leader: Harmless, Halts: true, Needs: controlGroups, Inflict: squeezeMemory},
		{Name: "cpu", Does: "has 5 % of one core", Effect: Slows, Spreads: true, Follower: Suffers, Leader: Suffers, Needs: controlGroups, Inflict: starveCPU},
	}
}

// clients are faults between the applications and the members, and of the
// applications' own hosts. Both applications suffer them alike.
func clients() []Fault {
	return []Fault{
		{Name: "client-cut", Does: "is out of the applications' reach; the cluster notices nothing", Effect: Silences, Inflict: cutClients},
		{
			Name: "client-cut-all", Does: "all members are out of the applications' reach", Effect: Silences, Clients: true, Everybody: true,
			Lasts: 4 * time.Second, LeaseTTL: 15 * time.Second, Inflict: cutClientsFromAll,
		},
		{Name: "clock-step", Does: "the applications' wall clocks go an hour ahead, and back", Effect: Spares, Clients: true, Clock: true, Follower: Unharmed, Leader: Unharmed, Inflict: stepClocks},
	}
}

// flows chooses the packets that a fault of m's network hits.
type flows func(context.Context, *Stage, *realetcd.Member) ([]nethosts.Flow, error)

func bothWays(ctx context.Context, st *Stage, m *realetcd.Member) ([]nethosts.Flow, error) {
	in, _ := inwards(ctx, st, m)
	out, _ := outwards(ctx, st, m)
	return append(in, out...), nil
}

func inwards(_ context.Context, st *Stage, m *realetcd.Member) ([]nethosts.Flow, error) {
	var fs []nethosts.Flow
	for _, o := range st.Others(m) {
		fs = append(fs, nethosts.Flow{From: o.Host(), To: m.Host()})
	}
	return fs, nil
}

func outwards(_ context.Context, st *Stage, m *realetcd.Member) ([]nethosts.Flow, error) {
	var fs []nethosts.Flow
	for _, o := range st.Others(m) {
		fs = append(fs, nethosts.Flow{From: m.Host(), To: o.Host()})
	}
	return fs, nil
}

// toLeader goes by Stage.Leader: to ask who leads would take time that counts as the
// fault's.
func toLeader(_ context.Context, st *Stage, m *realetcd.Member) ([]nethosts.Flow, error) {
	if st.Leader == m {
		return nil, fmt.Errorf("%s leads: it has no link to the leader", m.Name())
	}
	return nethosts.Between(st.Leader.Host(), m.Host()), nil
}

// onFlows makes a fault of the network out of what the lab does to flows.
func onFlows(choose flows, do func(*nethosts.Lab, ...nethosts.Flow) (*nethosts.Fault, error)) inflict {
	return func(ctx context.Context, st *Stage, m *realetcd.Member) (lifter, error) {
		fs, err := choose(ctx, st, m)
		if err != nil {
			return nil, err
		}
		return lifting(do(st.Lab, fs...))
	}
}

func drop(choose flows) inflict {
	return onFlows(choose, func(l *nethosts.Lab, fs ...nethosts.Flow) (*nethosts.Fault, error) { return l.Drop(fs...) })
}

// lifting is how a fault of the lab is taken back.
func lifting(f *nethosts.Fault, err error) (lifter, error) {
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { return f.Lift() }, nil
}

func etcd(m *realetcd.Member) *nethosts.Process { return m.Etcd() }
func shim(m *realetcd.Member) *nethosts.Process { return m.Shim() }

func freeze(which ...func(*realetcd.Member) *nethosts.Process) inflict {
	return func(_ context.Context, _ *Stage, m *realetcd.Member) (lifter, error) {
		var frozen []*nethosts.Process
		thaw := func(context.Context) error {
			var errs []error
			for _, p := range frozen {
				errs = append(errs, p.Thaw())
			}
			return errors.Join(errs...)
		}
		for _, w := range which {
			p := w(m)
			if p == nil {
				return nil, errors.Join(fmt.Errorf("%s: a process that should be frozen does not run", m.Name()), thaw(nil))
			}
			if err := p.Freeze(); err != nil {
				return nil, errors.Join(err, thaw(nil))
			}
			frozen = append(frozen, p)
		}
		return thaw, nil
	}
}

func kill(_ context.Context, _ *Stage, m *realetcd.Member) (lifter, error) {
	return m.Start, m.Kill()
}

func killRestart(ctx context.Context, _ *Stage, m *realetcd.Member) (lifter, error) {
	if err := m.Kill(); err != nil {
		return nil, err
	}
	return nil, m.Start(ctx)
}

func killShim(_ context.Context, _ *Stage, m *realetcd.Member) (lifter, error) {
	return m.StartShim, m.KillShim()
}

func hangDisk(_ context.Context, _ *Stage, m *realetcd.Member) (lifter, error) {
	if m.Disk() == nil {
		return nil, &nethosts.UnavailableError{What: "a disk that hangs", Why: m.Name() + " has no disk of its own"}
	}
	return func(context.Context) error { return m.Disk().Resume() }, m.Disk().Hang()
}

func slowDisk(_ context.Context, _ *Stage, m *realetcd.Member) (lifter, error) {
	const hold, gap = 200 * time.Millisecond, 100 * time.Millisecond
	if m.Disk() == nil {
		return nil, &nethosts.UnavailableError{What: "a slow disk", Why: m.Name() + " has no disk of its own"}
	}
	stop, err := m.Disk().Slow(hold, gap)
	return func(context.Context) error { return stop() }, err
}

// squeezeMemory asks for less than a member can do with, and gets the least. It has a disk,
// for files in memory cannot be given back. A kernel that makes page faults wait for
// memory may refuse it to system calls, and etcd ends when it cannot write its log.
func squeezeMemory(_ context.Context, st *Stage, m *realetcd.Member) (lifter, error) {
	const bytes = 16 << 20
	enough, err := lifting(m.Host().LimitMemory(bytes))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if err := enough(ctx); err != nil {
			return err
		}
		ended := m.Excuse()
		if len(ended) == 0 {
			return nil
		}
		st.Note("%s: %s ended for want of memory, and is started again", m.Name(), strings.Join(ended, " and "))
		return m.Start(ctx)
	}, nil
}

func starveCPU(_ context.Context, _ *Stage, m *realetcd.Member) (lifter, error) {
	return lifting(m.Host().LimitCPU(0.05))
}

func cutClients(_ context.Context, st *Stage, m *realetcd.Member) (lifter, error) {
	return lifting(st.Lab.Drop(clientFlows(st, m)...))
}

func cutClientsFromAll(_ context.Context, st *Stage, _ *realetcd.Member) (lifter, error) {
	return lifting(st.Lab.Drop(clientFlows(st, st.Cluster.Members()...)...))
}

func clientFlows(st *Stage, members ...*realetcd.Member) []nethosts.Flow {
	var fs []nethosts.Flow
	for _, host := range st.Clients() {
		for _, m := range members {
			fs = append(fs, nethosts.Between(host, m.Host())...)
		}
	}
	return fs
}

func stepClocks(ctx context.Context, st *Stage, _ *realetcd.Member) (lifter, error) {
	const far = time.Hour
	step := func(ctx context.Context, d, want time.Duration) error {
		return errors.Join(steppedTo(ctx, st.Ours.App, d, want), steppedTo(ctx, st.Control.App, d, want))
	}
	return func(ctx context.Context) error { return step(ctx, -far, 0) }, step(ctx, far, far)
}

// clocked is an application whose wall clock can be stepped, an *app.App.
type clocked interface {
	Name() string
	StepClock(ctx context.Context, d time.Duration) (ahead time.Duration, err error)
}

// steppedTo steps an application's wall clock, and fails where it is not as far ahead then as it
// should be: clients that bear a step which did not happen have shown nothing.
func steppedTo(ctx context.Context, a clocked, d, want time.Duration) error {
	ahead, err := a.StepClock(ctx, d)
	if err != nil {
		return err
	}
	if (ahead - want).Abs() > time.Second {
		return fmt.Errorf("the wall clock of %s is %v ahead after a step of %v, want %v", a.Name(), ahead, d, want)
	}
	return nil
}
