package scenario

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/cluster"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

const (
	// steady is how long both loads run before the first step.
	steady = 1500 * time.Millisecond
	// catchUp is how long watches may take to deliver what was written, after the
	// last step.
	catchUp = 30 * time.Second
	// setUp bounds the start of the cluster and its clients.
	setUp = 2 * time.Minute
)

// Options are how a scenario is played. The zero value works.
type Options struct {
	// Logger gets the lines of the cluster and of our client; default none.
	Logger *slog.Logger
	// Started is called when both loads run, before the first step. The stage may
	// be read until Ended is called.
	Started func(*Stage)
	// Step is called as each step begins.
	Step func(at time.Time, step Step)
	// Ended is called when the loads are about to stop.
	Ended func()
}

// marks are the moments that figures count from.
type marks struct {
	cut, heal time.Time
	elected   time.Duration // from the cut until another member led; 0: the leader stayed
}

// ErrNotStarted says of a scenario that no step of it had begun.
var ErrNotStarted = errors.New("it did not start")

// Run plays a scenario. An error means that it could not be played (ErrNotStarted: that
// its cluster, clients and loads did not start); what was seen when it was is in the outcome.
func Run(ctx context.Context, sc Scenario, opts Options) (Outcome, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	setup, cancel := context.WithTimeout(ctx, setUp)
	defer cancel()
	st, err := openStage(setup, sc, opts.Logger)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			err = st.Close()
		}
		return Outcome{}, fmt.Errorf("scenario %s: %w", sc.Name, errors.Join(context.Cause(ctx), err))
	case err != nil:
		return Outcome{}, fmt.Errorf("scenario %s: %w", sc.Name, notStarted(err))
	}
	out, err := st.play(ctx, sc, opts)
	if err != nil {
		return Outcome{}, fmt.Errorf("scenario %s: %w", sc.Name, err)
	}
	return out, nil
}

// notStarted is why no step had begun.
func notStarted(err error) error { return fmt.Errorf("%w: %w", ErrNotStarted, err) }

// play runs the steps, closes the stage and judges.
func (st *Stage) play(ctx context.Context, sc Scenario, opts Options) (out Outcome, err error) {
	defer func() {
		if closing := st.Close(); err == nil {
			err = closing
		}
	}()
	if opts.Started != nil {
		opts.Started(st)
	}
	var late lags
	var measuring sync.WaitGroup
	measure, stop := context.WithCancel(ctx)
	measuring.Go(func() { late = measureLateness(measure) })
	var m marks
	if err = sleep(ctx, steady); err == nil {
		m, err = st.steps(ctx, sc, opts)
	}
	stop()
	measuring.Wait()
	if opts.Ended != nil {
		opts.Ended()
	}
	if err != nil {
		return out, err
	}
	moves := st.Client.Health().Moves
	ours, control, history, upTo, err := st.gather(ctx)
	if err != nil {
		return out, err
	}
	reference := st.reference.Events()
	out = Outcome{
		Scenario: sc.Name, Shim: sc.Shim.String(), Elected: m.elected, Moves: moves,
		Ours:    workload.Measure(ours, st.Ours.Trace, reference, st.fault(st.Ours, m.cut, m.heal), outcomeUnknown),
		Control: workload.Measure(control, st.Control.Trace, reference, st.fault(st.Control, m.cut, m.heal), outcomeUnknown),
	}
	// Nobody's silence is shorter than the cluster's; the reference too has a member
	// that may be restarted under it.
	out.Still = min(workload.Silence(reference, ours.Began, ours.Ended), out.Ours.Silence, out.Control.Silence)
	var stood spans
	if out.Still > stillMost {
		stood = standstills(reference, ours.Began, ours.Ended)
	}
	out.judge(sc, evidence{
		marks: m, ours: ours, history: history, upTo: upTo, arrived: st.arrivals.Counts(),
		machine: late, stood: stood, moved: st.moved,
	})
	return out, nil
}

// steps plays them and returns the moments that count.
func (st *Stage) steps(ctx context.Context, sc Scenario, opts Options) (m marks, err error) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watch, stop := context.WithCancel(ctx)
	defer stop()
	for _, step := range sc.Steps {
		var old *cluster.Member
		if step.Mark == Fault { // whoever leads just before it
			if old, err = st.Cluster.WaitLeader(ctx); err != nil {
				return m, err
			}
		}
		now := time.Now()
		if opts.Step != nil {
			opts.Step(now, step)
		}
		switch step.Mark {
		case Plain:
		case Fault:
			m.cut = now
			watching.Go(func() {
				if _, err := st.Cluster.WaitOtherLeader(watch, old); err == nil {
					m.elected = time.Since(now)
				}
			})
		case Mended:
			stop()
			watching.Wait()
			m.heal = now
		}
		if step.Do != nil {
			if err := step.Do(ctx, st); err != nil {
				return m, fmt.Errorf("step %q: %w", step.Text, err)
			}
		}
		if err := sleep(ctx, step.Wait); err != nil {
			return m, err
		}
	}
	return m, nil
}

// gather stops writing and the loads, and reads what really happened. upTo is the
// revision that every watch was given the time to deliver.
func (st *Stage) gather(ctx context.Context) (ours, control workload.Record, h workload.History, upTo int64, err error) {
	watching, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	upTo, err = st.reference.Finish(watching)
	if err != nil {
		return ours, control, h, 0, err
	}
	var both sync.WaitGroup
	both.Go(func() { ours = st.Ours.Load.Stop(watching, upTo) })
	both.Go(func() { control = st.Control.Load.Stop(watching, upTo) })
	both.Wait()
	// A watch of the control's that never catches up must not cost the history.
	reading, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	h, err = workload.ReadHistory(reading, st.writer)
	return ours, control, h, upTo, err
}

// outcomeUnknown says of an error of a mutation that it may have been applied: ours
// says so, or a server that gave up waiting for it.
func outcomeUnknown(err error) bool {
	return client.IsOutcomeUnknown(err) || slices.ContainsFunc([]error{
		rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrLeaderChanged,
	}, func(e error) bool { return errors.Is(err, e) })
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
