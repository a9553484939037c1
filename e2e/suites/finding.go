//go:build linux

package suites

import (
	"fmt"
	"slices"
	"time"
)

// finding is something that was not in time, or that should not have happened when it did.
// A machine that stood still may be the reason, if it did so when the finding began, or one
// that was late again and again until then.
type finding struct {
	text  string
	whens []when // none: no machine is the reason
	// missed: the scenario needs it to show anything, and ours broke no promise.
	missed bool
}

// when is one time that something was late.
type when struct {
	from time.Time // what it counts from
	due  time.Time // until when it was to be done
	seen time.Time // when it was
}

// happened is a time of what should not have happened at all.
func happened(at time.Time) when { return when{from: at, due: at, seen: at} }

// findings are in the order in which they were made.
type findings []finding

func (fs *findings) add(whens []when, format string, args ...any) {
	*fs = append(*fs, finding{text: fmt.Sprintf(format, args...), whens: whens})
}

// miss adds what the scenario needs, else it shows nothing.
func (fs *findings) miss(format string, args ...any) {
	*fs = append(*fs, finding{text: fmt.Sprintf(format, args...), missed: true})
}

// texts are the findings as lines.
func (fs findings) texts() []string {
	var all []string
	for _, f := range fs {
		all = append(all, f.text)
	}
	return all
}

// near is how long after the machine stood still, or was late, something may go wrong because
// of that.
const near = time.Second

// excused says that the machine may be the reason of all of a finding.
func (e *Evidence) excused(f finding) bool {
	return len(f.whens) > 0 && !slices.ContainsFunc(f.whens, func(w when) bool { return !e.stalled(w) && !e.delayed(w) })
}

// stalledMeanwhile says that the machine stood still when it may be the reason that the faults
// showed nothing: from shortly before the first one until shortly after the last heal.
func (e *Evidence) stalledMeanwhile() bool {
	from, to := e.struck(e.Control).Add(-near), e.lastHealed().Add(aftermath)
	if e.lastHealed().IsZero() {
		to = e.Ended
	}
	return slices.ContainsFunc(e.Stalls, func(s Stall) bool { return !s.To.Before(from) && !s.From.After(to) })
}

// delayed says that something was late by no more than what the machine took, a little at a
// time, from shortly before it began.
func (e *Evidence) delayed(w when) bool {
	late := w.seen.Sub(w.due)
	return late > 0 && e.lags.taken(w.from.Add(-near), w.seen) >= late
}

// stalled says that the machine stood still shortly before something began, or before it
// was due, and that it was done in time if one counts from then.
func (e *Evidence) stalled(w when) bool {
	return slices.ContainsFunc(e.Stalls, func(s Stall) bool {
		return !s.From.After(w.due) && !s.To.Before(w.from.Add(-near)) && w.seen.Sub(s.To) <= max(w.due.Sub(w.from), near)
	})
}
