//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/suites"
)

// What a scenario takes beside its steps: hosts and members start, the load becomes
// steady, everything catches up and is checked.
const (
	besideSteps  = 12 * time.Second
	endlessLasts = time.Minute // as suites have it
)

// about is roughly how long a scenario takes. How long its steps take depends on machine
// and cluster.
func about(sc suites.Scenario, duration time.Duration) time.Duration {
	once := besideSteps + sc.Lasts()
	if sc.Endless {
		once = time.Duration(suites.Segments(duration))*once + cmp.Or(duration, endlessLasts)
	}
	return once.Round(time.Second)
}

// writeList shows scenarios by suite. A star marks the quick ones, a circle those in which
// the official client need not suffer.
func writeList(w io.Writer, scs []suites.Scenario) error {
	for i, suite := range suiteNames(scs) {
		of := slices.DeleteFunc(slices.Clone(scs), func(sc suites.Scenario) bool { return sc.Suite != suite })
		var total time.Duration
		for _, sc := range of {
			total += about(sc, 0)
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s, about %s\n", suite, count(len(of), "scenario"), roughly(total))
		tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, sc := range of {
			marks := ""
			if sc.Quick {
				marks += " *"
			}
			if sc.Control.NoHarm() {
				marks += " o"
			}
			fmt.Fprintf(tab, "  %s%s\t%s\t%s\t%s\n", sc.Name, marks, roughly(about(sc, 0)), strings.Join(needs(sc), ", "), sc.Does)
		}
		if err := tab.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, "\n* is quick: played by run without a pattern. o is a no-harm scenario: in all others the\n"+
		"official client has to suffer, else they fail as void. Times are for two cores, rather too long.\n"+
		"Everything needs Linux with namespaces, ip and nft. A scenario that names an etcd plays that\n"+
		"one, whatever --etcd and --etcd-version say; all others play the one that you give.")
	return err
}

// needs is what a scenario asks of the machine and of the etcd server.
func needs(sc suites.Scenario) []string {
	cfg := realetcd.Config{Members: sc.Members, Shim: sc.Shim}
	if sc.Cluster != nil {
		sc.Cluster(&cfg)
	}
	needs := []string{fmt.Sprintf("%d members", max(sc.Members, fewestMembers))}
	if cfg.Disks {
		needs = append(needs, "loop devices")
	}
	if sc.Clock {
		needs = append(needs, "the Go tool")
	}
	needs = append(needs, sc.Needs...)
	switch {
	case sc.Shim == realetcd.ShimInProcess:
		needs = append(needs, "etcd "+version.Version+", built in")
	case sc.Upgrades:
		needs = append(needs, "etcd "+sc.Version+", then "+version.Version)
	case sc.Version != "":
		needs = append(needs, "etcd "+sc.Version)
	}
	return needs
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// roughly shows a duration without what is not known anyway.
func roughly(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	default:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
}
