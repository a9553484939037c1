package report

import "slices"

// Statuses lists every status, the ones that need a look first.
var Statuses = []Status{Failed, Broken, Void, Skipped, Passed}

// Count is how many scenarios ended so.
func (r Run) Count(s Status) int {
	n := 0
	for _, sc := range r.Scenarios {
		if sc.Status == s {
			n++
		}
	}
	return n
}

// OK says whether every scenario passed, or some did and the others were skipped for a
// reason that is told.
// Void and broken scenarios have shown nothing, so they are not OK. Nor is a run in
// which none was played, or one that did not come to its end, or one in which any client of ours violated
// anything, whatever its status says.
func (r Run) OK() bool {
	violated := slices.ContainsFunc(r.Scenarios, func(sc Scenario) bool { return len(sc.Violations) > 0 })
	return r.Ended == "" && r.Count(Passed) > 0 && !violated && r.Count(Passed)+r.Count(Skipped) == len(r.Scenarios)
}

// Why is what there is to say about how the scenario ended, in one line; "" if it
// passed.
func (sc Scenario) Why() string {
	switch {
	case len(sc.Violations) > 0:
		return sc.Violations[0]
	default:
		return sc.Reason
	}
}
