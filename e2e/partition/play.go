//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/suites"
)

// saveEvery is how often the report is written while the run lasts, so that hours of it
// do not depend on its end.
const saveEvery = time.Minute

// errOvertime is why a scenario was ended that did not end by itself.
var errOvertime = errors.New("it did not come to its end")

// event is what a worker tells the goroutine that owns board, screen and report.
type event struct {
	index  int
	name   string
	what   string           // it is doing
	aloud  bool             // what is for everybody to see
	result *report.Scenario // nil: it has only begun, or told something
	begun  bool
	err    error // the scenario was interrupted; result is what was judged of it before, if anything was
}

// play plays a plan and shows it. What was interrupted is not in the report.
func play(ctx context.Context, p plan, player player, show *screen, log *slog.Logger) report.Run {
	now := time.Now()
	r := &recital{plan: p, show: show, board: newBoard(len(p.scenarios), now), run: p.frame(now), results: make([]*report.Scenario, len(p.scenarios)), saved: now}
	show.say(opening(p)...)
	events := make(chan event)
	var workers sync.WaitGroup
	jobs := queue(ctx, len(p.scenarios))
	for range p.parallel {
		workers.Go(func() {
			for i := range jobs {
				events <- event{index: i, name: p.scenarios[i].Name, begun: true}
				events <- perform(ctx, p, i, player, log, events)
			}
		})
	}
	go func() { // ends with the workers
		workers.Wait()
		close(events)
	}()
	r.follow(events)
	return r.end()
}

// queue hands out the scenarios in order, and no more once ctx ends.
func queue(ctx context.Context, n int) <-chan int {
	jobs := make(chan int)
	go func() { // ends with the last job or with ctx
		defer close(jobs)
		for i := range n {
			if ctx.Err() != nil {
				return
			}
			select {
			case jobs <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	return jobs
}

// perform plays one scenario. Whatever happens, one event comes out.
func perform(ctx context.Context, p plan, i int, player player, log *slog.Logger, events chan<- event) (e event) {
	sc := p.scenarios[i]
	began := time.Now()
	broken := func(reason string) event {
		return event{index: i, name: sc.Name, result: &report.Scenario{
			Name: sc.Name, Suite: sc.Suite, Does: sc.Does, Fault: sc.Fault, Field: sc.Field,
			Status: report.Broken, Reason: reason, Began: began, Took: time.Since(began),
		}}
	}
	defer func() {
		if cause := recover(); cause != nil { // one scenario's mistake must not cost the report of the others
			e = broken(fmt.Sprintf("panic: %v\n%s", cause, debug.Stack()))
		}
	}()
	limited, cancel := context.WithTimeoutCause(ctx, p.limit(sc), errOvertime)
	defer cancel()
	opts := p.options
	opts.Logger = log.With("scenario", sc.Name)
	opts.Progress = func(pr suites.Progress) {
		events <- event{index: i, name: sc.Name, what: pr.Text, aloud: pr.Again || pr.Failing}
	}
	out, err := player(limited, sc, opts)
	interrupted := err != nil && ctx.Err() != nil
	switch {
	case err != nil && out.Status != "": // the end of a soak is not all of it
	case interrupted:
		return event{index: i, name: sc.Name, err: err}
	case err != nil:
		return broken(err.Error())
	}
	out.Command = p.settings.command(p.settings.seed, sc.Name)
	switch {
	case interrupted:
		return event{index: i, name: sc.Name, result: &out, err: err}
	case err != nil && out.Status == report.Passed:
		out.Status, out.Reason = report.Broken, err.Error()
	}
	return event{index: i, name: sc.Name, result: &out}
}

// recital is what one goroutine owns while a plan is played.
type recital struct {
	plan    plan
	show    *screen
	board   *board
	run     report.Run
	results []*report.Scenario // by place in the plan
	early   int                // of them: not played to the end
	saved   time.Time
}

func (r *recital) follow(events <-chan event) {
	tick := time.NewTicker(r.show.every())
	defer tick.Stop()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			r.take(e, time.Now())
		case now := <-tick.C:
			r.show.show(r.board, now)
		}
	}
}

func (r *recital) take(e event, now time.Time) {
	switch {
	case e.begun:
		r.board.begin(e.name, now)
	case e.err != nil && e.result == nil:
		r.board.drop(e.name)
		r.show.say(fmt.Sprintf("%s ended early, and is not in the report", e.name))
	case e.result != nil:
		if e.err != nil {
			r.early++
			r.show.say(fmt.Sprintf("%s ended early; what was judged of it is in the report", e.name))
		}
		r.results[e.index] = e.result
		ok := e.result.Status == report.Passed || e.result.Status == report.Skipped
		r.show.result(!ok, r.board.finish(*e.result)...)
		r.save(now)
	default:
		r.board.tell(e.name, e.what)
		if e.aloud {
			r.show.say(e.name + " is " + oneLine(e.what))
		}
	}
}

// save writes what there is, now and then. That it could not be written is told at the
// end, when it is tried again.
func (r *recital) save(now time.Time) {
	if now.Sub(r.saved) < saveEvery {
		return
	}
	r.saved = now
	run := r.sofar(now)
	if run.Ended == "" && len(run.Scenarios) < len(r.results) {
		run.Ended = "it still goes on"
	}
	if err := report.Write(r.plan.dir, run); err != nil {
		r.show.say(fmt.Sprintf("the report cannot be written yet: %v", err))
	}
}

// sofar is the report of what was played, in the order of the plan.
func (r *recital) sofar(now time.Time) report.Run {
	run := r.run
	run.Took = now.Sub(run.Began)
	for _, sc := range r.results {
		if sc != nil {
			run.Scenarios = append(run.Scenarios, *sc)
		}
	}
	return run
}

func (r *recital) end() report.Run {
	r.show.clear()
	run := r.sofar(time.Now())
	if n := len(r.results) - len(run.Scenarios); n > 0 {
		run.Ended = fmt.Sprintf("interrupted: %d of %d scenarios were not played", n, len(r.results))
	} else if r.early > 0 {
		run.Ended = fmt.Sprintf("interrupted: %d of %d scenarios were not played to their end", r.early, len(r.results))
	}
	return run
}
