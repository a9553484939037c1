//go:build linux

package app

import (
	"time"

	"github.com/quorumwise/quorumwise/e2e/workload"
)

// clock gives times that a step of the wall clock does not shift.
type clock struct {
	start time.Time // of the process, with its monotonic reading
	zero  time.Time // durations count from here
}

func newClock(start, zero time.Time) clock {
	if zero.IsZero() {
		zero = start
	}
	return clock{start: start, zero: zero.Round(0)}
}

// wall is a time as the wall clock of the start would have shown it. t must carry
// its monotonic reading, as times of time.Now do.
func (c clock) wall(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return c.start.Add(t.Sub(c.start)).Round(0)
}

// since is how long after zero t was.
func (c clock) since(t time.Time) time.Duration { return c.wall(t).Sub(c.zero) }

func (c clock) now() time.Duration { return c.since(time.Now()) }

// ahead is how far the wall clock has been stepped since the start: what it shows now, without
// what the monotonic clock has measured.
func (c clock) ahead() time.Duration {
	now := time.Now()
	return now.Round(0).Sub(c.wall(now))
}

// load puts the times of a load's record right, and its errors into the form in
// which they cross.
func (c clock) load(r workload.Record) workload.Record {
	r.Began, r.Ended = c.wall(r.Began), c.wall(r.Ended)
	op := func(o workload.Op) workload.Op {
		o.Began, o.Ended = c.wall(o.Began), c.wall(o.Ended)
		return o
	}
	r.Gets, r.Puts = each(r.Gets, op), each(r.Puts, op)
	r.Watches = each(r.Watches, func(w workload.WatchRecord) workload.WatchRecord {
		w.Events = each(w.Events, func(e workload.Event) workload.Event { e.At = c.wall(e.At); return e })
		return w
	})
	r.Leases = each(r.Leases, func(l workload.LeaseRecord) workload.LeaseRecord {
		l.Answers = each(l.Answers, c.wall)
		l.ClosedAt = c.wall(l.ClosedAt)
		l.TTLs = each(l.TTLs, c.ttl)
		return l
	})
	return r
}

func (c clock) ttl(t workload.TTL) workload.TTL {
	t.At = c.wall(t.At)
	return t
}

func (c clock) attempt(a workload.Attempt) workload.Attempt {
	a.Began, a.Ended = c.wall(a.Began), c.wall(a.Ended)
	return a
}

func (c clock) progress(p workload.Progress) workload.Progress {
	p.LastEvent = c.wall(p.LastEvent)
	p.Waiting = each(p.Waiting, c.wall)
	p.Watches = each(p.Watches, func(w workload.WatchProgress) workload.WatchProgress { w.Last = c.wall(w.Last); return w })
	p.Leases = each(p.Leases, func(l workload.LeaseProgress) workload.LeaseProgress { l.TTL = c.ttl(l.TTL); return l })
	return p
}
