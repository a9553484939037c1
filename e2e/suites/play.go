//go:build linux

package suites

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

const (
	// steady is how long both loads run before the first step.
	steady = 2500 * time.Millisecond
	// catchUp is how long the end may take: watches deliver what was written,
	// applications close and write their records, the history is read. Records of hundreds
	// of watchers take their time on a busy machine.
	catchUp = 90 * time.Second
	// setUp bounds the start of the cluster and of the applications.
	setUp = 90 * time.Second
	// eventEvery is how often the reference writes.
	eventEvery = 20 * time.Millisecond
	// sampleEvery is how often every member is asked what it is.
	sampleEvery = 100 * time.Millisecond
	// disconnected is how long members may take to see that an application is gone.
	disconnected = 5 * time.Second
)

// play is one scenario being played. The goroutine of Run owns it.
type play struct {
	sc    Scenario
	opts  Options
	began time.Time

	st        *Stage
	version   string
	binary    string    // of the etcd server; "" where the members are this program
	stepped   string    // of applications; "" they are this program
	zero      time.Time // of the timeline
	sampler   *realetcd.Sampler
	reference *workload.Reference
	writer    *clientv3.Client // reaches the members that are spared
	closers   []func() error   // in order of opening
	ran       map[string]*app.App
	marks     []report.Mark
	cut, heal time.Time
	acted     time.Time // the first step began that has a mark
	stepping  bool      // the steps have begun
	from      int64     // revision of the first change that can be the load's
	leaseTTL  time.Duration
}

// play opens the stage, plays the steps and gathers what was seen.
func (p *play) play(ctx context.Context) (*Evidence, error) {
	if err := p.build(ctx); err != nil {
		return nil, err
	}
	setup, cancel := context.WithTimeoutCause(ctx, setUp, fmt.Errorf("the start took longer than %v", setUp))
	defer cancel()
	if err := p.open(setup); err != nil {
		return nil, err
	}
	p.tell("load runs")
	late, err := p.measured(ctx, func() error {
		if err := sleep(ctx, steady); err != nil {
			return err
		}
		return p.steps(ctx)
	})
	if err != nil {
		return nil, err
	}
	p.tell("catch up and stop")
	ev, err := p.gather(ctx)
	if err != nil {
		return nil, err
	}
	ev.Lateness, ev.Stalls, ev.Pauses, ev.lags = late.Lateness, late.stalls, late.pauses, late.lags
	p.tell("judge")
	return ev, nil
}

// build makes what has to be built and is not in a cache yet: the etcd server, and
// applications whose clocks can be stepped.
func (p *play) build(ctx context.Context) (err error) {
	if p.sc.Clock {
		p.tell("build applications with clocks that can be stepped")
		if p.stepped, err = app.Stepped(ctx, p.cache()); err != nil {
			return err
		}
	}
	p.version = version.Version
	if p.sc.Shim == realetcd.ShimInProcess {
		return nil // the members are this program
	}
	p.binary = p.opts.Binary
	if p.binary == "" || p.sc.Version != "" {
		if p.binary, err = realetcd.Build(ctx, cmp.Or(p.sc.Version, p.opts.Version)); err != nil {
			return err
		}
	}
	p.version, err = realetcd.Version(ctx, p.binary)
	return err
}

func (p *play) tell(text string) {
	p.opts.Logger.Info(text, "scenario", p.sc.Name)
	p.opts.tell(Progress{Scenario: p.sc.Name, At: time.Since(p.began), Text: text})
}

