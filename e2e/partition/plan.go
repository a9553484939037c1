//go:build linux

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
	settings  settings
	etcd      string // version
}

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
	p := plan{scenarios: scs, options: set.options(pre.Binary), parallel: set.parallel, dir: dir, settings: set, etcd: pre.Version}
	p.options.Dir = filepath.Join(abs, report.FilesName)
	return p, nil
}

// lasts is about how long a scenario takes.
func (p plan) lasts(sc suites.Scenario) time.Duration { return about(sc, p.options.Duration) }

// overtime is how much longer than its waits a scenario may take before it is ended: a
// hundred elections take ten minutes on a slow machine.
const overtime = 30 * time.Minute

// limit is how long a scenario may take: each of its parts may have to be played again.
func (p plan) limit(sc suites.Scenario) time.Duration { return suites.Plays*p.lasts(sc) + overtime }

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
