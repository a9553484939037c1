//go:build linux

package app

import (
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/workload"
)

func TestTimesAreThoseOfTheMonotonicClock(t *testing.T) {
	start := time.Now()
	later := start.Add(1500 * time.Millisecond) // keeps the monotonic reading
	c := newClock(start, start.Add(-10*time.Second).Round(0))
	if got, want := c.since(later), 11500*time.Millisecond; got != want {
		t.Errorf("since zero: %v, want %v", got, want)
	}
	if got := c.wall(later); got != later.Round(0) {
		t.Errorf("wall(%v) = %v; want the same moment without its monotonic reading", later, got)
	}
	if !c.wall(time.Time{}).IsZero() {
		t.Error("no time became one")
	}
	if c := newClock(start, time.Time{}); c.since(start) != 0 {
		t.Errorf("without a zero, the start is at %v, want 0", c.since(start))
	}
}

func TestWallClockThatNobodySteppedIsNotAhead(t *testing.T) {
	if ahead := newClock(time.Now(), time.Time{}).ahead(); ahead.Abs() > time.Second {
		t.Errorf("it is %v ahead, want 0", ahead)
	}
}

// Every time of a load's record goes through the clock: none keeps a monotonic
// reading, which would show that it was forgotten.
func TestNoTimeOfALoadIsForgotten(t *testing.T) {
	now := time.Now()
	c := newClock(now, time.Time{})
	r := c.load(workload.Record{
		Began: now, Ended: now,
		Gets:    []workload.Op{{Began: now, Ended: now}},
		Puts:    []workload.Op{{Began: now, Ended: now}},
		Watches: []workload.WatchRecord{{Events: []workload.Event{{At: now}}}},
		Leases:  []workload.LeaseRecord{{Answers: []time.Time{now}, ClosedAt: now, TTLs: []workload.TTL{{At: now}}}},
	})
	p := c.progress(workload.Progress{
		LastEvent: now, Waiting: []time.Time{now}, Watches: []workload.WatchProgress{{Last: now}},
		Leases: []workload.LeaseProgress{{TTL: workload.TTL{At: now}}},
	})
	a := c.attempt(workload.Attempt{Began: now, Ended: now})
	for what, at := range map[string]time.Time{
		"begin": r.Began, "end": r.Ended, "get's begin": r.Gets[0].Began, "get's end": r.Gets[0].Ended, "put's begin": r.Puts[0].Began,
		"put's end": r.Puts[0].Ended, "event": r.Watches[0].Events[0].At, "keepalive": r.Leases[0].Answers[0], "closing": r.Leases[0].ClosedAt,
		"time to live": r.Leases[0].TTLs[0].At, "last event": p.LastEvent, "waiting": p.Waiting[0], "watch's last": p.Watches[0].Last,
		"lease's time to live": p.Leases[0].TTL.At, "attempt's begin": a.Began, "attempt's end": a.Ended,
	} {
		if at != now.Round(0) {
			t.Errorf("%s is %v, want %v as the wall clock of the start shows it", what, at, now.Round(0))
		}
	}
}