// open starts everything, in order: hosts, members, observers, applications.
func (p *play) open(ctx context.Context) error {
	p.st = &Stage{
		Duration: p.opts.Duration, Log: p.opts.Logger.With("scenario", p.sc.Name),
		Rand: rand.New(rand.NewPCG(uint64(p.opts.Seed), hash(p.sc.Name))),
	}
	if p.st.Duration == 0 {
		p.st.Duration = endless
	}
	p.tell("start " + fmt.Sprint(p.sc.Members) + " members")
	for _, do := range []func(context.Context) error{p.startCluster, p.aim, p.prepare, p.observe, p.startApps} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

func (p *play) startCluster(ctx context.Context) error {
	lab, err := nethosts.New(nethosts.Config{Logger: p.st.Log})
	if err != nil {
		return err
	}
	p.st.Lab = lab
	p.closers = append(p.closers, lab.Close)
	cfg := realetcd.Config{Lab: lab, Members: p.sc.Members, Binary: p.binary, Shim: p.sc.Shim, Logger: p.st.Log}
	if p.sc.Cluster != nil {
		p.sc.Cluster(&cfg)
	}
	if p.st.Cluster, err = realetcd.Start(ctx, cfg); err != nil {
		return err
	}
	p.closers = append(p.closers, p.st.Cluster.Close)
	return p.st.Cluster.Settled(ctx, 500*time.Millisecond)
}

// aim chooses the members that the scenario is about.
func (p *play) aim(ctx context.Context) error {
	st := p.st
	leader, err := st.Cluster.Leader(ctx)
	if err != nil {
		return err
	}
	followers, err := st.Cluster.Followers(ctx)
	if err != nil {
		return err
	}
	st.Leader = leader
	switch p.sc.Target {
	case Nobody:
	case Leader:
		st.Target = leader
	case Follower:
		st.Target, followers = followers[0], followers[1:]
	}
	if p.sc.Second && len(followers) > 0 {
		st.Second = followers[0]
	}
	st.meet()
	return nil
}

func (p *play) prepare(ctx context.Context) error {
	if p.sc.Prepare == nil {
		return nil
	}
	p.tell("prepare")
	return p.sc.Prepare(ctx, p.st)
}

// spared lists the members that no fault touches.
func (p *play) spared() []*realetcd.Member {
	if p.sc.Spared != nil {
		return p.sc.Spared(p.st)
	}
	return p.st.Others(p.st.Target, p.st.Second)
}

// observe starts what no fault touches: the reference and the sampler.
func (p *play) observe(ctx context.Context) error {
	p.zero = time.Now()
	whole := p.spared()
	var err error
	if p.writer, err = p.client(whole...); err != nil {
		return err
	}
	if p.st.Target != nil {
		whole = whole[:1]
	}
	watcher, err := p.client(whole...)
	if err != nil {
		return err
	}
	now, err := p.writer.Get(ctx, app.Prefix)
	if err != nil {
		return fmt.Errorf("revision before the load: %w", err)
	}
	p.from = now.Header.Revision + 1
	p.st.observers = []*clientv3.Client{p.writer, watcher}
	if p.reference, err = workload.StartReference(ctx, p.writer, watcher, eventEvery); err != nil {
		return err
	}
	p.closers = append(p.closers, func() error { p.reference.Close(); return nil })
	sampling, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.sampler = realetcd.StartSampler(sampling, p.st.Cluster, sampleEvery)
	p.closers = append(p.closers, func() error { cancel(); return nil })
	return nil
}

// client is a client of the harness's own that is closed with the play.
func (p *play) client(members ...*realetcd.Member) (*clientv3.Client, error) {
	cli, err := p.st.Cluster.Client(members...)
	if err == nil {
		p.closers = append(p.closers, cli.Close)
	}
	return cli, err
}

// startApps starts both applications, alike but for their client.
func (p *play) startApps(ctx context.Context) error {
	p.ran = make(map[string]*app.App)
	p.st.Ours, p.st.Control = &Application{Name: "ours"}, &Application{Name: "control"}
	errs := make([]error, 2)
	var both sync.WaitGroup
	for i, a := range []*Application{p.st.Ours, p.st.Control} {
		var err error
		if a.Host, err = p.st.Lab.Host(a.Name); err != nil {
			return err
		}
		cfg := p.config(a.Name)
		cfg.Binary = p.stepped
		p.leaseTTL = cfg.LeaseTTL
		both.Go(func() { a.App, errs[i] = app.Start(ctx, a.Host, cfg) })
	}
	both.Wait()
	for _, a := range []*Application{p.st.Ours, p.st.Control} {
		if a.App != nil {
			p.ran[a.Name] = a.App
			p.closers = append(p.closers, a.App.Kill)
		}
	}
	return workload.Started(errs[0], errs[1])
}

// config is that of an application.
func (p *play) config(name string) app.Config {
	cfg := app.Config{
		Name: name, Official: name == "control", Endpoints: p.st.Cluster.Endpoints(), Seed: p.opts.Seed, Zero: p.zero,
		LeaseTTL: 5 * time.Second, Spread: p.sc.Members,
		Histories: true, Watches: true, Locks: true, Elections: true, Counters: true,
	}
	for _, m := range p.spared() {
		cfg.Observer = append(cfg.Observer, m.Endpoint())
	}
	cfg.ShimAddresses = make(map[string]string)
	for _, endpoint := range cfg.Endpoints {
		if shim := p.st.Cluster.ShimAddress(endpoint); shim != "" {
			cfg.ShimAddresses[endpoint] = shim
		}
	}
	if p.sc.App != nil {
		p.sc.App(&cfg)
	}
	return cfg
}

func (p *play) cache() string {
	if p.opts.Cache != "" {
		return p.opts.Cache
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "quorumwise")
}

// measured does something while the machine's lateness is measured: also before the first
// fault, for it makes shims more patient.
func (p *play) measured(ctx context.Context, do func() error) (late lateness, err error) {
	var measuring sync.WaitGroup
	measure, stop := context.WithCancel(ctx)
	measuring.Go(func() { late = measureLateness(measure) })
	err = do()
	stop()
	measuring.Wait()
	return late, err
}

// steps plays them.
func (p *play) steps(ctx context.Context) error {
	p.stepping = true
	for _, step := range p.sc.Steps {
		p.tell(step.Text)
		p.mark(step, time.Now())
		if step.Do != nil {
			if err := step.Do(ctx, p.st); err != nil {
				return fmt.Errorf("step %q: %w", step.Text, err)
			}
		}
		p.st.meet()
		if err := sleep(ctx, step.Wait); err != nil {
			return err
		}
	}
	return nil
}

// mark files the moments that figures count from, and those that the reader should see.
func (p *play) mark(step Step, now time.Time) {
	kind := report.NoteMark
	switch step.Mark {
	case Plain:
		return
	case Inflicted:
		kind = report.FaultMark
		if p.cut.IsZero() {
			p.cut = now
		}
	case Mended:
		kind, p.heal = report.MendedMark, now
	case Noted:
	}
	if p.acted.IsZero() {
		p.acted = now
	}
	p.marks = append(p.marks, report.Mark{At: now.Sub(p.zero), Kind: kind, Text: step.Text})
}

// gather stops writing and the loads, and reads what really happened.
func (p *play) gather(ctx context.Context) (*Evidence, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, catchUp, fmt.Errorf("the end took longer than %v", catchUp))
	defer cancel()
	ev := &Evidence{
		Scenario: p.sc, Version: p.version, Began: p.zero, Ended: time.Now(), Cut: p.cut, Heal: p.heal, Acted: p.acted,
		Died: make(map[string]string), Connected: make(map[string]int), LeaseTTL: p.leaseTTL,
	}
	var err error
	if ev.Upto, err = p.reference.Finish(ctx); err != nil {
		return nil, err
	}
	orphans := p.orphans()
	p.stopApps(ctx, ev)
	if ev.History, err = workload.ReadHistoryFrom(ctx, p.writer, p.from); err != nil {
		return nil, err
	}
	if ev.Truth, err = history.ReadTruth(ctx, p.writer, app.Prefix, p.from); err != nil {
		return nil, err
	}
	if err := ev.count(p.st.Cluster); err != nil {
		return nil, err
	}
	ev.Crashed = p.st.Cluster.Crashed()
	ev.Samples, ev.Reference = p.sampler.Stop(), p.reference.Events()
	ev.Truth.Moments = moments(ev.Reference, p.zero)
	p.connected(ctx, ev, orphans)
	p.facts(ev)
	return ev, nil
}

