//go:build linux

package app

import (
	"sync"
	"time"
)

// desk counts what returns, and files what failed. All parts of the load report to
// it.
type desk struct {
	clock clock

	mu       sync.Mutex
	counts   tally
	failures []Failure
}

// tally is how often things were done without an error.
type tally struct {
	ops, locked, elected, counted, failed int
	last                                  time.Time // of them, without an error
}

// part is which count a call belongs to.
type part int

const (
	ofHistory part = iota + 1
	ofLock
	ofElection
	ofCounter
	ofNothing // counted only where it fails
)

// file counts a call that has returned.
func (d *desk) file(p part, class string, began time.Time, err error) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	switch p {
	case ofHistory:
		d.counts.ops++
	case ofLock:
		d.counts.locked++
	case ofElection:
		d.counts.elected++
	case ofCounter:
		d.counts.counted++
	case ofNothing:
	}
	if err == nil {
		d.counts.last = now
		return
	}
	d.counts.failed++
	d.failures = append(d.failures, Failure{At: d.clock.wall(now), Took: now.Sub(began), Class: class, Err: Crossing(err)})
}

func (d *desk) tally() tally {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

func (d *desk) all() []Failure {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failures
}
