package scenario

import (
	"context"
	"slices"
	"time"
)

// Lateness is how late the machine let a goroutine of this process wake up while a
// scenario played. It changes no bound: it tells whoever reads a missed budget
// whether a starved machine is a likely reason. Everything, members and shims
// included, runs in this one process.
type Lateness struct{ Typical, Worst time.Duration } // median, maximum

// measureLateness sleeps in short steps until ctx ends.
func measureLateness(ctx context.Context) Lateness {
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

func summary(late []time.Duration) Lateness {
	if len(late) == 0 {
		return Lateness{}
	}
	slices.Sort(late)
	return Lateness{Typical: late[len(late)/2], Worst: late[len(late)-1]}
}
