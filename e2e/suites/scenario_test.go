//go:build linux

package suites

import (
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

func TestEveryScenarioIsComplete(t *testing.T) {
	names := make(map[string]bool)
	var quickLasts time.Duration
	for _, sc := range All() {
		if sc.Name == "" || names[sc.Name] || sc.Suite == "" || sc.Does == "" || len(sc.Steps) == 0 {
			t.Errorf("scenario %q: needs a name of its own, a suite, what it does, and steps", sc.Name)
		}
		names[sc.Name] = true
		var cut, mended bool
		for _, step := range sc.Steps {
			cut = cut || step.Mark == Inflicted
			mended = mended || step.Mark == Mended
		}
		if sc.Control == Stuck && (!cut || !mended) {
			t.Errorf("scenario %s: a control that gets stuck needs a fault and its end", sc.Name)
		}
		if sc.Budget != (Budget{}) && !cut {
			t.Errorf("scenario %s: a budget needs a fault to count from", sc.Name)
		}
		if sc.Quick {
			quickLasts += sc.Lasts()
		}
	}
	for name := range quick {
		if !names[name] {
			t.Errorf("quick names scenario %q, which does not exist", name)
		}
	}
	if most := 5 * time.Minute; quickLasts > most {
		t.Errorf("quick scenarios last %v, want at most %v: they run on every change", quickLasts, most)
	}
}

func TestScenarioLastsAsLongAsItsStepsTakeAndWait(t *testing.T) {
	sc := Scenario{Prepares: time.Second, Steps: []Step{{Takes: 2 * time.Second, Wait: 4 * time.Second}, {Wait: 8 * time.Second}, repeated("once more", 4, 4*time.Second, nil)}}
	if got, want := sc.Lasts(), 34*time.Second; got != want {
		t.Errorf("lasts %v, want %v: lists and timeouts go by it", got, want)
	}
}

func TestMatchFindsByNameSuiteAndGlob(t *testing.T) {
	for pattern, want := range map[string]int{
		"":                              len(All()),
		"follower-cut-3-sidecar":        1,
		"matrix/follower-cut-3-sidecar": 1,
		"doubles":                       len(doubles()),
		"doubles/two-cut-*":             3,
		"follower-cut-*":                6,
		"no such scenario":              0,
		"leader-freeze-3-[is]*":         2,
		"[":                             0,
	} {
		if got := Match(pattern); len(got) != want {
			t.Errorf("Match(%q) found %d scenarios, want %d", pattern, len(got), want)
		}
	}
}

// Of three members two are no minority: a scenario that hurts two keeps its five.
func TestMembersOfTheRunCountUnlessTheyAreTooFew(t *testing.T) {
	for _, row := range []struct {
		members, run int
		second       bool
		want         int
	}{
		{0, 0, false, 3}, {5, 0, false, 5}, {0, 5, false, 5}, {5, 3, false, 3}, {3, 7, false, 7},
		{5, 0, true, 5}, {5, 3, true, 5}, {5, 4, true, 5}, {0, 3, true, 3}, {5, 5, true, 5}, {5, 7, true, 7}, {3, 5, true, 5},
	} {
		sc := Scenario{Name: "made-up", Members: row.members, Second: row.second}
		if got := sc.with(Options{Members: row.run}).Members; got != row.want {
			t.Errorf("%d members, two are hurt: %v, --members %d: %d are played; want %d", row.members, row.second, row.run, got, row.want)
		}
	}
}

func TestScenarioWithoutAFaultIsGroupedByItsName(t *testing.T) {
	for fault, want := range map[string]string{"": "made-up", "cut": "cut"} {
		if got := (Scenario{Name: "made-up", Fault: fault}).with(Options{}).Fault; got != want {
			t.Errorf("fault %q: grouped by %q; want %q", fault, got, want)
		}
	}
}

func TestMain(m *testing.M) {
	Register()
	nethosts.TestMain(m)
}
