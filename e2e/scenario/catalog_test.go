package scenario

import (
	"testing"
	"time"
)

func TestEveryScenarioIsComplete(t *testing.T) {
	names := make(map[string]bool)
	var quick time.Duration
	for _, sc := range All() {
		if sc.Name == "" || names[sc.Name] || sc.Does == "" || len(sc.Steps) == 0 {
			t.Errorf("scenario %q: needs a name of its own, what it does, and steps", sc.Name)
		}
		names[sc.Name] = true
		var cut, mended bool
		for _, step := range sc.Steps {
			cut = cut || step.Mark == Fault
			mended = mended || step.Mark == Mended
		}
		if sc.Control == Stuck && (!cut || !mended || sc.Budget == Budget{} || sc.Target == Nobody) {
			t.Errorf("scenario %s: a control that gets stuck needs a fault, its end, a member and a budget", sc.Name)
		}
		if sc.Quick {
			quick += sc.Lasts()
		}
	}
	if most := 80 * time.Second; quick > most {
		t.Errorf("quick scenarios wait %v, want at most %v: they run on every change", quick, most)
	}
}
