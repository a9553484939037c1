//go:build linux

package suites

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// Where the official client need not suffer, nothing but the fault itself can show that
// there was one: a limit that the kernel does not keep, or a rule that drops nothing,
// would pass for a client that bears it. It is enough that anybody noticed anything.

// harmedAfter is the wait that a user notices: calls take a few milliseconds, and up to
// 0.1 s where a machine is busy.
const harmedAfter = 200 * time.Millisecond

// harm says what the user of a client noticed from the fault on; "" if nothing.
func (e *Evidence) harm(rec app.Record) string {
	w, failed, longest := e.measured(rec), 0, e.longestWait(rec)
	for _, c := range calls(rec, e.struck(rec)) {
		if c.failed || c.unknown {
			failed++
		}
	}
	switch lost := e.lostSince(rec); {
	case w.LeasesLost > 0:
		return fmt.Sprintf("%d leases lost", w.LeasesLost)
	case w.WatchesClosed > 0:
		return fmt.Sprintf("%d watches closed", w.WatchesClosed)
	case lost > 0:
		return fmt.Sprintf("%d events lost", lost)
	case failed > 0:
		return fmt.Sprintf("%d calls failed", failed)
	case longest > harmedAfter:
		return fmt.Sprintf("a wait of %v", shown(longest))
	}
	return ""
}

// struck is from when on harm counts: the first fault; where nothing is one, the first step that
// does anything.
func (e *Evidence) struck(rec app.Record) time.Time {
	switch {
	case !e.Cut.IsZero():
		return e.Cut
	case len(e.Hurts) > 0:
		return e.firstHurt()
	case !e.Acted.IsZero():
		return e.Acted
	}
	return rec.Load.Began
}

// longestWait is the longest from the fault on, of a call or for an event that came, but for those
// that the machine is a likely reason of.
func (e *Evidence) longestWait(rec app.Record) (longest time.Duration) {
	from := e.struck(rec)
	wait := func(began, ended time.Time) {
		if began.Before(from) {
			began = from
		}
		if !e.stalled(when{began, began.Add(harmedAfter), ended}) {
			longest = max(longest, ended.Sub(began))
		}
	}
	for _, c := range calls(rec, from) {
		wait(c.from, c.to)
	}
	for _, w := range rec.Load.Watches {
		came := cameAt(w)
		for _, ev := range e.Reference {
			if at := came[ev.Revision]; ev.Revision > rec.Load.StartRev && !ev.At.After(rec.Load.Ended) && !at.IsZero() {
				wait(ev.At, at)
			}
		}
	}
	return longest
}

// lostSince counts the events from the fault on that watches did not deliver.
func (e *Evidence) lostSince(rec app.Record) (lost int) {
	from := e.struck(rec)
	for _, w := range rec.Load.Watches {
		came := cameAt(w)
		for _, ev := range workload.Between(e.Reference, rec.Load.StartRev, e.Upto) {
			if came[ev.Revision].IsZero() && !ev.At.Before(from) {
				lost++
			}
		}
	}
	return lost
}

// unfelt says that nobody noticed the faults of such a scenario; "" that somebody did, or
// that the scenario's own claims tell. What harms nobody must have been seen all the same.
func (e *Evidence) unfelt() string {
	sc, harmless := e.Scenario, e.Scenario.Control == Unharmed
	switch {
	case sc.Control == Stuck, !harmless && (sc.Judge != nil || sc.Timing != nil):
		return ""
	case sc.Shown != nil:
		return sc.Shown(e)
	case sc.Clock && harmless:
		return "" // a clock that did not step is an error of the step
	case len(e.Hurts) == 0 && sc.Endless:
		return "nothing was inflicted on any member: give it more time with --duration"
	case len(e.Hurts) == 0:
		if e.terms() > 1 {
			return ""
		}
		return "nothing was inflicted on any member, and none came to another term"
	case slices.ContainsFunc(e.Hurts, e.felt), !harmless && e.stuck(e.measured(e.Control)) != "":
		return ""
	}
	h := e.Hurts[0]
	return fmt.Sprintf("nobody noticed anything of %s on %s: the member served, its shim said so, and its answers came as before", h.What, h.Member)
}

// terms counts those that members named.
func (e *Evidence) terms() int {
	named := make(map[uint64]bool)
	for _, s := range e.Samples {
		if s.Term != 0 {
			named[s.Term] = true
		}
	}
	return len(named)
}

// felt says that somebody noticed what was done to a member. That its process ended needs
// no witness: whoever ends it waits for that. Of a shim nobody notices anything but that it
// says nothing any more.
func (e *Evidence) felt(h Hurt) bool {
	if h.Effect == Spares {
		return e.shimGone(h)
	}
	to := h.To
	if to.IsZero() {
		to = e.Ended
	}
	to = to.Add(aftermath)
	during := e.samples(h.Member, h.From, to)
	changed := func(s realetcd.Sample) bool { return !good(s.State) || s.Shim != during[0].Shim }
	givenUp := func(out ejection) bool { return !out.From.Before(h.From) && !out.From.After(to) }
	switch {
	case h.Effect == Ends:
		return true
	case len(during) > 1 && slices.ContainsFunc(during[1:], changed):
		return true
	case slices.ContainsFunc(ejections(e.Ours.Grades, e.endpoint(h.Member)), givenUp):
		return true
	}
	before := e.answers(h.Member, e.Ours.Load.Began, e.firstHurt())
	return e.answers(h.Member, h.From, to).worse(before)
}

// firstHurt is when the first member was hurt.
func (e *Evidence) firstHurt() time.Time {
	return slices.MinFunc(e.Hurts, func(a, b Hurt) int { return a.From.Compare(b.From) }).From
}

// answers are what the calls of both applications on a member got in some time.
type answers struct {
	calls int
	mean  time.Duration // that they took
	gap   time.Duration // the longest time without an answer
}

func (e *Evidence) answers(member string, from, to time.Time) (a answers) {
	var sum time.Duration
	answered := []time.Time{from, to}
	for _, c := range slices.Concat(e.Ours.Attempts, e.Control.Attempts) {
		if c.Stream() || c.Address != e.endpoint(member) {
			continue
		}
		if within(c.Began, from, to) {
			a.calls++
			sum += took(c, e.Ended)
		}
		if c.Err == nil && within(c.Ended, from, to) {
			answered = append(answered, c.Ended)
		}
	}
	if a.calls > 0 {
		a.mean = sum / time.Duration(a.calls)
	}
	slices.SortFunc(answered, time.Time.Compare)
	for i, at := range answered[1:] {
		a.gap = max(a.gap, at.Sub(answered[i]))
	}
	return a
}

func within(at, from, to time.Time) bool { return !at.Before(from) && !at.After(to) }

// took is how long a call lasted; until the end where it never ended.
func took(c workload.Attempt, end time.Time) time.Duration {
	if c.Ended.IsZero() {
		return end.Sub(c.Began)
	}
	return c.Ended.Sub(c.Began)
}

// Answers that are worse by so much are noticed. The bounds are low on purpose: a machine
// that is merely noisy may count as a witness, one whose fault works must.
const (
	slower  = 2 * time.Millisecond // besides half as much again
	silence = 500 * time.Millisecond
)

func (a answers) worse(before answers) bool {
	if before.calls == 0 {
		return false // nobody knows how it was
	}
	return a.mean > before.mean*3/2+slower || a.gap > silence && a.gap > 3*before.gap
}
