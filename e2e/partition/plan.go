package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/suites"
)

// plan is a run that can begin: all is checked and found.
type plan struct {
	scenarios []suites.Scenario
	options   suites.Options
	parallel  int
	dir       string // of the report
	kept      string // absolute path of what scenarios keep, in dir
	settings  settings
	etcd      string // version
}

// filesName is where scenarios keep evidence, in the report's directory.
const filesName = "files"

func newPlan(set settings, scs []suites.Scenario, pre prepared) (plan, error) {
	dir := set.report
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "quorumwise-partition-"); err != nil {
			return plan{}, fmt.Errorf("a directory for the report: %w; or give one with --report", err)
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return plan{}, fmt.Errorf("a directory for the report: %w", err)
	}
	set.seed = pre.Seed
	p := plan{scenarios: scs, options: set.options(pre.Binary), parallel: set.parallel, dir: dir, kept: filepath.Join(abs, filesName), settings: set, etcd: pre.Version}
	p.options.Dir = p.kept
	return p, nil
}

// lasts is about how long a scenario takes.
func (p plan) lasts(sc suites.Scenario) time.Duration { return about(sc, p.options.Duration) }

func (p plan) total() time.Duration {
	var d time.Duration
	for _, sc := range p.scenarios {
		d += p.lasts(sc)
	}
	return d / time.Duration(p.parallel)
}

// frame is the report before anything was played.
func (p plan) frame(began time.Time) report.Run {
	return report.Run{
		Command: p.settings.command(p.settings.seed, p.settings.patterns...), Seed: p.settings.seed, Began: began,
		Versions: report.Versions(p.etcd), Machine: report.Machine(),
	}
}

// write writes the report. Paths of kept files become relative to the page, so that the
// directory can be moved.
func (p plan) write(run report.Run) error {
	for i := range run.Scenarios {
		for j, f := range run.Scenarios[i].Files {
			if rel, err := filepath.Rel(filepath.Dir(p.kept), f.Path); err == nil && filepath.IsAbs(f.Path) && filepath.IsLocal(rel) {
				run.Scenarios[i].Files[j].Path = filepath.ToSlash(rel)
			}
		}
	}
	return report.Write(p.dir, run)
}
