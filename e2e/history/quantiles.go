package history

import (
	"math"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// Quantiles are those of a set of durations, by nearest rank: each is a duration
// that was measured, never one between two.
func Quantiles(durations []time.Duration) report.Quantiles {
	if len(durations) == 0 {
		return report.Quantiles{}
	}
	sorted := slices.Sorted(slices.Values(durations))
	rank := func(part float64) time.Duration {
		return sorted[max(int(math.Ceil(part*float64(len(sorted)))), 1)-1]
	}
	return report.Quantiles{N: len(sorted), P50: rank(0.5), P90: rank(0.9), P99: rank(0.99), Max: rank(1)}
}
