package report_test

import (
	"strings"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/report"
)

func TestOnlyARunThatShowedWhatItShouldIsOK(t *testing.T) {
	of := func(statuses ...report.Status) (r report.Run) {
		for _, s := range statuses {
			r.Scenarios = append(r.Scenarios, report.Scenario{Status: s})
		}
		return r
	}
	interrupted, violated := of(report.Passed), of(report.Passed)
	interrupted.Ended = "interrupted"
	violated.Scenarios[0].Violations = []string{"something"}
	for _, test := range []struct {
		name string
		run  report.Run
		want bool
	}{
		{"passed and skipped", of(report.Passed, report.Skipped), true},
		{"failed", of(report.Passed, report.Failed), false},
		{"void", of(report.Passed, report.Void), false},
		{"broken", of(report.Passed, report.Broken), false},
		{"an unknown status", of(report.Passed, "dazed"), false},
		{"no status", of(""), false},
		{"none played", of(), false},
		{"all skipped", of(report.Skipped, report.Skipped), false},
		{"interrupted", interrupted, false},
		{"passed, with a violation", violated, false},
	} {
		if got := test.run.OK(); got != test.want {
			t.Errorf("%s: OK is %t, want %t", test.name, got, test.want)
		}
	}
}

func TestAnUnknownStatusIsNoPassedTestInJUnit(t *testing.T) {
	var out strings.Builder
	if err := (report.Run{Scenarios: []report.Scenario{{Name: "x", Suite: "s", Status: "dazed"}}}).WriteJUnit(&out); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`errors="1"`, `<error message="" type="dazed">`} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%s\nwant %q in it: a reader must not take it for passed", out.String(), part)
		}
	}
}
