//go:build linux

package e2e_test

import (
	"flag"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/suites"
)

var (
	etcd      = flag.String("etcd", "", "path of the etcd server that the partition suites test; default one that is built")
	reportDir = flag.String("report", "", "directory for a report of the partition suites; default none")
	seed      = flag.Int64("seed", 0, "of the partition suites; default by chance")
)

// TestMain enters a lab where there can be one. The scenarios in one process need none,
// and play all the same where there is none.
func TestMain(m *testing.M) {
	realetcd.Register()
	app.Register()
	nethosts.TestMain(m)
}

// TestPartitions plays the partition suites on hosts of their own: one scenario for each
// mechanism, with -full all of them.
func TestPartitions(t *testing.T) {
	nethosts.Need(t)
	binary := etcdServer(t)
	version, err := realetcd.Version(t.Context(), binary)
	if err != nil {
		t.Fatal(err)
	}
	opts := suites.Options{Seed: *seed, Binary: binary, Logger: slog.New(slog.DiscardHandler)}
	if *logs {
		opts.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if opts.Seed == 0 {
		opts.Seed = 1 + rand.Int64N(1e9)
	}
	t.Logf("etcd %s; -seed %d plays the same again", version, opts.Seed)
	run := report.Run{
		Command: "go test ./e2e/ -run Partitions", Seed: opts.Seed, Began: time.Now(),
		Versions: report.Versions(version), Machine: report.Machine(),
	}
	if *reportDir != "" {
		opts.Dir = filepath.Join(*reportDir, "files")
	}
	chosen := bySuite(suites.All())
	if len(chosen) == 0 {
		t.Fatal("no scenario of the partition suites is quick; want one for each mechanism")
	}
	for _, suite := range chosen {
		t.Run(suite[0].Suite, func(t *testing.T) {
			for _, sc := range suite {
				t.Run(sc.Name, func(t *testing.T) {
					needTime(t, sc)
					out, err := suites.Run(t.Context(), sc, opts)
					if err != nil {
						t.Fatal(err)
					}
					run.Scenarios = append(run.Scenarios, out)
					judge(t, out)
				})
			}
		})
	}
	run.Took = time.Since(run.Began)
	concludePartitions(t, run)
}

// bySuite groups what is to be played.
func bySuite(all []suites.Scenario) [][]suites.Scenario {
	var groups [][]suites.Scenario
	for _, sc := range all {
		if !sc.Quick && !*full {
			continue
		}
		i := slices.IndexFunc(groups, func(g []suites.Scenario) bool { return g[0].Suite == sc.Suite })
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], sc)
	}
	return groups
}

// etcdServer is the one of -etcd, or is built where the module proxy can be reached.
func etcdServer(t *testing.T) string {
	t.Helper()
	if *etcd != "" {
		path, err := filepath.Abs(*etcd)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	var path string
	err := nethosts.Outside(func() (err error) {
		path, err = realetcd.Build(t.Context(), "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// needTime fails while there still is time to write the report.
func needTime(t *testing.T, sc suites.Scenario) {
	t.Helper()
	const besideSteps = 45 * time.Second
	deadline, ok := t.Deadline()
	if left := time.Until(deadline); ok && left < suites.Plays*(sc.Lasts()+besideSteps) {
		t.Fatalf("-timeout leaves %v, too little for this scenario: give a longer one", left.Round(time.Second))
	}
}

func judge(t *testing.T, out report.Scenario) {
	t.Helper()
	for _, n := range out.Notes {
		t.Log("note:", n)
	}
	for _, v := range out.Violations {
		t.Errorf("%s: %s", out.Does, v)
	}
	switch out.Status {
	case report.Passed:
	case report.Failed:
		t.Fail()
	case report.Skipped:
		t.Skip(out.Reason)
	default: // Void, Broken, or one that is not known here
		t.Errorf("%s: %s: %s", out.Does, out.Status, out.Reason)
	}
}

func concludePartitions(t *testing.T, run report.Run) {
	t.Helper()
	if len(run.Scenarios) == 0 {
		return // -run chose none of them
	}
	var table strings.Builder
	if err := report.Table(&table, run); err != nil {
		t.Fatal(err)
	}
	t.Logf("figures:\n%s", table.String())
	if *reportDir == "" {
		return
	}
	if err := report.Write(*reportDir, run); err != nil {
		t.Error(err)
	}
}
