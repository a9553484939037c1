package history

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorumwise/quorumwise/e2e/report"
)

func TestQuantilesAreMeasuredDurations(t *testing.T) {
	const ms = time.Millisecond
	hundred := make([]time.Duration, 100)
	for i, n := range rand.Perm(100) {
		hundred[i] = time.Duration(n+1) * ms
	}
	for _, c := range []struct {
		name string
		in   []time.Duration
		want report.Quantiles
	}{
		{"none", nil, report.Quantiles{}},
		{"one", []time.Duration{3 * ms}, report.Quantiles{N: 1, P50: 3 * ms, P90: 3 * ms, P99: 3 * ms, Max: 3 * ms}},
		{"two", []time.Duration{9 * ms, 3 * ms}, report.Quantiles{N: 2, P50: 3 * ms, P90: 9 * ms, P99: 9 * ms, Max: 9 * ms}},
		{"hundred", hundred, report.Quantiles{N: 100, P50: 50 * ms, P90: 90 * ms, P99: 99 * ms, Max: 100 * ms}},
	} {
		if diff := cmp.Diff(c.want, Quantiles(c.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestQuantilesLeaveTheirInputAlone(t *testing.T) {
	in := []time.Duration{3, 1, 2}
	Quantiles(in)
	if diff := cmp.Diff([]time.Duration{3, 1, 2}, in); diff != "" {
		t.Errorf("the caller's durations were sorted (-want +got):\n%s", diff)
	}
}
