//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// opening says what is about to be played, and with what.
func opening(p plan) []string {
	what := count(len(p.scenarios), "scenario")
	if len(p.settings.patterns) == 0 {
		what += ", the quick ones"
	}
	return []string{
		fmt.Sprintf("%s, about %s, on etcd %s (%s)", what, roughly(p.total()), p.etcd, p.options.Binary),
		fmt.Sprintf("seed %d; report and log in %s", p.options.Seed, p.dir),
	}
}

// closing says how it went, where to read on, and how to play it again.
func closing(p plan, run report.Run) []string {
	b := newBoard(0, run.Began)
	for _, sc := range run.Scenarios {
		b.counts[sc.Status]++
	}
	so := b.soFar()
	if so == "" {
		so = "nothing was played"
	}
	lines := []string{""}
	if run.Ended != "" {
		lines = append(lines, run.Ended+"; everything is stopped and removed")
	}
	return append(lines,
		fmt.Sprintf("%s in %s", so, run.Took.Round(time.Second)),
		"report: "+filepath.Join(p.dir, report.PageName),
		"repeat: "+run.Command)
}
