//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/report"
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
