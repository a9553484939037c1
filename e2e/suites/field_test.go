//go:build linux

package suites

import (
	"testing"

	"github.com/quorumwise/quorumwise/e2e/app"
)

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