// stopApps ends both applications and takes their records.
func (p *play) stopApps(ctx context.Context, ev *Evidence) {
	var mu sync.Mutex
	var both sync.WaitGroup
	for name, a := range p.ran {
		both.Go(func() {
			rec, err := a.Stop(ctx, ev.Upto)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				ev.Died[name] = err.Error()
				rec.Name, rec.Official = name, a.Official()
			}
			if a.Official() {
				ev.Control = rec
			} else {
				ev.Ours = rec
			}
		})
	}
	both.Wait()
}

// counter is what knows how often mutations reached servers.
type counter interface {
	Arrived() (realetcd.Arrivals, error)
}

// count takes what reached servers, and what may be missing of it.
func (e *Evidence) count(cluster counter) error {
	arrived, err := cluster.Arrived()
	e.Arrived, e.Uncounted = arrived.Counts, arrived.Gaps
	return err
}

// facts are what the stage has filed.
func (p *play) facts(ev *Evidence) {
	st := p.st
	st.meet()
	st.mu.Lock()
	defer st.mu.Unlock()
	ev.Members, ev.Hurts = slices.Clone(st.members), slices.Clone(st.hurts)
	if st.Target != nil {
		ev.Target = st.Target.Name()
	}
	if st.Second != nil {
		ev.Second = st.Second.Name()
	}
	ev.Marks = p.marks
	for _, n := range st.notes {
		ev.Marks = append(ev.Marks, report.Mark{At: max(0, n.at.Sub(p.zero)), Kind: report.NoteMark, Text: n.text})
	}
	slices.SortStableFunc(ev.Marks, func(a, b report.Mark) int { return int(a.At - b.At) })
}

