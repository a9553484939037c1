package scenario

import (
	"context"
	"slices"
	"time"
)

// Lateness is how late the machine let a goroutine of this process wake up while a
// scenario played. Everything, members and shims included, runs in this one process.
type Lateness struct{ Typical, Worst time.Duration } // median, maximum

// lag is one late waking.
type lag struct {
	woke time.Time
	late time.Duration
}

// lags are all wakings while a scenario played, in order.
type lags []lag

// measureLateness sleeps in short steps until ctx ends.
func measureLateness(ctx context.Context) lags {
	const step = 10 * time.Millisecond
	var all lags
	for {
		began := time.Now()
		if sleep(ctx, step) != nil {
			return all
		}
		now := time.Now()
		all = append(all, lag{now, now.Sub(began) - step})
	}
}

func (ls lags) summary() Lateness {
	if len(ls) == 0 {
		return Lateness{}
	}
	var late []time.Duration
	for _, l := range ls {
		late = append(late, l.late)
	}
	slices.Sort(late)
	return Lateness{Typical: late[len(late)/2], Worst: late[len(late)-1]}
}

// lagLeast is how late a waking must have been to count as a long lag.
const lagLeast = 10 * time.Millisecond

// long are the lags that were unusual, and by how much they were.
func (ls lags) long() (some lags) {
	usual := ls.summary().Typical
	for _, l := range ls {
		if l.late > lagLeast {
			some = append(some, lag{l.woke, l.late - usual})
		}
	}
	return some
}

// between is the time that the machine took away between two moments.
func (ls lags) between(from, to time.Time) (taken time.Duration) {
	for _, l := range ls {
		begin, end := l.woke.Add(-l.late), l.woke
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		taken += max(0, end.Sub(begin))
	}
	return taken
}
