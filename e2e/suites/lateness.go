//go:build linux

package suites

import (
	"context"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// measureLateness sleeps in short steps until ctx ends. It changes no bound: it tells
// whoever reads a missed budget whether a starved machine is a likely reason.
func measureLateness(ctx context.Context) report.Lateness {
	const step = 10 * time.Millisecond
	var late []time.Duration
	for {
		began := time.Now()
		if sleep(ctx, step) != nil {
			return summary(late)
		}
		late = append(late, time.Since(began)-step)
	}
}

func summary(late []time.Duration) report.Lateness {
	if len(late) == 0 {
		return report.Lateness{}
	}
	slices.Sort(late)
	return report.Lateness{Typical: late[len(late)/2], Worst: late[len(late)-1]}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
