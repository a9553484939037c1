//go:build linux

package suites

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// plays is how often a scenario is played at most while the machine is too late to tell.
const plays = 3

// player plays a scenario once.
type player func(context.Context, Scenario, Options) (report.Scenario, error)

// again plays a scenario anew that is void on a machine that was late. What is judged
// stays the same: each time all has to hold, or the machine has to be late once more. The
// report is the last one, and remarks on those before.
func again(play player) player {
	return func(ctx context.Context, sc Scenario, opts Options) (report.Scenario, error) {
		began := time.Now()
		var before []string
		for n := 1; ; n++ {
			r, err := play(ctx, sc, opts)
			if err != nil || r.Status != report.Void || r.Lateness.Worst <= lateMost || n == plays {
				r.Notes, r.Took = slices.Concat(before, r.Notes), time.Since(began)
				return r, err
			}
			text := fmt.Sprintf("played again: time %d was void, on a machine that was late by up to %s", n, shown(r.Lateness.Worst))
			before = append(before, text+": "+r.Reason)
			for _, note := range r.Notes {
				before = append(before, fmt.Sprintf("time %d: %s", n, note))
			}
			opts.tell(Progress{Scenario: sc.Name, At: time.Since(began), Text: text, Again: true})
		}
	}
}
