//go:build linux

package suites

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
)

// shim has a member's shim say something from a moment on.
func (e *Evidence) shim(member string, d time.Duration, says string) {
	e.sample(d, member, realetcd.Quorum)
	e.Samples[len(e.Samples)-1].Shim = says
}

// spared is evidence of a scenario that harms nobody, and in which nobody suffers anything.
func spared(name string) *Evidence {
	e := unnoticed()
	e.Scenario = Match(name)[0]
	e.Cut, e.Heal, e.Hurts = time.Time{}, time.Time{}, nil
	e.Acted = at(cutAt)
	return e
}

// hurtShim has something be done to m2's shim while the fault lasts.
func (e *Evidence) hurtShim(what string) {
	e.Hurts = []Hurt{{Member: "m2", What: what, Effect: Spares, From: at(cutAt), To: at(healedAt)}}
}

// A scenario that harms nobody is void where nothing was done.
func TestWhatHarmsNobodyMustBeSeen(t *testing.T) {
	const frozen, killed, rolled, slow, late = "follower-freeze-shim-3-sidecar", "leader-kill-shim-3-sidecar", "shim-rolled-out", "all-slow-together", "all-answers-late"
	allLate := func(e *Evidence) {
		for _, m := range e.Members {
			e.Hurts = append(e.Hurts, Hurt{Member: m.Name, What: "answers-late", Effect: Slows, From: at(cutAt), To: at(healedAt)})
		}
	}
	rollOut := func(e *Evidence) {
		for i, m := range e.Members {
			e.shim(m.Name, loadBegins, realetcd.ShimAbsent)
			e.shim(m.Name, cutAt+time.Duration(i)*time.Second, realetcd.ShimSilent)
			e.shim(m.Name, cutAt+time.Duration(i)*time.Second+time.Millisecond, realetcd.ShimServing)
		}
	}
	for _, row := range []struct {
		name, scenario string
		plant          func(*Evidence)
		want           report.Status
		says           string
	}{
		{"a shim is not frozen", frozen, func(e *Evidence) { e.hurtShim("freeze-shim") }, report.Void, "nobody noticed anything of freeze-shim on m2"},
		{"a shim is frozen", frozen, func(e *Evidence) {
			e.hurtShim("freeze-shim")
			e.shim("m2", cutAt+time.Second, realetcd.ShimSilent)
		}, report.Passed, ""},
		{"another shim is frozen", frozen, func(e *Evidence) {
			e.hurtShim("freeze-shim")
			e.shim("m3", cutAt+time.Second, realetcd.ShimSilent)
		}, report.Void, "nobody noticed"},
		{"a shim is frozen after the fault", frozen, func(e *Evidence) {
			e.hurtShim("freeze-shim")
			e.shim("m2", healedAt+time.Millisecond, realetcd.ShimSilent)
		}, report.Void, "nobody noticed"},
		{"a shim was never there", frozen, func(e *Evidence) {
			e.hurtShim("freeze-shim")
			e.shim("m2", loadBegins, realetcd.ShimAbsent)
		}, report.Void, "nobody noticed"},
		{"a shim is not frozen, and the official client is stuck", frozen, func(e *Evidence) {
			e.hurtShim("freeze-shim")
			e.waitingControl(4*time.Second, 8*time.Second)
		}, report.Void, "nobody noticed"},
		{"a shim is not killed", killed, func(e *Evidence) { e.hurtShim("kill-shim") }, report.Void, "nobody noticed anything of kill-shim on m2"},
		{"a shim is killed", killed, func(e *Evidence) {
			e.hurtShim("kill-shim")
			e.shim("m2", cutAt+time.Millisecond, realetcd.ShimAbsent)
		}, report.Passed, ""},
		{"shims stay", rolled, func(*Evidence) {}, report.Void, "m1 was not seen without a shim"},
		{"shims are rolled out", rolled, rollOut, report.Passed, ""},
		{"one shim stays", rolled, func(e *Evidence) {
			rollOut(e)
			e.Samples = slices.DeleteFunc(e.Samples, func(s realetcd.Sample) bool { return s.Member == "m3" && s.Shim == realetcd.ShimAbsent })
		}, report.Void, "m3 was not seen without a shim"},
		{"one shim never comes", rolled, func(e *Evidence) {
			rollOut(e)
			e.Samples = slices.DeleteFunc(e.Samples, func(s realetcd.Sample) bool {
				return s.Member == "m3" && s.Shim == realetcd.ShimServing && s.At.After(at(loadBegins))
			})
		}, report.Void, "m3 was not seen without a shim"},
		{"members are not slow", slow, func(*Evidence) {}, report.Void, "nobody noticed that all members were late"},
		{"members are not slow enough", slow, func(e *Evidence) { e.waitingControl(4*time.Second, 5200*time.Millisecond) }, report.Void, "waited for 1.2s at most, want at least 1.25s"},
		{"members are slow", slow, func(e *Evidence) { e.waitingControl(4*time.Second, 5300*time.Millisecond) }, report.Passed, ""},
		{"answers are not late", late, allLate, report.Void, "nobody noticed that all members were late"},
		{"answers were late before", late, func(e *Evidence) { allLate(e); e.waitingControl(1*time.Second, 2900*time.Millisecond) }, report.Void, "nobody noticed that all members were late"},
		{"answers are late", late, func(e *Evidence) { allLate(e); e.waitingControl(4*time.Second, 6500*time.Millisecond) }, report.Passed, ""},
		{"leadership stays", "leadership-transferred-10-times", func(*Evidence) {}, report.Void, "none came to another term"},
		{"leadership is handed over", "leadership-transferred-10-times", func(e *Evidence) { e.elect(5 * time.Second) }, report.Passed, ""},
	} {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			e := spared(row.scenario)
			row.plant(e)
			v := e.Judge()
			if v.Status != row.want || !strings.Contains(v.Reason, row.says) {
				t.Errorf("judged %s (%s, %q), want %s that says %q", v.Status, v.Reason, v.Violations, row.want, row.says)
			}
		})
	}
}

// What harms nobody, and says nothing of its own about what was done, would pass where it was not.
func TestEveryScenarioThatHarmsNobodyCanBeVoid(t *testing.T) {
	for _, sc := range All() {
		if sc.Control != Unharmed || sc.Clock { // a clock that does not step is an error
			continue
		}
		e := spared(sc.Suite + "/" + sc.Name)
		if strings.HasSuffix(sc.Fault, "-shim") {
			e.hurtShim(sc.Fault)
		}
		if e.unfelt() == "" {
			t.Errorf("%s/%s passes although nothing is done", sc.Suite, sc.Name)
		}
	}
}
