//go:build linux

package app

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// hosts is a lab with real servers, and the reference of events written from the
// harness.
type hosts struct {
	lab *nethosts.Lab
	*realetcd.Cluster
	cli *clientv3.Client
	ref *workload.Reference
}

func startHosts(t *testing.T) *hosts {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := &hosts{lab: nethosts.ForTest(t, nethosts.Config{})}
	var err error
	// The in-process kind needs no server's binary.
	h.Cluster, err = realetcd.Start(ctx, realetcd.Config{Lab: h.lab, Shim: realetcd.ShimInProcess})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Cluster.Close() })
	if h.cli, err = h.Client(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.cli.Close() })
	if h.ref, err = workload.StartReference(ctx, h.cli, h.cli, 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.ref.Close)
	return h
}

func (h *hosts) start(t *testing.T, cfg Config) *App {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	host, err := h.lab.Host("client-" + cfg.Name)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Endpoints = h.Endpoints()
	a, err := Start(ctx, host, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Kill() })
	return a
}

// waitFor waits for an application to have come as far as wanted.
func waitFor(t *testing.T, a *App, what string, enough func(Progress) bool) {
	t.Helper()
	var p Progress
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var ok bool
		if p, ok = a.Progress(); ok && enough(p) {
			return
		}
	}
	t.Fatalf("%s: progress %+v; want %s", a.Name(), p, what)
}

func all(name string, official bool) Config {
	return Config{
		Name: name, Official: official,
		Histories: true, Watches: true, Big: time.Second, ManyWatchers: 20, Locks: true, Elections: true, Counters: true,
	}
}

func TestApplicationsOnHostsOfTheirOwnBehindAMemberThatIsCutOff(t *testing.T) {
	nethosts.Need(t)
	again(t, leaveCutOffOnHosts)
}

