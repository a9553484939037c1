package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorumwise/quorumwise/e2e/scenario"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

func cutOutcome() (scenario.Scenario, scenario.Outcome) {
	sc := scenario.Scenario{Name: "follower-cut", Target: scenario.Follower}
	return sc, scenario.Outcome{
		Ours:         workload.Figures{Silence: ms(610), GetMax: ms(250), PutsUnknown: 2, Leases: 3, LastStream: ms(540)},
		Control:      workload.Figures{Silence: ms(9100), GetMax: ms(9140), GetsFailed: 2, PutsUnknown: 4, Leases: 3, LeasesLost: 1, LastStream: workload.Never},
		ControlStuck: "lease lost",
	}
}

func TestResultComparesBothClients(t *testing.T) {
	sc, out := cutOutcome()
	got := drawn(result(sc, out, [2]aside{{calls: 2916}, {calls: 1174, slow: 11}}, 80))
	want := `
what                           official client  quorumwise
longest silence of a watch               9.1 s       0.6 s
longest Get                              9.1 s       0.2 s
calls that took more than 1 s               11           0
Gets that failed                             2           0
Puts of unknown outcome                      4           2
Puts that failed otherwise                   0           0
leases                             LOST 1 of 3  all 3 kept
calls that returned                       1174        2916
last stream moved after                  never      0.54 s

PASSED: quorumwise moved on within 0.54 s: no read failed, no lease was lost, no event was missed. The official client got stuck: lease lost.
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestNarrowResultLosesNothing(t *testing.T) {
	sc, out := cutOutcome()
	got := drawn(compared(figures(sc, out, [2]aside{{calls: 2916}, {calls: 1174, slow: 11}})[:2], 46))
	want := `longest silence of a watch
  official 9.1 s, quorumwise 0.6 s
longest Get
  official 9.1 s, quorumwise 0.2 s
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestVerdictSaysWhyNotInPlainWords(t *testing.T) {
	sc, out := cutOutcome()
	for _, c := range []struct {
		name   string
		change func()
		want   string
	}{
		{"a promise broken", func() { out.Violations = []string{"2 of 90 Gets failed"} }, "FAILED: quorumwise did not keep its promises:\n  - 2 of 90 Gets failed\n"},
		{"on a busy machine", func() { out.Lateness.Worst = ms(800) }, "FAILED: quorumwise did not keep its promises:\n  - 2 of 90 Gets failed\n" +
			"The machine was too busy to judge by: work of this process began up to 0.8 s late. Try again when it is quiet.\n"},
		{"nothing to survive", func() { out.Violations, out.Lateness.Worst, out.Void = nil, 0, "the official client was not stuck" },
			"NOTHING SHOWN: the official client was not stuck\n"},
		{"nobody was bad", func() { out.Void, sc.Control = "", scenario.Unharmed },
			"PASSED: no member was bad and quorumwise moved no stream: no read failed, no lease was lost, no event was missed.\n"},
		{"nothing expected", func() { sc.Control = scenario.Open },
			"PASSED: with quorumwise no read failed, no lease was lost, no event was missed.\n"},
	} {
		c.change()
		got := drawn(verdict(sc, out))
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		if passed := strings.HasPrefix(got, "PASSED"); passed != out.OK() {
			t.Errorf("%s: the verdict begins with %.10q, and the exit status says OK = %v", c.name, got, out.OK())
		}
	}
}
