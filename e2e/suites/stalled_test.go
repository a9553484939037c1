//go:build linux

package suites

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// A scenario in which the stalled leader's word is not taken by anybody shows nothing.
func TestAStalledLeaderHasToAcknowledgeWhatTheNextOneEnds(t *testing.T) {
	const led, ended = 2 * time.Second, 8 * time.Second
	sent := func(ds ...time.Duration) (all []time.Time) {
		for _, d := range ds {
			all = append(all, at(d))
		}
		return all
	}
	for _, row := range []struct {
		name string
		kept contested
		want string // part of what is missing; "" nothing is
	}{
		{"all was seen", contested{sent(time.Second, 3*time.Second, 9*time.Second), at(led), at(ended)}, ""},
		{"nobody else led", contested{acknowledged: sent(3*time.Second, 9*time.Second)}, "no other member led"},
		{"acknowledged before another led only", contested{sent(time.Second, led), at(led), at(ended)}, "after another one led"},
		{"nothing was acknowledged", contested{nil, at(led), at(ended)}, "after another one led"},
		{"the lease lived on", contested{acknowledged: sent(3*time.Second, 9*time.Second), led: at(led)}, "did not end the lease"},
		{"acknowledged while the lease lived only", contested{sent(3*time.Second, ended), at(led), at(ended)}, "had ended the lease"},
	} {
		if got := row.kept.missing(); (row.want == "") != (got == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: missing %q; want %q", row.name, got, row.want)
		}
	}
}

// What a step remarks on fails a scenario only if that looks for remarks.
func TestBrokenClaimsOfStepsFailTheirScenarios(t *testing.T) {
	for _, name := range []string{"stalled-leader-keeps-acknowledging"} {
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
