//go:build linux

package suites

import (
	"context"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// stallLeast is how late the machine may let the harness wake up without that being a
// reason for anything.
const stallLeast = 100 * time.Millisecond

// Stall is a time in which the machine let the harness wait.
type Stall struct{ From, To time.Time }

// measureLateness sleeps in short steps until ctx ends. It changes no bound: it tells
// whether a machine that stood still is a likely reason for a bound that was missed just then.
func measureLateness(ctx context.Context) (report.Lateness, []Stall) {
	const step = 10 * time.Millisecond
	var late []time.Duration
	var stalls []Stall
	for {
		began := time.Now()
		if sleep(ctx, step) != nil {
			return summary(late), stalls
		}
		woke := time.Now()
		by := woke.Sub(began) - step
		if late = append(late, by); by > stallLeast {
			stalls = append(stalls, Stall{began, woke})
		}
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
