//go:build linux

package suites

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// sends has a mutation of ours go out so often besides: as often as gRPC says that it was its own
// doing, or not.
func (e *Evidence) sends(value string, again ...bool) {
	for _, a := range again {
		e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodPut, Address: address("m1"), Began: at(loadBegins), Ended: at(loadBegins), Values: []string{value}, Again: a})
	}
}

// unsent has the first try of a mutation of ours not go out.
func (e *Evidence) unsent(value string) {
	e.Ours.Attempts = slices.DeleteFunc(e.Ours.Attempts, func(a workload.Attempt) bool { return slices.Contains(a.Values, value) })
}

// What a server did not process may come again, once for each time that gRPC sent it again, and
// not otherwise.
func TestJudgeExcusesWhatGRPCItselfSentAgain(t *testing.T) {
	for _, row := range []struct {
		name  string
		shim  realetcd.Shim
		came  int // ours-7
		sends func(*Evidence)
		want  report.Status
		noted bool
	}{
		{"sent again by gRPC", realetcd.ShimNone, 2, func(e *Evidence) { e.sends("ours-7", true) }, report.Passed, true},
		{"sent again by gRPC, and only that came", realetcd.ShimNone, 1, func(e *Evidence) { e.sends("ours-7", true) }, report.Passed, false},
		{"the first never went out", realetcd.ShimSidecar, 1, func(e *Evidence) { e.unsent("ours-7"); e.sends("ours-7", true) }, report.Passed, false},
		{"the first never went out, and another one came", realetcd.ShimSidecar, 2, func(e *Evidence) { e.unsent("ours-7"); e.sends("ours-7", true) }, report.Failed, false},
		{"the first never went out, and ours sends it once more", realetcd.ShimNone, 2, func(e *Evidence) { e.unsent("ours-7"); e.sends("ours-7", true, false) }, report.Failed, false},
		{"ours sends it twice, and one comes", realetcd.ShimNone, 1, func(e *Evidence) { e.sends("ours-7", false) }, report.Failed, false},
		{"ours sends a transaction twice, and one comes", realetcd.ShimInProcess, 1, func(e *Evidence) {
			e.did(history.Op{Kind: history.Put, Values: []string{"x/0", "x/1"}})
			e.sends("x/1", false, false)
		}, report.Failed, false},
		{"an increment is made again", realetcd.ShimNone, 1, func(e *Evidence) { e.sends("5", false, false) }, report.Passed, false},
		{"sent again by somebody else too", realetcd.ShimNone, 3, func(e *Evidence) { e.sends("ours-7", true) }, report.Failed, true},
		{"another one", realetcd.ShimNone, 2, func(e *Evidence) { e.sends("ours-8", true) }, report.Failed, false},
		{"processed twice", realetcd.ShimInProcess, 2, func(e *Evidence) { e.sends("ours-7", true) }, report.Failed, false},
	} {
		e := sound()
		e.Scenario.Shim, e.Arrived["ours-7"] = row.shim, row.came
		row.sends(e)
		v := e.Judge()
		noted := slices.ContainsFunc(v.Notes, func(n string) bool { return strings.Contains(n, "came twice") })
		if v.Status != row.want || noted != row.noted {
			t.Errorf("%s: judged %s (%s), violations %q, notes %q; want %s, noted %t", row.name, v.Status, v.Reason, v.Violations, v.Notes, row.want, row.noted)
		}
		if got := e.Arrived["ours-7"]; got != row.came {
			t.Errorf("%s: the judge changed the evidence, %d to %d", row.name, row.came, got)
		}
	}
}
