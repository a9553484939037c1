//go:build linux

package suites

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// Plays is how often a scenario is played at most while it is void by bad luck.
const Plays = 3

// player plays a scenario, again where that is needed.
type player func(context.Context, Scenario, Options) (report.Scenario, error)

// again plays a scenario anew that is void, or did not start, by bad luck. What is judged stays the same: each
// time all has to hold, or there has to be bad luck once more. The report is the last
// one, and remarks on those before.
func again(once func(context.Context, Scenario, Options) (r report.Scenario, luck bool, err error)) player {
	return func(ctx context.Context, sc Scenario, opts Options) (report.Scenario, error) {
		began := time.Now()
		var before []string
		for n := 1; ; n++ {
			r, luck, err := once(ctx, sc, opts)
			if err != nil || !luck || n == Plays {
				r.Notes, r.Took = slices.Concat(before, r.Notes), time.Since(began)
				return r, err
			}
			text := fmt.Sprintf("played again, for it was %s: %s", r.Status, r.Reason)
			before = append(before, fmt.Sprintf("time %d: %s", n, text))
			for _, note := range r.Notes {
				before = append(before, fmt.Sprintf("time %d: %s", n, note))
			}
			opts.tell(Progress{Scenario: sc.Name, At: time.Since(began), Text: text, Again: true})
		}
	}
}
