//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/suites"
)

func TestTableJoinsRuns(t *testing.T) {
	var paths []string
	for _, sc := range catalog()[:2] {
		dir := t.TempDir()
		out := ended(sc, report.Passed)
		out.Fault = "cut"
		if err := report.Write(dir, report.Run{Scenarios: []report.Scenario{out}}); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, filepath.Join(dir, report.JSONName))
	}
	for flag, want := range map[string]string{"--markdown": "| cut | 2 | 0.41 / 0.41 | never / never |", "--markdown=false": "cut    2          0.41 / 0.41            never / never"} {
		out, complaint, status := call(t, world{enter: noLab(t)}, append([]string{"table", flag}, paths...)...)
		if status != statusOK || complaint != "" || !strings.Contains(out, want) {
			t.Errorf("%s: status %d, %q\n%s\nwant %q", flag, status, complaint, out, want)
		}
	}
}

func TestTableTellsBudgetsThatOlderReportsDoNot(t *testing.T) {
	scs := catalog()
	scs[0].Budget = suites.Budget{Calls: 400 * time.Millisecond, Streams: 800 * time.Millisecond}
	for name, c := range map[string]struct {
		budget report.Budget
		want   string
	}{
		"an older report":     {want: "| cut | 1 | 0.25 of 0.40 | - | - | 0.50 of 0.80 | - | - |"},
		"one that tells them": {budget: report.Budget{Calls: time.Second, Streams: 2 * time.Second}, want: "| cut | 1 | 0.25 of 1.00 | - | - | 0.50 of 2.00 | - | - |"},
	} {
		out := ended(scs[0], report.Passed)
		out.Fault, out.Shim, out.TargetMember, out.Budget = "cut", "sidecar", "m2", c.budget
		out.Marks = []report.Mark{{At: time.Second, Kind: report.FaultMark, Text: "cut"}}
		out.Apps[0].Figures.LastCall, out.Apps[0].Figures.LastStream = 250*time.Millisecond, 500*time.Millisecond
		dir := t.TempDir()
		if err := report.Write(dir, report.Run{Scenarios: []report.Scenario{out}}); err != nil {
			t.Fatal(err)
		}
		got, complaint, status := call(t, world{enter: noLab(t), catalog: scs}, "table", "--markdown", filepath.Join(dir, report.JSONName))
		if status != statusOK || complaint != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: status %d, %q\n%s\nwant %q", name, status, complaint, got, c.want)
		}
	}
}

func TestTableRefusesWhatIsNoReport(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(other, []byte(`[]`), 0o644); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"table":            "requires at least 1 arg",
		"table /no/where":  "give the results.json of a report",
		"table " + other:   "not a report in JSON",
		"table -h nothing": "",
	} {
		_, complaint, status := call(t, world{}, strings.Fields(args)...)
		if wrong := status == statusUsage; wrong != (want != "") || !strings.Contains(complaint, want) {
			t.Errorf("%s: status %d, %q; want %q", args, status, complaint, want)
		}
	}
}