func leaveCutOffOnHosts(t *testing.T) (unlucky string) {
	h := startHosts(t)
	zero := time.Now()
	cfg := all("ours", false)
	cfg.Zero = zero
	ours, control := h.start(t, cfg), h.start(t, all("control", true))
	for _, a := range []*App{ours, control} {
		waitFor(t, a, "progress of every part", func(p Progress) bool {
			return p.Ops > 250 && p.Locked > 5 && p.Elected > 3 && p.Counted > 50
		})
	}

	followers, err := h.Followers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bad := followers[0]
	fault := workload.Fault{Address: bad.Endpoint(), Cut: time.Now()}
	var cut []nethosts.Flow
	for _, m := range h.Members() {
		if m != bad {
			cut = append(cut, nethosts.Between(m.Host(), bad.Host())...)
		}
	}
	if _, err := h.lab.Drop(cut...); err != nil {
		t.Fatal(err)
	}
	waitFor(t, ours, "moves", func(p Progress) bool { return p.Moves > 0 && time.Since(fault.Cut) > 4*time.Second })
	fault.Heal = time.Now()
	if err := h.lab.Heal(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	upTo, err := h.ref.Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	apps := []*App{ours, control}
	records := make([]Record, len(apps))
	var stopping sync.WaitGroup
	for i, a := range apps {
		stopping.Go(func() {
			var err error
			if records[i], err = a.Stop(ctx, upTo); err != nil {
				t.Error(err)
			}
		})
	}
	stopping.Wait()
	if t.Failed() {
		return ""
	}
	for i, a := range apps {
		rec := records[i]
		if bad := judge(t, h.cli, rec, upTo); len(bad) > 0 {
			t.Errorf("%s: violations: %q", a.Name(), bad)
		}
		checkLeaks(t, rec)
		for _, problem := range incomplete(rec) {
			t.Errorf("%s: %s", a.Name(), problem)
		}
		f := workload.Measure(rec.Load, rec.Trace(), h.ref.Events(), fault, OutcomeUnknown)
		t.Logf("%s: lag %v, last stream %v, Get %v, %d of %d calls failed, %d grades, %d moves",
			a.Name(), f.Lag, f.LastStream, f.GetMax, len(rec.Failures), len(rec.Histories), len(rec.Grades), len(rec.Moves))
		if why := nothingToLeave(rec.Moves, fault.Address, fault.Cut, f.LastStream); why != "" {
			unlucky = why
			continue
		}
		if f.LastStream <= 0 {
			t.Errorf("%s: the last stream left the member after %v; want the streams on it in the trace", a.Name(), f.LastStream)
		}
		if a.Official() == (len(rec.Grades)+len(rec.Moves) > 0) {
			t.Errorf("%s: %d grades, %d moves; want both of ours and none of the official client", a.Name(), len(rec.Grades), len(rec.Moves))
		}
		if a.Official() && f.LastStream != workload.Never {
			t.Errorf("the official client's last stream left the member after %v; want it to stay: nothing tells it", f.LastStream)
		}
		if at := zero.Add(rec.Histories[0].Call); !a.Official() && (at.Before(zero) || at.After(fault.Cut)) {
			t.Errorf("the first operation was at %v, want it counted from the harness's zero %v and before %v", at, zero, fault.Cut)
		}
	}
	return unlucky
}

func TestAHarnessNeverWaitsForAFrozenOrKilledApplication(t *testing.T) {
	h := startHosts(t)
	a := h.start(t, Config{Name: "ours"})
	if err := a.Freeze(); err != nil {
		t.Fatal(err)
	}
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	if err := a.SetEndpoints(short(), h.Endpoints(), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a command to a frozen application: %v, want the deadline", err)
	}
	if err := a.Thaw(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := a.SetEndpoints(ctx, h.Endpoints(), nil); err != nil {
		t.Errorf("a command after the thaw: %v", err)
	}
	waitFor(t, a, "any progress", func(Progress) bool { return true })
	if err := a.Freeze(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Stop(short(), 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the stop of a frozen application: %v, want the deadline", err)
	}
	select {
	case <-a.Process().Done():
	case <-ctx.Done():
		t.Error("a frozen application outlived its stop; want it killed")
	}
	if err := a.SetEndpoints(ctx, h.Endpoints(), nil); err == nil || ctx.Err() != nil {
		t.Errorf("a command to a dead application: %v; want an error at once", err)
	}
}

func TestAStepOfTheWallClockDoesNotShiftTheRecord(t *testing.T) {
	nethosts.Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var binary string
	err := nethosts.Outside(func() (err error) { binary, err = Stepped(ctx, t.TempDir()); return err })
	if unavailable := new(nethosts.UnavailableError); errors.As(err, &unavailable) {
		t.Skip(unavailable)
	}
	if err != nil {
		t.Fatal(err)
	}
	h := startHosts(t)
	cfg := all("ours", false)
	cfg.Binary = binary
	began := time.Now()
	a := h.start(t, cfg)
	sum := time.Duration(0)
	for _, step := range []time.Duration{time.Hour, -2 * time.Hour} {
		sum += step
		ahead, err := a.StepClock(ctx, step)
		if err != nil {
			t.Fatal(err)
		}
		if off := (ahead - sum).Abs(); off > time.Second {
			t.Fatalf("after a step of %v the wall clock is %v ahead, want %v: nothing below would show anything", step, ahead, sum)
		}
		time.Sleep(time.Second)
	}
	upTo, err := h.ref.Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := a.Stop(ctx, upTo)
	if err != nil {
		t.Fatal(err)
	}
	if bad := judge(t, h.cli, rec, upTo); len(bad) > 0 {
		t.Errorf("violations: %q", bad)
	}
	for _, at := range rec.Attempts {
		if at.Began.Before(began) || at.Began.After(time.Now()) {
			t.Fatalf("an attempt at %v, want it between %v and %v whatever the wall clock said", at.Began, began, time.Now())
		}
	}
	f := workload.Measure(rec.Load, rec.Trace(), h.ref.Events(), workload.Fault{}, OutcomeUnknown)
	if f.Lag > time.Minute || f.Silence > time.Minute || f.GetMax > time.Minute {
		t.Errorf("lag %v, silence %v, longest Get %v; want times that have nothing of the hours by which the wall clock was stepped", f.Lag, f.Silence, f.GetMax)
	}
	for _, op := range rec.Histories {
		if op.Call < 0 || op.Return < op.Call || op.Return > time.Since(began) {
			t.Fatalf("operation %s from %v to %v, want it within the %v of the run", op.ID, op.Call, op.Return, time.Since(began))
		}
	}
}
