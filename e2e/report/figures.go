package report

import (
	"slices"
	"time"
)

// slowest is the longest that any call took.
func (f Figures) slowest() time.Duration {
	var worst time.Duration
	for _, q := range f.Calls {
		worst = max(worst, q.Max)
	}
	return worst
}

func (f Figures) calls() int {
	n := 0
	for _, q := range f.Calls {
		n += q.N
	}
	return n
}

func (f Figures) failed() int {
	n := 0
	for _, k := range f.Failed {
		n += k
	}
	return n
}

// suite is the scenarios of one suite, in the order in which they were played.
type suite struct {
	name      string
	scenarios []Scenario
}

// suites keeps the order in which they first appear.
func (r Run) suites() []suite {
	var all []suite
	for _, sc := range r.Scenarios {
		i := slices.IndexFunc(all, func(s suite) bool { return s.name == sc.Suite })
		if i < 0 {
			all = append(all, suite{name: sc.Suite})
			i = len(all) - 1
		}
		all[i].scenarios = append(all[i].scenarios, sc)
	}
	return all
}

// ours and control are the two applications; false where the scenario has none.
func (sc Scenario) ours() (App, bool)    { return sc.app(false) }
func (sc Scenario) control() (App, bool) { return sc.app(true) }

func (sc Scenario) app(official bool) (App, bool) {
	i := slices.IndexFunc(sc.Apps, func(a App) bool { return a.Official == official })
	if i < 0 {
		return App{}, false
	}
	return sc.Apps[i], true
}

// spread is one duration over several scenarios, in order.
type spread []time.Duration

// median is the higher one of the middle two: Never has no mean with anything.
func (s spread) median() time.Duration { return s[len(s)/2] }
func (s spread) worst() time.Duration  { return s[len(s)-1] }

// side is what one client's users have seen of a fault.
type side struct {
	silence, call spread // the longest of each scenario
	failed        int
	lost, twice   int // events
	leases        int // lost
	avoidable     int // calls
}

func (s *side) add(f Figures) {
	s.silence = insert(s.silence, f.Silence)
	if f.calls() > 0 {
		s.call = insert(s.call, f.slowest())
	}
	s.failed += f.failed()
	s.lost += f.EventsLost
	s.twice += f.EventsTwice
	s.leases += f.LeasesLost
	s.avoidable += f.Avoidable
}

func insert(s spread, d time.Duration) spread {
	i, _ := slices.BinarySearch(s, d)
	return slices.Insert(s, i, d)
}

// faultFigures are the figures of all scenarios with one fault.
type faultFigures struct {
	fault         string
	scenarios     int // that passed or failed
	uncounted     int // void, skipped or broken: they have shown nothing
	ours, control side
	falseMoves    int
	violations    int
}

// faults gives one row for each fault, in the order in which they first appear, and
// one for all together.
func (r Run) faults() (rows []faultFigures, all faultFigures) {
	all.fault = "all"
	for _, sc := range r.Scenarios {
		name := sc.faultName()
		i := slices.IndexFunc(rows, func(f faultFigures) bool { return f.fault == name })
		if i < 0 {
			rows = append(rows, faultFigures{fault: name})
			i = len(rows) - 1
		}
		rows[i].add(sc)
		all.add(sc)
	}
	return rows, all
}

// faultName is never empty: an operation has no fault, but it has a suite.
func (sc Scenario) faultName() string {
	switch {
	case sc.Fault != "":
		return sc.Fault
	case sc.Suite != "":
		return sc.Suite
	default:
		return "none"
	}
}

func (f *faultFigures) add(sc Scenario) {
	f.violations += len(sc.Violations)
	if sc.Status != Passed && sc.Status != Failed {
		f.uncounted++
		return
	}
	f.scenarios++
	if a, ok := sc.ours(); ok {
		f.ours.add(a.Figures)
		f.falseMoves += a.Figures.FalseMoves
	}
	if a, ok := sc.control(); ok {
		f.control.add(a.Figures)
	}
}
