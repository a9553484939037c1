package scenario

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/cluster"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// App is one application: a client, its way to the members, its load.
type App struct {
	Name  string
	View  *cluster.View
	Trace *workload.Trace
	Load  *workload.Load
	cli   *clientv3.Client
}

// Stage is what a scenario plays on.
type Stage struct {
	Cluster *cluster.Cluster
	Target  *cluster.Member // nil when the scenario is aimed at nobody
	Ours    *App
	Control *App
	Client  *client.Client // ours

	reference *workload.Reference
	arrivals  *workload.Arrivals
	writer    *clientv3.Client // reaches the members that are not the target
	watcher   *clientv3.Client // reaches one of them
	closers   []func() error   // in order of opening

	moved []string // what our client moved before anything was done to a member
}

// eventEvery is how often the reference writes.
const eventEvery = 20 * time.Millisecond

func openStage(ctx context.Context, sc Scenario, log *slog.Logger) (*Stage, error) {
	st := &Stage{arrivals: new(workload.Arrivals)}
	if err := st.open(ctx, sc, log); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return st, nil
}

func (st *Stage) open(ctx context.Context, sc Scenario, log *slog.Logger) error {
	c, err := cluster.Start(ctx, cluster.Config{
		Members: sc.Members, Shim: sc.Shim, Logger: log,
		Arrived: func(a cluster.Arrival) { st.arrivals.Add(a.Request) },
	})
	if err != nil {
		return err
	}
	st.Cluster = c
	st.closers = append(st.closers, c.Close)
	if err := c.Settled(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	if err := st.aim(ctx, sc.Target); err != nil {
		return err
	}
	if err := st.observe(ctx); err != nil {
		return err
	}
	if st.Ours, err = st.app("ours"); err != nil {
		return err
	}
	if st.Control, err = st.app("control"); err != nil {
		return err
	}
	if err := st.connect(sc.Health, log); err != nil {
		return err
	}
	return st.load(ctx, sc.Quiet)
}

// load starts both loads at the same time: neither one's start takes time from the other's.
func (st *Stage) load(ctx context.Context, quiet bool) error {
	apps, errs := []*App{st.Ours, st.Control}, make([]error, 2)
	var both sync.WaitGroup
	for i, app := range apps {
		both.Go(func() {
			app.Load, errs[i] = workload.Start(ctx, workload.Config{
				Name: app.Name, Client: app.cli, Trace: app.Trace, Observer: st.writer,
				Spread: len(st.Cluster.Members()), Quiet: quiet,
			})
		})
	}
	both.Wait()
	for i, app := range apps {
		if errs[i] == nil { // where the scenario was interrupted nobody else stops the load
			st.closers = append(st.closers, func() error { app.Load.Stop(context.Background(), 0); return nil })
		}
	}
	return workload.Started(errs[0], errs[1])
}

// aim chooses the member of the role.
func (st *Stage) aim(ctx context.Context, role Role) error {
	leader, err := st.Cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	switch role {
	case Nobody:
	case Leader:
		st.Target = leader
	case Follower:
		isLeader := func(m *cluster.Member) bool { return m == leader }
		st.Target = slices.DeleteFunc(st.Cluster.Members(), isLeader)[0]
	}
	return nil
}

// observe opens the clients that no fault touches, and the reference.
func (st *Stage) observe(ctx context.Context) error {
	var whole []string
	for _, m := range st.Cluster.Members() {
		if m != st.Target {
			whole = append(whole, m.ClientAddr())
		}
	}
	var err error
	if st.writer, err = st.official(whole); err != nil {
		return err
	}
	if st.watcher, err = st.official(whole[:1]); err != nil {
		return err
	}
	st.reference, err = workload.StartReference(ctx, st.writer, st.watcher, eventEvery)
	if err != nil {
		return err
	}
	st.closers = append(st.closers, func() error { st.reference.Close(); return nil })
	return nil
}

// official is a client of the official kind that the stage closes.
func (st *Stage) official(endpoints []string, opts ...grpc.DialOption) (*clientv3.Client, error) {
	cli, err := clientv3.New(officialConfig(endpoints, opts...))
	if err == nil {
		st.closers = append(st.closers, cli.Close)
	}
	return cli, err
}

func officialConfig(endpoints []string, opts ...grpc.DialOption) clientv3.Config {
	return clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialOptions: opts}
}

func (st *Stage) app(name string) (*App, error) {
	v, err := st.Cluster.View(name)
	return &App{Name: name, View: v, Trace: new(workload.Trace)}, err
}

// connect makes the two clients, alike but for what quorumwise adds.
func (st *Stage) connect(health client.Health, log *slog.Logger) error {
	var err error
	if st.Control.cli, err = st.official(st.Control.View.Endpoints(), st.Control.Trace.DialOption()); err != nil {
		return err
	}
	health.ShimAddress = st.Ours.View.Shim
	health.Logger = log
	st.Client, err = client.New(client.Config{
		Config: officialConfig(st.Ours.View.Endpoints(), st.Ours.Trace.DialOption()),
		Health: health,
	})
	if err != nil {
		return err
	}
	st.Ours.cli = st.Client.Client
	st.closers = append(st.closers, st.Client.Close)
	return nil
}

// fault is a fault as one application sees it.
func (st *Stage) fault(app *App, cut, heal time.Time) workload.Fault {
	f := workload.Fault{Cut: cut, Heal: heal}
	if st.Target != nil {
		f.Address = app.View.Endpoint(st.Target)
	}
	return f
}

// Close ends everything, last opened first.
func (st *Stage) Close() error {
	var errs []error
	for i := len(st.closers) - 1; i >= 0; i-- {
		errs = append(errs, st.closers[i]())
	}
	st.closers = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("scenario: close the stage: %w", err)
	}
	return nil
}
