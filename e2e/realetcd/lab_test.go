//go:build linux

package realetcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

// within is a context that the steps of a test share, for d and what a busy machine adds.
// The server is there before their time begins.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	built(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), 3*d)
	t.Cleanup(cancel)
	return ctx
}

// built is the server of a version. A machine that has not got it yet compiles it for
// minutes.
func built(t *testing.T, version string) (path string) {
	t.Helper()
	nethosts.Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	return must1(Build(ctx, version))(t)
}

// started is a cluster for one test, in a lab of its own.
func started(ctx context.Context, t *testing.T, cfg Config) *Cluster {
	t.Helper()
	nethosts.Need(t)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	cfg.Lab, cfg.Logger = nethosts.ForTest(t, nethosts.Config{Logger: log}), log
	c, err := Start(ctx, cfg)
	var unavailable *nethosts.UnavailableError
	if errors.As(err, &unavailable) {
		t.Skip(unavailable) // a machine without loop devices
	}
	must(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// must fails the test for an error of a step.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must1[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { t.Helper(); must(t, err); return v }
}

func cutPeers(t *testing.T, c *Cluster, m *Member) *nethosts.Fault {
	t.Helper()
	var flows []nethosts.Flow
	for _, o := range c.Members() {
		if o != m {
			flows = append(flows, nethosts.Between(m.Host(), o.Host())...)
		}
	}
	return must1(c.cfg.Lab.Drop(flows...))(t)
}

// write puts a value through the harness's client of one member.
func write(ctx context.Context, t *testing.T, c *Cluster, key, value string, through ...*Member) {
	t.Helper()
	cli := must1(c.Client(through...))(t)
	defer cli.Close()
	must(t, done(func() error { _, err := cli.Put(ctx, key, value); return err }, settles(ctx, c)))
}

func TestMembersGoAndComeBackWithEveryKindOfShim(t *testing.T) {
	t.Parallel()
	for _, kind := range []Shim{ShimNone, ShimSidecar, ShimInProcess} {
		t.Run(kind.String(), func(t *testing.T) { t.Parallel(); goAndComeBack(t, kind) })
	}
}

func goAndComeBack(t *testing.T, kind Shim) {
	ctx := within(t, 40*time.Second)
	c := started(ctx, t, Config{Shim: kind})
	write(ctx, t, c, "k", "before")
	leader := must1(c.Leader(ctx))(t)
	if got := must1(c.Followers(ctx))(t); len(got) != 2 || slices.Contains(got, leader) {
		t.Errorf("followers %v of leader %s; want the two others", got, leader.name)
	}

	// Killed: nobody is told; the others elect one.
	must(t, leader.Kill())
	if leader.Running() || leader.Etcd() != nil {
		t.Error("a killed member runs")
	}
	other := must1(c.WaitOtherLeader(ctx, leader))(t)
	must(t, leader.Start(ctx))

	// Stopped in order, with its data kept.
	endpoint, id := other.Endpoint(), other.ID()
	must(t, other.Stop(ctx))
	if other.Running() || other.Shim() != nil {
		t.Error("a stopped member, or its sidecar, runs")
	}
	must(t, other.Stop(ctx)) // does nothing
	must(t, other.Restart(ctx, ""))
	if other.Endpoint() != endpoint || other.ID() != id {
		t.Errorf("came back as %x at %s; want %x at %s", other.ID(), other.Endpoint(), id, endpoint)
	}
	cli := must1(c.Client(other))(t)
	defer cli.Close()
	if got := must1(cli.Get(ctx, "k"))(t); len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "before" {
		t.Errorf("its store holds %v; want what was written before", got.Kvs)
	}

	// Frozen: it is there and answers nobody.
	must(t, c.Settled(ctx, 0))
	leader = must1(c.Leader(ctx))(t)
	must(t, leader.Etcd().Freeze())
	if !leader.Running() || !leader.Etcd().Frozen() {
		t.Error("a frozen member does not run, or not frozen")
	}
	must1(c.WaitOtherLeader(ctx, leader))(t)
	must(t, leader.Etcd().Thaw())
	must(t, c.Settled(ctx, 200*time.Millisecond))

	// Whatever happened, it was asked for. What comes now is not.
	if got := c.Crashed(); len(got) > 0 {
		t.Errorf("crashed: %q; want none", got)
	}
	crashing := other.Etcd()
	must(t, syscall.Kill(crashing.Pid(), syscall.SIGKILL))
	<-crashing.Done()
	if got := c.Crashed(); len(got) != 1 || !strings.HasPrefix(got[0], other.name+": etcd ended by itself") {
		t.Errorf("crashed: %q; want etcd of %s", got, other.name)
	}
}

func TestSidecarGoesAndComesAlone(t *testing.T) {
	t.Parallel()
	ctx := within(t, 20*time.Second)
	c := started(ctx, t, Config{Shim: ShimSidecar})
	m := c.Member("m2")
	pid := m.Etcd().Pid()
	must(t, m.KillShim())
	if m.Shim() != nil {
		t.Error("a killed sidecar runs")
	}
	must(t, c.Settled(ctx, 0)) // a shim that was taken away is not missed
	must(t, m.StartShim(ctx))
	must(t, m.StopShim(ctx))
	must(t, m.StartShim(ctx))
	must(t, c.Settled(ctx, 0))
	if m.Etcd().Pid() != pid {
		t.Error("the member was started again with its shim")
	}
	if got := c.ShimAddress(m.Endpoint()); got != m.ShimAddr() {
		t.Errorf("ShimAddress(%s) = %s; want %s", m.Endpoint(), got, m.ShimAddr())
	}
}

// Members with and without, of both kinds, in one cluster: a shim being rolled out.
func TestShimIsRolledOutMemberByMember(t *testing.T) {
	t.Parallel()
	ctx := within(t, 20*time.Second)
	c := started(ctx, t, Config{})
	if err := c.Member("m1").StartShim(ctx); err == nil {
		t.Error("a member without a kind of shim started one")
	}
	must(t, c.Member("m1").UseShim(ShimSidecar))
	must(t, c.Member("m1").StartShim(ctx))
	must(t, c.Member("m2").UseShim(ShimInProcess))
	must(t, c.Member("m2").Restart(ctx, ""))
	must(t, c.Settled(ctx, 0)) // with shims that say so
	if err := c.Member("m2").UseShim(9); err == nil {
		t.Error("UseShim(9) was accepted")
	}
}

func TestLeadershipIsTransferred(t *testing.T) {
	t.Parallel()
	ctx := within(t, 20*time.Second)
	c := started(ctx, t, Config{Members: 5})
	for _, to := range c.Members() {
		must(t, c.TransferLeader(ctx, to))
		if got := must1(c.Leader(ctx))(t); got != to {
			t.Errorf("%s leads; want %s", got.name, to.name)
		}
	}
}

func TestMembersAreAddedPromotedAndReplaced(t *testing.T) {
	t.Parallel()
	ctx := within(t, 50*time.Second)
	c := started(ctx, t, Config{Shim: ShimSidecar, SnapshotCount: 100})
	for i := range 50 {
		write(ctx, t, c, fmt.Sprint("k", i), strings.Repeat("x", 1000))
	}
	learner := must1(c.AddLearner(ctx))(t)
	if got := must1(learner.ask(ctx))(t); !got.learner {
		t.Errorf("%s says %+v; want a learner", learner.name, got)
	}
	must(t, c.Promote(ctx, learner))
	must(t, c.Settled(ctx, 0))
	leader := must1(c.Leader(ctx))(t)
	must(t, c.Remove(ctx, leader)) // the hard case
	if leader.Running() || slices.Contains(c.Members(), leader) || c.Member(leader.name) != nil {
		t.Errorf("%s was removed and is still there", leader.name)
	}
	old := c.Members()[0]
	fresh := must1(c.Replace(ctx, old))(t)
	must(t, c.Settled(ctx, 200*time.Millisecond))
	if len(c.Members()) != 3 || fresh.Endpoint() == old.Endpoint() || slices.Contains(c.Endpoints(), old.Endpoint()) {
		t.Errorf("endpoints %v; want three, with %s and without %s", c.Endpoints(), fresh.Endpoint(), old.Endpoint())
	}
	cli := must1(c.Client(fresh))(t)
	defer cli.Close()
	if got := must1(cli.Get(ctx, "k49"))(t); len(got.Kvs) != 1 {
		t.Error("the new member lacks what was written before it joined")
	}
}

func TestMembersAreUpgradedToTheNextMinorVersion(t *testing.T) {
	t.Parallel()
	before, after := built(t, "3.6"), built(t, "3.7")
	ctx := within(t, 60*time.Second)
	c := started(ctx, t, Config{Binary: before, Shim: ShimSidecar})
	write(ctx, t, c, "k", "before")
	must(t, c.RollingRestart(ctx, after, 200*time.Millisecond))
	for _, m := range c.Members() {
		cli := must1(c.Client(m))(t)
		defer cli.Close()
		if s := must1(cli.Status(ctx, m.Endpoint()))(t); !strings.HasPrefix(s.Version, "3.7.") {
			t.Errorf("%s is of version %s; want 3.7", m.name, s.Version)
		}
		if got := must1(cli.Get(ctx, "k"))(t); len(got.Kvs) != 1 {
			t.Errorf("%s has lost what was written before", m.name)
		}
	}
}

// Every minor version starts with every flag that we give it.
func TestOldestVersionTakesAllSettings(t *testing.T) {
	t.Parallel()
	oldest := built(t, "3.5")
	ctx := within(t, 60*time.Second)
	c := started(ctx, t, Config{
		Members: 1, Binary: oldest, QuotaBytes: 16 << 20, SnapshotCount: 100,
		Args: []string{"--watch-progress-notify-interval=1s", "--max-txn-ops=64"},
	})
	m := c.Members()[0]
	must(t, m.Defragment(ctx))
	if v := must1(m.cluster.versionOf(ctx, m.binary))(t); v.minorName() != "3.5" {
		t.Errorf("version %v; want 3.5", v)
	}
	if err := m.Refuse(ctx, true); !errors.Is(err, errNotInProcess) {
		t.Errorf("Refuse = %v; want %v", err, errNotInProcess)
	}
}

func TestMemberThatCannotStartSaysWhyInTheError(t *testing.T) {
	t.Parallel()
	ctx := within(t, 20*time.Second)
	lab := nethosts.ForTest(t, nethosts.Config{})
	_, err := Start(ctx, Config{Lab: lab, Args: []string{"--no-such-flag"}})
	if !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), "no-such-flag") || !strings.Contains(err.Error(), "etcd.log") {
		t.Errorf("Start = %v; want etcd's own words, and where its log is", err)
	}
	if left := lab.Hosts(); len(left) > 0 {
		t.Errorf("%d hosts are left", len(left))
	}
}

