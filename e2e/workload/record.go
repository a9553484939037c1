package workload

import (
	"time"
)

// Event is one revision as a watch delivered it.
type Event struct {
	Revision int64
	Value    string
	At       time.Time
}

// Op is one Get or Put as the application saw it.
type Op struct {
	ID       string // of a Put: the value that it carries
	Began    time.Time
	Ended    time.Time // zero: it had not returned when the load ended
	Err      error
	Revision int64 // of the store, when it succeeded
}

// Took is how long the call took; until now for one that has not returned.
func (o Op) Took(now time.Time) time.Duration {
	if o.Ended.IsZero() {
		return now.Sub(o.Began)
	}
	return o.Ended.Sub(o.Began)
}

// WatchRecord is what one watch delivered.
type WatchRecord struct {
	Name   string
	Events []Event
	Closed error // why its channel closed before the load was stopped; nil: it did not
}

// LeaseRecord is what became of one lease.
type LeaseRecord struct {
	Name     string
	ID       int64
	Answers  []time.Time // arrivals of keepalive answers
	ClosedAt time.Time   // when the keepalive channel closed early; zero: it did not
	TTLs     []TTL       // as an unaffected member saw it
}

// LostAt is when a lease was first seen to be lost; zero: it was not.
func (l LeaseRecord) LostAt() time.Time {
	lost := l.ClosedAt
	for _, ttl := range l.TTLs {
		if ttl.Remaining < 0 && (lost.IsZero() || ttl.At.Before(lost)) {
			return ttl.At
		}
	}
	return lost
}

// TTL is a lease's remaining life at one moment.
type TTL struct {
	At        time.Time
	Remaining time.Duration // whole seconds, rounded down; negative: the lease is gone
}

// Record is all that one load has seen.
type Record struct {
	Name       string
	Began      time.Time
	Ended      time.Time
	Gets, Puts []Op
	Watches    []WatchRecord
	Leases     []LeaseRecord
	StartRev   int64 // revision after which the watches began
}
