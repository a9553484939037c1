package scenario

import (
	"time"

	"github.com/quorumwise/quorumwise/e2e/workload"
)

// span is a time in which the cluster itself stood still for longer than stillMost.
type span struct{ from, to time.Time }

// spans are all such times, in order.
type spans []span

// standstills are the times without an event.
func standstills(events []workload.Event, from, to time.Time) (all spans) {
	last := from
	add := func(next time.Time) {
		if next.Sub(last) > stillMost {
			all = append(all, span{last, next})
		}
		last = next
	}
	for _, e := range events {
		if e.At.After(last) && !e.At.After(to) {
			add(e.At)
		}
	}
	add(to)
	return all
}

// between is for how long it stood still between two moments.
func (ss spans) between(from, to time.Time) (still time.Duration) {
	for _, s := range ss {
		begin, end := s.from, s.to
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		still += max(0, end.Sub(begin))
	}
	return still
}
