package main

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/scenario"
)

// look is how often the stage is read and shown. A suspicion lasts 300 ms at least.
const look = 100 * time.Millisecond

// plays is how often a scenario is played at most while bad luck lets it show nothing.
const plays = 3

// play plays a scenario, shows it, and says how it went. The error is errVerdict
// when that is not as promised.
func play(ctx context.Context, sc scenario.Scenario, show *display, log *slog.Logger) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	show.broken = cancel
	show.say(sentence(strong, "quorumwise demonstration"))
	return again(show, func() (scenario.Outcome, []line, error) { return once(ctx, sc, show, log) })
}

// again plays until something is shown, or there is more to it than bad luck.
func again(show *display, once func() (scenario.Outcome, []line, error)) error {
	for n := 1; ; n++ {
		out, lines, err := once()
		if why, unlucky := scenario.Unlucky(out, err); unlucky && n < plays {
			show.say(sentence(warn, "NOTHING SHOWN: %s. That is bad luck: once more, %d of %d ...", why, n+1, plays))
			show.restart()
			continue
		}
		if err != nil {
			return err
		}
		for _, l := range lines {
			show.say(l)
		}
		if !out.OK() {
			return errVerdict
		}
		return nil
	}
}

// once plays a scenario once. lines are its result.
func once(ctx context.Context, sc scenario.Scenario, show *display, log *slog.Logger) (out scenario.Outcome, lines []line, err error) {
	show.say(sentence(plain, "starting %s with %s, and two clients ...", count(cmp.Or(sc.Members, 3), "etcd member"), shimKind(sc.Shim)))
	in := new(inbox)
	sc.Health.OnMove = in.move
	w := &watcher{sc: sc, show: show, in: in}
	out, err = scenario.Run(ctx, sc, scenario.Options{Logger: log, Started: w.start, Step: in.step, Ended: func() { w.ended(ctx) }})
	w.stop() // not ended in order when it was interrupted
	if err != nil {
		return out, nil, err
	}
	return out, result(sc, out, w.asides(), show.columns()), nil
}

// watcher owns the goroutine that reads the stage and shows it.
type watcher struct {
	sc    scenario.Scenario
	show  *display
	in    *inbox
	stage *scenario.Stage // nil until it has started

	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (w *watcher) start(st *scenario.Stage) {
	w.stage = st
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.done.Go(func() { w.run(ctx) })
}

func (w *watcher) ended(ctx context.Context) {
	w.stop()
	if ctx.Err() != nil {
		w.show.say(sentence(plain, "stopping everything ..."))
		return
	}
	w.show.say(sentence(plain, "checking what every watch, lease and call has seen, and stopping everything ..."))
}

// stop ends the showing; it may be called again, and without a start.
func (w *watcher) stop() {
	if w.cancel != nil {
		w.cancel()
		w.done.Wait()
	}
	w.show.leave()
}

func (w *watcher) run(ctx context.Context) {
	shims, err := followShims(w.stage)
	if err != nil {
		w.show.say(sentence(bad, "the shims cannot be followed: %v", err))
		return
	}
	defer shims.close()
	g := &gatherer{fault: w.sc.Name, does: w.sc.Does, began: time.Now(), stage: w.stage, shims: shims}
	n := newNarrator()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			w.look(time.Now(), g, n) // what happened since the last look is told too
			return
		case now := <-tick.C:
			w.look(now, g, n)
		}
	}
}

func (w *watcher) look(now time.Time, g *gatherer, n *narrator) {
	steps, moves := w.in.take()
	var fresh []event
	for _, s := range steps {
		if s.step.Text == "" {
			continue
		}
		fresh = append(fresh, stepEvent(s.at.Sub(g.began), s.step, target(w.stage.Target)))
	}
	var left []moved
	for _, m := range moves {
		if m.At.After(g.began) {
			left = append(left, moved{m, w.stage.Ours.View.MemberAt(m.Endpoint)})
		}
	}
	p := g.picture(now)
	w.show.show(p, inOrder(append(fresh, n.next(p, left)...)))
}

func stepEvent(at time.Duration, step scenario.Step, target string) event {
	text := step.Text
	if step.Mark == scenario.Fault && target != "" {
		text += " (" + target + ")"
	}
	return event{max(at, 0), "==> " + text, strong}
}

// asides are the figures that outcomes do not hold.
func (w *watcher) asides() [2]aside {
	var as [2]aside
	if w.stage == nil {
		return as
	}
	for i, app := range []*scenario.App{w.stage.Ours, w.stage.Control} {
		p := app.Load.Progress()
		as[i] = aside{slow: p.Slow, failed: p.Failed, calls: p.Gets + p.Puts}
	}
	return as
}

// inbox takes what others tell, until the watcher looks.
type inbox struct {
	mu    sync.Mutex
	steps []stepped
	moves []client.Move
}

type stepped struct {
	at   time.Time
	step scenario.Step
}

func (in *inbox) step(at time.Time, s scenario.Step) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.steps = append(in.steps, stepped{at, s})
}

func (in *inbox) move(m client.Move) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.moves = append(in.moves, m)
}

func (in *inbox) take() ([]stepped, []client.Move) {
	in.mu.Lock()
	defer in.mu.Unlock()
	steps, moves := in.steps, in.moves
	in.steps, in.moves = nil, nil
	return steps, moves
}
