//go:build linux

package suites

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

const (
	// electionTimeout is etcd's.
	electionTimeout = time.Second
	// comeback is how long after a fault members that were slow, or all away, may take until
	// they answer as before.
	comeback = 2300 * time.Millisecond
	// patience is how long a caller must have waited, besides the budget of calls, before it
	// could say that it was not helped.
	patience = 500 * time.Millisecond
)

// alone says that no shim told our client of some member that was well: it had to find out
// by itself.
func (e *Evidence) alone() bool {
	if e.Scenario.Shim == realetcd.ShimNone || e.Scenario.Budget == noShim {
		return true
	}
	return slices.ContainsFunc(e.Samples, func(s realetcd.Sample) bool {
		silent := s.Shim == realetcd.ShimSilent || s.Shim == realetcd.ShimAbsent
		return silent && good(s.State) && s.At.After(e.Ours.Load.Began) && s.At.Before(e.Ended)
	})
}

// soon is how soon a member that has gone bad by itself must be left.
func (e *Evidence) soon() Budget {
	if e.alone() {
		return noShim
	}
	return unreachable
}

// grace is how long after a new leader was elected a mutation that the one before may have
// had may still be waited for: two election timeouts from when our client knows the new one.
func (e *Evidence) grace() time.Duration {
	known := noQuorum.Calls
	if e.alone() {
		known = noShim.Calls
	}
	return known + 2*electionTimeout
}

// waits are the stretches, in order and apart, in which our client may let its user wait:
// no member served that is well; members are slow, or all away; or one has gone bad, or is slow
// alone, and need not be left yet, for which bound is what counts.
func (e *Evidence) waits(t truth, bound func(Budget) time.Duration) []span {
	end := e.Ended.Add(catchUp)
	all := t.unserved(e.Hurts, e.Began, end)
	var hurts []Hurt // whose members may be waited for as said here, whatever they are seen as
	for _, h := range e.Hurts {
		switch {
		case h.Effect == Spares:
		case h.left() && e.elsewhere(h):
			all = append(all, span{h.From, t.due(h, e.Hurts, bound(e.budget(h)))})
		case h.Effect == Slows && e.slowAlone(h): // its shim may find nothing wrong, or do so later
			all = append(all, span{h.From, t.due(h, e.Hurts, bound(noShim))})
			continue
		default:
			all = append(all, span{h.From, e.until(h).Add(comeback)})
		}
		hurts = append(hurts, h)
	}
	for member, ss := range t {
		for i, s := range ss {
			if i > 0 && good(ss[i-1].State) && !good(s.State) && !slices.Contains(hurtNames(hurts, s.At, s.At), member) {
				all = append(all, span{s.At.Add(-sampled), s.At.Add(bound(e.soon()))})
			}
		}
	}
	return joinedSpans(all)
}

// slowAlone says that others are as fast as ever without a member that is slow: all the while a
// majority of the members was not hurt, and it did not lead them.
func (e *Evidence) slowAlone(h Hurt) bool {
	hurt := make(map[string]bool)
	for _, name := range hurtNames(e.Hurts, h.From, e.until(h)) {
		hurt[name] = true
	}
	led := slices.ContainsFunc(e.samples(h.Member, h.From, e.until(h)), func(s realetcd.Sample) bool { return s.State == realetcd.Leader })
	return len(e.Members)-len(hurt) >= majority(len(e.Members)) && !led
}

