//go:build linux

package suites

import (
	"strings"
	"testing"
	"time"
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
