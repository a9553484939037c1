//go:build linux

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// runner is the application inside its process. It owns the clients and all parts of
// the load.
type runner struct {
	order    order
	clock    clock
	before   holdings
	conn     *connection
	observer *clientv3.Client
	desk     *desk
	began    time.Time // when all of the load ran
	load     *workload.Load

	site      *site
	endCalls  context.CancelFunc
	histories histories
	big       big
	locks     locks
	elections elections
	counters  counters
	watches   watches

	grades     grades
	grading    sync.WaitGroup
	endGrading context.CancelFunc
}

// start connects and starts the load. ctx ends when the process is to end.
func start(ctx context.Context, o order, clock clock, log *slog.Logger) (*runner, error) {
	r := &runner{order: o, clock: clock, before: held(), desk: &desk{clock: clock}}
	setUp, cancel := context.WithTimeout(ctx, o.Within)
	defer cancel()
	var err error
	if r.observer, err = clientv3.New(officialConfig(o.Config.Observer)); err != nil {
		return nil, fmt.Errorf("observer: %w", err)
	}
	if r.conn, err = connect(o.Config, clock, log); err != nil {
		return nil, errors.Join(fmt.Errorf("client: %w", err), r.observer.Close())
	}
	r.grade()
	if err := r.run(ctx, setUp); err != nil {
		r.stop(setUp, 0)
		return nil, err
	}
	r.began = time.Now()
	return r, nil
}

// grade starts to follow what the client thinks of its endpoints.
func (r *runner) grade() {
	ctx, cancel := context.WithCancel(context.Background())
	r.endGrading = cancel
	if r.conn.ours != nil {
		r.grading.Go(func() { r.grades.follow(ctx, r.conn.ours, r.clock) })
	}
}

// run starts all parts of the load.
func (r *runner) run(ctx, setUp context.Context) error {
	cfg := r.order.Config
	calls, cancel := context.WithCancel(workload.AsUser(ctx))
	r.endCalls = cancel
	r.site = &site{cfg: cfg, clock: r.clock, desk: r.desk, cli: r.conn.Client, calls: calls}
	r.watches.site = r.site
	r.watches.ctx, r.watches.cancel = context.WithCancel(workload.AsUser(ctx))
	now, err := r.observer.Get(setUp, Prefix, clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("observer: %w", err)
	}
	r.watches.from = now.Header.Revision + 1
	r.load, err = workload.Start(setUp, workload.Config{
		Name: cfg.Name, Client: r.conn.Client, Trace: r.conn.trace, Observer: r.observer,
		Spread: cfg.Spread, LeaseTTL: cfg.LeaseTTL, RequestTimeout: cfg.RequestTimeout, Quiet: cfg.Quiet,
	})
	if err != nil {
		return err
	}
	if err := r.watches.start(setUp); err != nil {
		return err
	}
	r.startCalls()
	return nil
}

// startCalls starts the parts that change the store, as far as they are wanted.
func (r *runner) startCalls() {
	cfg := r.order.Config
	r.histories.site, r.big.site, r.locks.site, r.elections.site, r.counters.site = r.site, r.site, r.site, r.site, r.site
	for _, part := range []struct {
		wanted bool
		start  func()
	}{
		{cfg.Histories, r.histories.start}, {cfg.Big > 0, r.big.start}, {cfg.Locks, r.locks.start},
		{cfg.Elections, r.elections.start}, {cfg.Counters, r.counters.start},
	} {
		if part.wanted {
			part.start()
		}
	}
}

// goes is how long what was closed may take to go.
const goes = 3 * time.Second

// stop ends the calls, gives the watches until ctx ends to deliver what was written
// up to then, closes the clients, and returns the record.
func (r *runner) stop(ctx context.Context, upTo int64) (Record, error) {
	ended := time.Now() // what returns later was cut short
	r.endCalls()
	var load workload.Record
	var streams []history.Stream
	var all sync.WaitGroup
	all.Go(func() {
		if r.load != nil {
			load = r.load.Stop(ctx, upTo)
		}
	})
	all.Go(func() {
		r.site.work.Wait()
		streams = r.watches.stop(ctx, r.last(ctx, upTo))
	})
	if !await(ctx, all.Wait) {
		return Record{}, errHangs
	}
	load.Ended = ended
	if !r.began.IsZero() {
		load.Began = r.began // streams that were opened before were no moves
	}
	r.endGrading()
	r.grading.Wait()
	rec := Record{
		Name: r.order.Config.Name, Official: r.order.Config.Official, Zero: r.clock.zero, Log: r.order.Log,
		Load: r.clock.load(load), Streams: streams, Histories: slices.Concat(r.histories.record(), r.big.record()),
		Sections: r.locks.record(), Reigns: r.elections.record(), Counts: r.counters.record(),
		Grades: r.grades.all, Moves: r.conn.allMoves(), Sessions: r.order.Config.sessions(),
	}
	rec.Failures = failures(rec.Load, r.desk.all())
	await(ctx, func() { // where they hang, the leaks show it
		r.conn.close()
		r.observer.Close()
	})
	rec.Fragments = int(r.conn.fragments.n.Load())
	rec.Leaks = leaked(r.before, r.conn.trace.Unended, goes)
	for _, a := range r.conn.trace.Attempts(func(workload.Attempt) bool { return true }) { // after all had the time to end
		rec.Attempts = append(rec.Attempts, r.clock.attempt(a))
	}
	return rec, nil
}

// errHangs is a client that holds calls or watches fast whose contexts have ended.
var errHangs = errors.New("calls or watches of the client did not end with their contexts; see the stacks in the log")

// await returns when f does, or some time after ctx ended: then f is left behind, in
// a process that is about to end.
func await(ctx context.Context, f func()) bool {
	const grace = 3 * time.Second
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-done:
		return true
	case <-time.After(grace):
		return false
	}
}

// last is the revision that the watches of what this application wrote have to
// reach, as far as an unaffected member knows it.
func (r *runner) last(ctx context.Context, upTo int64) int64 {
	if upTo == 0 {
		return 0
	}
	now, err := r.observer.Get(ctx, Prefix, clientv3.WithCountOnly())
	if err != nil {
		return upTo
	}
	return max(upTo, now.Header.Revision)
}

// failures joins those of the load with the others.
func failures(load workload.Record, others []Failure) []Failure {
	all := slices.Clone(others)
	for class, ops := range map[string][]workload.Op{"get": load.Gets, "put": load.Puts} {
		for _, op := range ops {
			if op.Err != nil {
				all = append(all, Failure{At: op.Ended, Took: op.Took(op.Ended), Class: class, Err: Crossing(op.Err)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Failure) int { return a.At.Compare(b.At) })
	return all
}

// progress is how far the load has come.
func (r *runner) progress() Progress {
	t := r.desk.tally()
	return Progress{
		At: r.clock.wall(time.Now()), Load: r.clock.progress(r.load.Progress()),
		Ops: t.ops, Locked: t.locked, Elected: t.elected, Counted: t.counted, Failed: t.failed,
		LastOp: r.clock.wall(t.last), Moves: len(r.conn.allMoves()), Streams: len(r.watches.all()),
	}
}