func TestInProcessMemberCountsMutationsAndRefusesCalls(t *testing.T) {
	t.Parallel()
	ctx := within(t, 30*time.Second)
	c := started(ctx, t, Config{Shim: ShimInProcess})
	m := c.Member("m1")
	cli, other := must1(c.Client(m))(t), must1(c.Client(c.Member("m2")))(t)
	defer cli.Close()
	defer other.Close()
	once := func(cli *clientv3.Client, value string) {
		t.Helper()
		must(t, delivered(func() error { _, err := cli.Put(ctx, "k", value); return err }, settles(ctx, c)))
	}
	once(cli, "v1")
	once(other, "v1")
	must(t, delivered(func() error {
		_, err := cli.Txn(ctx).If(clientv3.Compare(clientv3.Version("none"), ">", 0)).Then(clientv3.OpPut("a", "t1"), clientv3.OpPut("b", "t1")).Commit()
		return err
	}, settles(ctx, c)))
	must(t, m.Kill())
	must(t, m.Start(ctx))
	again := must1(c.Client(m))(t)
	defer again.Close()
	once(again, "v2")
	counts := must1(c.Arrived())(t).Counts
	for value, want := range map[string]int{"v1": 2, "t1": 1, "v2": 1} {
		if counts[value] != want {
			t.Errorf("%s has arrived %d times; want %d: a kill loses no count", value, counts[value], want)
		}
	}

	must(t, m.Refuse(ctx, true))
	client := must1(c.cfg.Lab.Host("client"))(t)
	if got := callFrom(ctx, t, client, m); got != codes.ResourceExhausted {
		t.Errorf("a refusing member answers an application with %v; want %v", got, codes.ResourceExhausted)
	}
	must1(m.prove(ctx))(t) // the harness is not refused
	must(t, m.Refuse(ctx, false))
	if got := callFrom(ctx, t, client, m); got != codes.OK {
		t.Errorf("a member that refuses no more answers %v", got)
	}
}

// callFrom is how a read from another host ends.
func callFrom(ctx context.Context, t *testing.T, host *nethosts.Host, m *Member) codes.Code {
	t.Helper()
	conn := must1(grpc.NewClient("passthrough:///"+m.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()), from(host)))(t)
	defer conn.Close()
	_, err := (&Member{conn: conn}).prove(ctx)
	return status.Code(err)
}