// orphans are, of each application, the connections that members still believe in though
// it has closed them.
func (p *play) orphans() map[string][]connection {
	orphans := make(map[string][]connection)
	for _, a := range []*Application{p.st.Ours, p.st.Control} {
		var server []connection // before the client's: a new one is known to both
		for _, m := range p.st.Cluster.Members() {
			server = append(server, connectionsOf(m.Host(), a.Host.Addr())...)
		}
		orphans[a.Name] = orphaned(server, connections(a.Host))
	}
	return orphans
}

// connected counts, once all has had the time to end, the connections that members still
// have from each application's host, but for those that were orphans before.
func (p *play) connected(ctx context.Context, ev *Evidence, orphans map[string][]connection) {
	deadline := time.Now().Add(disconnected)
	for {
		left := 0
		for _, a := range []*Application{p.st.Ours, p.st.Control} {
			n := 0
			for _, m := range p.st.Cluster.Members() {
				for _, c := range connectionsOf(m.Host(), a.Host.Addr()) {
					if !slices.Contains(orphans[a.Name], c) {
						n++
					}
				}
			}
			ev.Connected[a.Name] = n
			left += n
		}
		if left == 0 || time.Now().After(deadline) || sleep(ctx, 50*time.Millisecond) != nil {
			return
		}
	}
}

// close ends everything, last opened first. The end of a lab that failed to close would
// be seen by the next one; what it says is logged.
func (p *play) close() {
	for _, do := range slices.Backward(p.closers) {
		if err := do(); err != nil {
			p.opts.Logger.Warn("close", "scenario", p.sc.Name, "error", err)
		}
	}
	p.closers = nil
}
