//go:build linux

package suites

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// again has gRPC send mutations of ours a second time.
func (e *Evidence) again(values ...string) {
	for _, v := range values {
		e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodPut, Address: address("m1"), Began: at(loadBegins), Ended: at(loadBegins), Again: []string{v}})
	}
}

// What a server did not process may come again, once for each time that gRPC sent it again, and
// not otherwise.
func TestJudgeExcusesWhatGRPCItselfSentAgain(t *testing.T) {
	for _, row := range []struct {
		name  string
		shim  realetcd.Shim
		came  int // ours-7
		again []string
		want  report.Status
		noted bool
	}{
		{"sent again by gRPC", realetcd.ShimNone, 2, []string{"ours-7"}, report.Passed, true},
		{"it never went out", realetcd.ShimSidecar, 1, []string{"ours-7"}, report.Passed, false},
		{"sent again by somebody else too", realetcd.ShimNone, 3, []string{"ours-7"}, report.Failed, true},
		{"another one", realetcd.ShimNone, 2, []string{"ours-8"}, report.Failed, false},
		{"processed twice", realetcd.ShimInProcess, 2, []string{"ours-7"}, report.Failed, false},
	} {
		e := sound()
		e.Scenario.Shim, e.Arrived["ours-7"] = row.shim, row.came
		e.again(row.again...)
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
