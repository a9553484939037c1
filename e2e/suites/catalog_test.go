//go:build linux

package suites

import (
	"slices"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// fieldCases are those that these suites replay. Others are tested beside the package
// that they are about.
var fieldCases = []string{"F3", "F4", "F6", "F7", "F8", "F9", "F10", "F11", "F13", "F14", "F15", "F16", "F18", "F30"}

func TestEveryFieldCaseHasAScenario(t *testing.T) {
	var played []string
	for _, sc := range All() {
		played = append(played, sc.Field...)
	}
	for _, f := range fieldCases {
		if !slices.Contains(played, f) {
			t.Errorf("no scenario replays %s", f)
		}
	}
	for _, f := range played {
		if !slices.Contains(fieldCases, f) {
			t.Errorf("a scenario says that it replays %s, which is not in the list", f)
		}
	}
}

// A fault that is still there at the end would be taken for what the client did.
func TestEveryFaultIsHealedBeforeTheEnd(t *testing.T) {
	for _, sc := range All() {
		if sc.Name == "attached-member-removed" {
			continue // a member that was removed does not come back
		}
		hurt := false
		for _, step := range sc.Steps {
			switch step.Mark {
			case Inflicted:
				hurt = true
			case Mended:
				hurt = false
			case Plain, Noted:
			}
		}
		if hurt {
			t.Errorf("%s/%s ends with its fault: want a last step that heals", sc.Suite, sc.Name)
		}
	}
}

func TestEveryVersionPlaysTheCore(t *testing.T) {
	of := make(map[string]int)
	for _, sc := range versions() {
		of[sc.Version]++
	}
	for _, v := range minors {
		if want := 2 * (len(core) + 1); of[v] != want {
			t.Errorf("etcd %s is in %d scenarios, want %d", v, of[v], want)
		}
	}
	if !slices.Contains(minors, previousMinor) {
		t.Errorf("clusters are upgraded from %s, which no scenario plays", previousMinor)
	}
}

func TestRepeatedElectionsAreAHundred(t *testing.T) {
	for _, name := range []string{"leaders-killed-100-times", "leadership-transferred-100-times"} {
		if len(Match(name)) != 1 {
			t.Errorf("there is no scenario %s", name)
		}
	}
}

// What a step remarks on fails a scenario only if that looks for remarks.
func TestBrokenClaimsOfStepsFailTheirScenarios(t *testing.T) {
	for _, name := range []string{
		"cut-until-a-snapshot", "defragmented-online", "herd", "members-replaced", "stalled-leader-keeps-acknowledging",
		"unlock-on-a-cut-member", "upgraded-from-previous-minor",
	} {
		scs := Match("*/" + name)
		if len(scs) != 1 {
			t.Fatalf("%d scenarios are named %s; want one", len(scs), name)
		}
		e := sound()
		e.Marks = []report.Mark{{Text: brokenClaim + "it does not hold"}}
		if scs[0].Judge == nil || len(scs[0].Judge(e)) == 0 {
			t.Errorf("%s passes though a claim of its steps does not hold", name)
		}
	}
}
