//go:build linux

package suites

import (
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// left says that a member which suffers this must be left.
func (h Hurt) left() bool { return h.Effect == Isolates || h.Effect == Silences || h.Effect == Ends }

// budget is how soon a member that is hurt must be left. One whose shim suffers too has none
// that could tell.
func (e *Evidence) budget(h Hurt) Budget {
	shim := e.Scenario.Shim
	for _, o := range e.Hurts {
		if o.Effect == Spares && o.Member == h.Member && o.during(h.From.Add(-aftermath), e.until(h)) {
			shim = realetcd.ShimNone
		}
	}
	if e.Scenario.Budget != (Budget{}) {
		return e.Scenario.Budget
	}
	return Fault{Effect: h.Effect}.Budget(shim)
}

// away is the part of a hurt in which the member must be left: all of it or, of one whose
// process ends, from when it was seen to serve no longer until something of it runs again.
// false: nobody has to leave it, or nobody can, or what slows others may keep them from it.
func (e *Evidence) away(t truth, h Hurt) (Hurt, bool) {
	if !h.left() || !e.elsewhere(h) || e.slowed(h) {
		return h, false
	}
	if h.Effect != Ends {
		return h, true
	}
	gone, stopped := false, false
	for _, s := range t[h.Member] {
		switch down := s.State == realetcd.Stopped || s.Shim == realetcd.ShimAbsent; {
		case s.At.Before(h.From), !h.To.IsZero() && s.At.After(h.To):
		case !gone && good(s.State):
		case !gone:
			gone, stopped, h.From = true, down, s.At
		case good(s.State), stopped && !down:
			h.To = s.At
			return h, stopped
		default:
			stopped = stopped || down
		}
	}
	return h, stopped
}

// slowed says that other members were slow while one had to be left.
func (e *Evidence) slowed(h Hurt) bool {
	b := e.budget(h)
	from, to := h.From.Add(-aftermath), h.From.Add(max(b.Calls, b.Streams))
	for _, o := range e.Hurts {
		if o.Effect == Slows && o.Member != h.Member && o.during(from, to) {
			return true
		}
	}
	return false
}

// leaving measures how one application left a member that is hurt.
func (e *Evidence) leaving(rec app.Record, h Hurt) workload.Figures {
	return workload.Measure(workload.Record{Began: rec.Load.Began, Ended: rec.Load.Ended}, rec.Trace(), nil,
		workload.Fault{Address: e.endpoint(h.Member), Cut: h.From, Heal: e.until(h)}, app.OutcomeUnknown)
}

// until is when a hurt ended, or what is judged did.
func (e *Evidence) until(h Hurt) time.Time {
	if h.To.IsZero() {
		return e.Ended
	}
	return h.To
}

// left checks how soon each member that suffered was left.
func (e *Evidence) left() (bad findings) {
	t := truthOf(e.Samples)
	for _, hurt := range e.Hurts {
		h, must := e.away(t, hurt)
		if !must {
			continue
		}
		f, b := e.leaving(e.Ours, h), e.budget(h)
		for _, row := range []struct {
			what     string
			got, max time.Duration
		}{
			{"the last new call went to " + h.Member, f.LastCall, b.Calls},
			{"the last read on " + h.Member + " ended", f.LastRead, b.Calls},
			{"the last mutation on " + h.Member + " ended", f.LastMutation, b.Streams},
			{"the last stream left " + h.Member, f.LastStream, b.Streams},
		} {
			due := t.due(h, e.Hurts, row.max)
			limit := due.Sub(h.From)
			if row.max == 0 || !due.Before(e.until(h)) || row.got <= limit+grain(limit-row.max) {
				continue
			}
			seen := e.until(h)
			if row.got != workload.Never {
				seen = h.From.Add(row.got)
			}
			bad.add([]when{{h.From, due, seen}}, "%s %s after %s at %s; want at most %s (%s after the election)",
				row.what, shown(row.got), h.What, e.clock(h.From), shown(limit), shown(row.max))
		}
	}
	return bad
}

// grain is how much later than the sampler saw it an election may have ended: a question
// that was asked before is answered after.
func grain(election time.Duration) time.Duration {
	if election == 0 {
		return 0
	}
	return sampleEvery
}

// returns is how long a member must have been good, at the latest, when calls go to it
// again. One whose process was ended has to be connected to again, and connection
// attempts back off.
var returns = map[Effect]time.Duration{Slows: 2 * time.Second, Isolates: 2 * time.Second, Silences: 2 * time.Second, Ends: 6 * time.Second}

// returned checks that each member that suffered is used again once it is good.
func (e *Evidence) returned() (bad findings) {
	t := truthOf(e.Samples)
	for _, h := range e.Hurts {
		if h.To.IsZero() || !h.left() && !(e.Scenario.Returns && h.Effect == Slows) {
			continue
		}
		until, last := e.free(h)
		since := t.since(h.Member, until, e.usable(h))
		if since.Before(h.To) && !since.IsZero() {
			since = h.To
		}
		must := e.Scenario.Returns && last
		due := !since.IsZero() && until.Sub(since) >= returns[h.Effect]
		calls, streams := e.back(e.Ours, h, until)
		whens := []when{{since, since.Add(returns[h.Effect]), until}}
		if since.IsZero() {
			whens = nil
		}
		if calls == 0 && (due || must) {
			bad.add(whens, "no call went to %s from %s, when %s ended, to %s; want some: it was good again %s", h.Member, e.clock(h.To), h.What, e.clock(until), e.from(since))
		}
		if streams == 0 && must {
			bad.add(whens, "no stream went to %s from %s, when %s ended, to %s; want some: it was good again %s", h.Member, e.clock(h.To), h.What, e.clock(until), e.from(since))
		}
	}
	return bad
}

// from says since when.
func (e *Evidence) from(since time.Time) string {
	if since.IsZero() {
		return "in between at most"
	}
	return "from " + e.clock(since) + " on"
}

// free is until when a member was not hurt again; last: it never was.
func (e *Evidence) free(h Hurt) (until time.Time, last bool) {
	until, last = e.Ended, true
	for _, o := range e.Hurts {
		if o.Member == h.Member && o.Effect != Spares && !o.From.Before(h.To) && o.From.Before(until) {
			until, last = o.From, false
		}
	}
	return until, last
}

// usable says what a member must be for calls to go to it after a hurt. A shim holds down a
// member that comes and goes for longer each time, so after the first hurt of a
// scenario its word counts too.
func (e *Evidence) usable(h Hurt) func(realetcd.Sample) bool {
	again := false
	for _, o := range e.Hurts {
		again = again || o.Effect != Spares && o.From.Before(h.From.Add(-moment))
	}
	return func(s realetcd.Sample) bool { return good(s.State) && !(again && notServing(s)) }
}

// back counts the calls and the streams that an application sent to a member that had
// suffered, after that and until some moment.
func (e *Evidence) back(rec app.Record, h Hurt, until time.Time) (calls, streams int) {
	for _, a := range rec.Attempts {
		if a.Address != e.endpoint(h.Member) || !a.Began.After(h.To) || a.Began.After(until) {
			continue
		}
		calls++
		if a.Stream() {
			streams++
		}
	}
	return calls, streams
}
