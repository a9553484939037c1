//go:build linux

package suites

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// Options are how scenarios are played. The zero value works.
type Options struct {
	// Seed of everything that is chosen by chance.
	Seed int64
	// Binary is the path of the etcd server; "" builds one of Version.
	Binary string
	// Version of etcd; "" is the one that this module uses. A scenario that is about a
	// version plays that one.
	Version string
	// Members instead of the scenario's number; 0: as the scenario says.
	Members int
	// Duration of scenarios that have no end of their own; default a minute.
	Duration time.Duration
	// Dir is where the evidence of a failure is kept, in a directory named like the
	// scenario; "" keeps none.
	Dir string
	// Cache is where programs are built that have clocks which can be stepped; "" is
	// below the user's cache directory.
	Cache string
	// Progress is called as things happen, from the goroutine of Run.
	Progress func(Progress)
	// Logger gets the lines of lab and cluster; default none.
	Logger *slog.Logger
}

// Progress is one thing that happened while a scenario was played.
type Progress struct {
	Scenario string
	At       time.Duration // since its begin
	Text     string
	Again    bool // it was void by bad luck, and the scenario is played once more
	Failing  bool // a segment of it did not pass, and it goes on
}

// tell hands on what happened, if anybody wants to know.
func (o Options) tell(p Progress) {
	if o.Progress != nil {
		o.Progress(p)
	}
}

// Register makes the programs known that scenarios run; call it before nethosts.Enter.
func Register() {
	realetcd.Register()
	app.Register()
}

// Run plays a scenario and judges it. What stops it from being played is in the report
// (Broken, Skipped); an error means that ctx ended, and the report is of the segments that
// were judged before: without a status there were none. One that is void by bad
// luck (Verdict.Luck), or did not start by bad luck, is played again, three times at
// most altogether.
func Run(ctx context.Context, sc Scenario, opts Options) (report.Scenario, error) {
	if sc.Endless {
		return runSegments(ctx, sc, opts, again(once))
	}
	return again(once)(ctx, sc, opts)
}

// once plays a scenario once. luck is that of the verdict, or of the start.
func once(ctx context.Context, sc Scenario, opts Options) (r report.Scenario, luck bool, err error) {
	sc = sc.with(opts)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	began := time.Now()
	r = heading(sc, sc.Version)
	defer func() {
		if p := recover(); p != nil {
			r.Status, r.Reason = report.Broken, fmt.Sprintf("the harness crashed: %v\n%s", p, debug.Stack())
		}
		r.Began, r.Took = began, time.Since(began)
	}()
	p := &play{sc: sc, opts: opts, began: began}
	defer p.close()
	ev, err := p.play(ctx)
	if ctx.Err() != nil {
		return r, false, context.Cause(ctx)
	}
	r, luck = p.outcome(r, ev, err)
	return r, luck, nil
}

// outcome is the report of what play has returned, with evidence of all that did not pass.
// The stage is still open.
func (p *play) outcome(r report.Scenario, ev *Evidence, err error) (_ report.Scenario, luck bool) {
	if unavailable, ok := errors.AsType[*nethosts.UnavailableError](err); ok {
		r.Status, r.Reason = report.Skipped, unavailable.Error()
		return r, false
	}
	if err != nil {
		r.Status, r.Reason = report.Broken, err.Error()
		r.Files = p.keep(nil)
		return r, p.unstarted(err)
	}
	v := ev.Judge()
	r = ev.Report(v)
	if v.Status != report.Passed {
		r.Files = p.keep(v.Illustration)
	}
	return r, v.Luck
}

// unstarted says of the error that ended a play that no step had begun, no process had ended
// by itself, and it was not ours alone that did not start. Then an election in a single call,
// or a machine that is slow when everything starts at once, may be all there is to it: what
// never starts stays broken.
func (p *play) unstarted(err error) bool {
	if p.st == nil || p.stepping {
		return false
	}
	for _, ours := range []error{app.ErrEnded, realetcd.ErrEnded, workload.ErrOursAlone} {
		if errors.Is(err, ours) {
			return false
		}
	}
	return p.st.Cluster == nil || len(p.st.Cluster.Crashed()) == 0
}
