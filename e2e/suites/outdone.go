//go:build linux

package suites

import (
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// Where a fault makes all members slow no client has anywhere to go, and how long one waits is
// chance. But none has a reason to be worse than another.

// oneFor is one for so many answers of the official client's: how the two share what a bad
// network lets through is chance, that one is stuck is none.
const oneFor = 3

// fewAnswers are too few of the official client's to compare with.
const fewAnswers = 20

// outdone says where our client was worse than the official one while a fault made all members
// slow. A soak's are too short to tell (longestOutage).
func (e *Evidence) outdone() (bad findings) {
	if e.Scenario.Endless || e.Died["control"] != "" {
		return nil
	}
	together := e.slowTogether()
	for _, what := range sorted(together) {
		s := together[what]
		ours, control := answeredWithin(e.Ours, s), answeredWithin(e.Control, s)
		if control >= fewAnswers && ours*oneFor < control {
			bad.add(nil, "from %s to %s, while %s made all members slow, %d calls were answered, and %d of the official client's; want at least one for three", e.clock(s.from), e.clock(s.to), what, ours, control)
		}
		most := e.lag(e.Control, s) + workload.Slow
		for _, w := range e.Ours.Load.Watches {
			if lag, late := e.lagOf(e.Ours, w, s, most); len(late) > 0 {
				bad.add(late, "watch %s fell behind by %s while %s made all members slow; want at most %s, the official client's did by %s", w.Name, shown(lag), what, shown(most), shown(most-workload.Slow))
			}
		}
	}
	return bad
}

// slowTogether are the times, by fault, in which one that spreads from the leader made all members
// slow. A way to the clients that is slow is another matter: each has its own.
func (e *Evidence) slowTogether() map[string]span {
	slow := make(map[string]span)
	for _, f := range Faults() {
		members := make(map[string]bool)
		s := span{}
		for _, h := range e.Hurts {
			if h.What == f.Name && h.Effect == Slows && f.Spreads {
				members[h.Member] = true
				s = span{h.From, e.until(h)}
			}
		}
		if len(members) > 0 && len(members) == len(e.Members) {
			slow[f.Name] = s
		}
	}
	return slow
}

// answeredWithin counts the calls that were answered in some time.
func answeredWithin(rec app.Record, s span) (n int) {
	for _, c := range calls(rec, s.from) {
		if !c.failed && !c.unknown && within(c.to, s.from, s.to) && c.to.Before(rec.Load.Ended) {
			n++
		}
	}
	return n
}

// lag is how far the watches of an application fell behind with what was written in some time.
func (e *Evidence) lag(rec app.Record, s span) (most time.Duration) {
	for _, w := range rec.Load.Watches {
		lag, _ := e.lagOf(rec, w, s, 0)
		most = max(most, lag)
	}
	return most
}

// lagOf is likewise of one watch, with each time that it was more than most. What never came was
// late until the end.
func (e *Evidence) lagOf(rec app.Record, w workload.WatchRecord, s span, most time.Duration) (worst time.Duration, late []when) {
	came := cameAt(w)
	for _, ev := range e.Reference {
		if ev.Revision <= rec.Load.StartRev || !within(ev.At, s.from, s.to) {
			continue
		}
		at := came[ev.Revision]
		if at.IsZero() {
			at = rec.Load.Ended
		}
		lag := at.Sub(ev.At)
		if worst = max(worst, lag); lag > most {
			late = append(late, when{ev.At, ev.At.Add(most), at})
		}
	}
	return worst, late
}
