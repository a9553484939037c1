//go:build linux

package suites

import (
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/report"
)

var (
	pattern = flag.String("scenario", "follower-cut-3-sidecar", "the scenarios that TestScenarioIsPlayed plays")
	keepDir = flag.String("keep", "", "where reports and evidence are left; default nowhere")
	verbose = flag.Bool("logs", false, "show what the harness logs")
)

// The runner as a whole, on real hosts: what is played is judged, the control is stuck, ours
// is not, and all that a report shows is there.
func TestScenarioIsPlayed(t *testing.T) {
	nethosts.Need(t)
	all := Match(*pattern)
	if len(all) == 0 {
		t.Fatalf("no scenario fits %q", *pattern)
	}
	for _, sc := range all {
		t.Run(sc.Name, func(t *testing.T) {
			opts := Options{Seed: 1, Dir: *keepDir, Progress: func(p Progress) { t.Logf("%6.2fs %s", p.At.Seconds(), p.Text) }}
			if *verbose {
				opts.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
			}
			r, err := Run(t.Context(), sc, opts)
			if err != nil {
				t.Fatal(err)
			}
			show(t, r)
			if r.Status != report.Passed && r.Status != report.Skipped {
				t.Errorf("%s: %s (%s)", sc.Does, r.Status, r.Reason)
			}
			if r.Status == report.Passed && (len(r.Lanes) < sc.Members || len(r.Apps) != 2 || r.End == 0 || r.Version == "" || len(r.Marks) == 0) {
				t.Errorf("%s: the report has %d lanes, %d applications, %d marks, version %q; want all of them", sc.Name, len(r.Lanes), len(r.Apps), len(r.Marks), r.Version)
			}
		})
	}
}

// show logs what a scenario has shown.
func show(t *testing.T, r report.Scenario) {
	t.Helper()
	t.Logf("%s: %s %s, took %v, lateness %v", r.Name, r.Status, r.Reason, r.Took, r.Lateness)
	for _, v := range r.Violations {
		t.Logf("violation: %s", v)
	}
	for _, n := range r.Notes {
		t.Logf("note: %s", n)
	}
	for _, a := range r.Apps {
		figures, err := json.Marshal(a.Figures)
		if err != nil {
			t.Error(err)
		}
		t.Logf("%s: %s; moves %v", a.Name, figures, a.Moves)
	}
	if *keepDir != "" {
		b, err := json.MarshalIndent(r, "", " ")
		if err == nil {
			err = os.WriteFile(filepath.Join(*keepDir, r.Name+".json"), b, 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	}
}