// joinedSpans are spans in order, those that touch made one.
func joinedSpans(all []span) []span {
	slices.SortFunc(all, func(a, b span) int { return a.from.Compare(b.from) })
	var joined []span
	for _, s := range all {
		if n := len(joined); n > 0 && !s.from.After(joined[n-1].to) {
			if s.to.After(joined[n-1].to) {
				joined[n-1].to = s.to
			}
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// covered is how much of the time between two moments lies in spans that are apart.
func covered(spans []span, from, to time.Time) (d time.Duration) {
	for _, s := range spans {
		begin, end := s.from, s.to
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		d += max(0, end.Sub(begin))
	}
	return d
}

func callsBound(b Budget) time.Duration   { return b.Calls }
func streamsBound(b Budget) time.Duration { return b.Streams }

// waited says what the user of our client waited for too long: longer than workload.Slow
// besides the time in which a client may let its user wait.
func (e *Evidence) waited() findings {
	t := truthOf(e.Samples)
	streams := e.waits(t, streamsBound)
	return slices.Concat(e.behind(streams), e.slow(e.waits(t, callsBound), streams, t.elections()), e.outdone())
}

// behind says how far watches fell behind the reference. An event that never came is lost,
// and told as such.
func (e *Evidence) behind(waits []span) (bad findings) {
	rec := e.Ours.Load
	for _, w := range rec.Watches {
		var late []when
		came := cameAt(w)
		for _, ev := range e.Reference {
			at := came[ev.Revision]
			if ev.Revision <= rec.StartRev || ev.At.After(rec.Ended) || at.IsZero() || at.Sub(ev.At) <= workload.Slow {
				continue
			}
			if due := ev.At.Add(covered(waits, ev.At, at) + workload.Slow); at.After(due) {
				late = append(late, when{ev.At, due, at})
			}
		}
		if len(late) > 0 {
			from, most, took := e.worst(late)
			bad.add(late, "watch %s fell behind by %s: what was written at %s came at %s; want it within %s", w.Name, shown(took), e.clock(from), e.clock(from.Add(took)), shown(most))
		}
	}
	return bad
}

// cameAt is when a watch first delivered each revision.
func cameAt(w workload.WatchRecord) map[int64]time.Time {
	came := make(map[int64]time.Time, len(w.Events))
	for _, ev := range w.Events {
		if came[ev.Revision].IsZero() {
			came[ev.Revision] = ev.At
		}
	}
	return came
}

// slow says which calls took too long, or had not come back in the end. One that was in
// flight when a leader was elected may be a mutation that the one before had.
func (e *Evidence) slow(reads, mutations []span, elected []time.Time) (bad findings) {
	late := make(map[string][]when)
	for _, c := range calls(e.Ours, e.Ours.Load.Began) {
		if c.took() <= workload.Slow {
			continue
		}
		waits := reads
		if c.class != "get" {
			waits = slices.Clone(mutations)
			for _, at := range elected {
				if at.After(c.from) && !at.Add(-electionTimeout).After(c.to) {
					waits = append(waits, span{at.Add(-flicker), at.Add(e.grace())})
				}
			}
			waits = joinedSpans(waits)
		}
		if due := c.from.Add(covered(waits, c.from, c.to) + workload.Slow); c.to.After(due) {
			late[c.class] = append(late[c.class], when{c.from, due, c.to})
		}
	}
	for _, class := range sorted(late) {
		from, most, took := e.worst(late[class])
		bad.add(late[class], "%d %ss kept their callers waiting, one from %s to %s: %s; want at most %s", len(late[class]), class, e.clock(from), e.clock(from.Add(took)), shown(took), shown(most))
	}
	return bad
}

// worst is what was late by most, with how long it might have taken and how long it took. What
// the machine is no reason of comes before what it may be.
func (e *Evidence) worst(late []when) (from time.Time, most, took time.Duration) {
	w := slices.MaxFunc(late, func(a, b when) int {
		if x, y := e.stalled(a), e.stalled(b); x != y && x {
			return -1
		} else if x != y {
			return 1
		}
		return cmp.Compare(a.seen.Sub(a.due), b.seen.Sub(b.due))
	})
	return w.from, w.due.Sub(w.from), w.seen.Sub(w.from)
}

// served says what the user of our client must not have noticed: calls that failed for
// certain although another member would have served them. A caller with less patience than
// the budget has given up before it could be helped.
func (e *Evidence) served() (bad findings) {
	t := truthOf(e.Samples)
	n, failed, whens := make(map[string]int), make(map[string][]call), make(map[string][]when)
	for _, c := range calls(e.Ours, e.Ours.Load.Began) {
		n[c.class]++
		tooSoon := c.gaveUp && c.took() < patience+e.Scenario.Budget.Calls
		if c.failed && !c.handover && !tooSoon && t.servable(e.Hurts, c.from, c.to) {
			failed[c.class] = append(failed[c.class], c)
			due := c.from.Add(patience + e.soon().Calls)
			if c.to.Before(due) {
				due = c.to
			}
			whens[c.class] = append(whens[c.class], when{c.from, due, c.to})
		}
	}
	for _, class := range sorted(failed) {
		first := failed[class][0]
		bad.add(whens[class], "%d of %d %ss failed while another member served, the first from %s to %s; errors: %s", len(failed[class]), n[class], class,
			e.clock(first.from), e.clock(first.to), errorsOf(failed[class]))
	}
	return bad
}

// errorsOf are those of failed calls, with how often each was seen.
func errorsOf(failed []call) string {
	n := make(map[string]int)
	for _, c := range failed {
		n[c.err]++
	}
	var text lines
	for _, err := range sorted(n) {
		text.add("%d times %q", n[err], err)
	}
	return text.join(", ", 3)
}
