//go:build linux

package suites

import (
	"slices"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// A leader that stalls tells what it has in memory only if its store does not hang as well; where a
// disk just hangs, all of the member does.
func TestOnlyTheLogsOfLeadersThatStallAreOnDisks(t *testing.T) {
	stalls := []string{"leader-disk-hangs", "stalled-leader-keeps-acknowledging"}
	for _, sc := range All() {
		var cfg realetcd.Config
		if sc.Cluster != nil {
			sc.Cluster(&cfg)
		}
		if want := slices.Contains(stalls, sc.Name); cfg.OnlyWAL != want || want && !cfg.Disks {
			t.Errorf("%s/%s: Disks %v, OnlyWAL %v; want OnlyWAL %v", sc.Suite, sc.Name, cfg.Disks, cfg.OnlyWAL, want)
		}
	}
}

// Fragments that nobody asks for, or that never come, are not tested.
func TestSomeScenarioHasEventsInFragments(t *testing.T) {
	n := 0
	for _, sc := range All() {
		var cfg app.Config
		if sc.App != nil {
			sc.App(&cfg)
		}
		if cfg.Big == 0 {
			continue
		}
		n++
		e := sound()
		if sc.Judge == nil || len(sc.Judge(e)) == 0 {
			t.Errorf("%s passes without a single fragment", sc.Name)
		}
		e.Ours.Fragments = 1
		if sc.Judge != nil && len(sc.Judge(e)) > 0 {
			t.Errorf("%s: %q, though fragments came", sc.Name, sc.Judge(e))
		}
	}
	if n == 0 {
		t.Error("no scenario writes events that come in fragments")
	}
}
