package client

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/quorumwise/quorumwise/picker"
	"github.com/quorumwise/quorumwise/prober"
)

// run owns the cores that decide about moving.
func (a *Attachment) run(ctx context.Context, endpoints []prober.Endpoint) {
	defer close(a.done)
	scale := max(1, float64(a.cfg.ElectionTimeout)/float64(defaultElectionTimeout))
	m := &mover{
		overdue: time.Duration(float64(overdueAge) * scale), keepalive: a.cfg.KeepaliveOverdue,
		election: a.cfg.ElectionTimeout, spread: a.cfg.MoveSpread, hold: a.cfg.Hold, rand: rand.Float64,
	}
	d := &drifter{over: a.cfg.Rebalance, rand: rand.Float64}
	follow := endpointFollower{current: endpoints, left: make(map[string]time.Time)}
	timer := time.NewTimer(idleTick)
	defer timer.Stop()
	var r rest
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
			r.quiet = 0
		case <-timer.C:
		}
		now := time.Now()
		follow.update(a, now)
		v := a.view(now, follow.left)
		decided := m.decide(v)
		a.act(decided)
		drift, next := d.decide(v)
		a.drift(drift)
		a.tell()

		wait, idle := r.next(decided.watch)
		a.idle.Store(idle)
		for _, w := range []time.Duration{decided.wait, next} {
			if w > 0 {
				wait = min(wait, w)
			}
		}
		timer.Reset(wait)
	}
}

// rest decides when the loop may look rarely. A call wakes it when it begins,
// shortly before it is filed under an endpoint, and only if the loop is idle. So
// it rests after two looks that saw nothing, an active tick apart, with idle set
// in between: what began before idle was set is filed by the second look.
type rest struct{ quiet int }

// next takes whether something has to be watched and returns when to look again,
// and whether calls that begin are to wake the loop before.
func (r *rest) next(watch bool) (wait time.Duration, idle bool) {
	if watch {
		r.quiet = 0
		return activeTick, false
	}
	r.quiet++
	if r.quiet > 2 {
		return idleTick, true
	}
	return activeTick, r.quiet == 2
}

func (a *Attachment) act(d decision) {
	type group struct{ endpoint, reason string }
	moved := make(map[group]int)
	for _, e := range d.ends {
		if e.to != "" {
			a.hub.Prefer(e.to, e.call.Class())
		}
		if a.end(e.call, e.cause) {
			moved[group{e.cause.Endpoint, e.cause.Reason}]++
		}
	}
	for g, n := range moved {
		a.cfg.Logger.Info("moved calls and streams", slog.String("endpoint", g.endpoint), slog.String("reason", g.reason), slog.Int("count", n))
	}
	for _, address := range d.prove {
		a.prober.Prove(address)
	}
}

func (a *Attachment) drift(streams []drifting) {
	for _, s := range streams {
		a.hub.Prefer(s.to, s.call.Class())
		a.end(s.call, &MovedError{Endpoint: s.from, Reason: ReasonDrift, Since: s.at, Method: s.call.Method()})
	}
}

// end ends one call and takes it down.
func (a *Attachment) end(c *picker.Call, cause *MovedError) bool {
	cause.Sent = c.Sent()
	if !c.End(cause) {
		return false
	}
	a.note(c, cause)
	return true
}

// note takes down a move; any goroutine may. The loop tells the user of it.
func (a *Attachment) note(c *picker.Call, cause *MovedError) {
	a.moves.add(Move{
		At: time.Now(), Method: cause.Method, Class: className(c.Class()), Endpoint: cause.Endpoint, Reason: cause.Reason,
	}, a.cfg.OnMove != nil)
}

// tell tells the user of the moves since the last time.
func (a *Attachment) tell() {
	for _, m := range a.moves.take() {
		a.cfg.OnMove(m)
	}
}
