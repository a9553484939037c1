//go:build linux

package suites

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// moments are when the reference, which no fault touches, saw its revisions.
func moments(reference []workload.Event, zero time.Time) []history.Moment {
	var all []history.Moment
	for _, ev := range reference {
		all = append(all, history.Moment{Revision: ev.Revision, At: ev.At.Sub(zero)})
	}
	return all
}

// freeMost is how long a mutex or an election may stand with somebody who wants it, where
// neither the cluster nor the machine stood still.
func (e *Evidence) freeMost() time.Duration { return idleMost + e.leaseTTL() }

// handOver is freeMost and the longest time in which the cluster stood still.
func (e *Evidence) handOver() time.Duration { return e.freeMost() + e.still() }

// pauses are when the machine stood still, counted from zero.
func (e *Evidence) pauses(zero time.Time) (all []history.Pause) {
	for _, s := range e.Pauses {
		all = append(all, history.Pause{From: s.From.Sub(zero), To: s.To.Sub(zero)})
	}
	slices.SortFunc(all, func(a, b history.Pause) int { return cmp.Compare(a.From, b.From) })
	return all
}

// lastHealed is when the last fault was taken back; zero where there was none or one
// still lasts.
func (e *Evidence) lastHealed() time.Time {
	last := e.Heal
	for _, h := range e.Hurts {
		if h.To.IsZero() {
			return time.Time{}
		}
		if h.To.After(last) {
			last = h.To
		}
	}
	return last
}

// resumed demands that every mutex is entered and every election won once more after the
// last fault, where that is long enough ago: nobody holds either for longer than a second.
func (e *Evidence) resumed(rec app.Record) []string {
	healed := e.lastHealed()
	if healed.IsZero() || e.Ended.Sub(healed) <= e.handOver()+time.Second {
		return nil
	}
	entered, elected := make(map[string]time.Duration), make(map[string]time.Duration)
	for _, s := range rec.Sections {
		entered[s.Mutex] = max(entered[s.Mutex], s.Entered)
	}
	for _, r := range rec.Reigns {
		elected[r.Election] = max(elected[r.Election], r.Elected)
	}
	var bad lines
	for _, name := range sorted(entered) {
		if rec.Zero.Add(entered[name]).Before(healed) {
			bad.add("mutex %s was not entered in the %s after the last fault; want it taken within %s", name, shown(e.Ended.Sub(healed)), shown(e.handOver()))
		}
	}
	for _, name := range sorted(elected) {
		if rec.Zero.Add(elected[name]).Before(healed) {
			bad.add("election %s was not won in the %s after the last fault; want a leader within %s", name, shown(e.Ended.Sub(healed)), shown(e.handOver()))
		}
	}
	return bad
}
