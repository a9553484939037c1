//go:build linux

package suites

import (
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// tidy checks that an application left nothing behind.
func (e *Evidence) tidy(rec app.Record) []string {
	var bad lines
	l := rec.Leaks
	if l.Goroutines[1] > l.Goroutines[0] {
		bad.add("%d goroutines before the client was made and %d after it was closed:\n%s", l.Goroutines[0], l.Goroutines[1], l.Stacks)
	}
	if l.Descriptors[1] > l.Descriptors[0] {
		bad.add("%d open files before the client was made and %d after it was closed", l.Descriptors[0], l.Descriptors[1])
	}
	if len(l.Connections) > 0 {
		bad.add("connections are left after the client was closed: %v", l.Connections)
	}
	if n := e.Connected[rec.Name]; n > 0 {
		bad.add("members still hold %d connections of the application's host after it ended", n)
	}
	if open := unended(rec); len(open) > 0 {
		first := open[0]
		bad.add("%d calls and streams did not end when the client was closed, the first %s on %s from %s", len(open), first.Method, e.member(first.Address), e.clock(first.Began))
	}
	return append(bad, e.doubled(rec)...)
}

// unended are the calls and streams that were open after the client was closed.
func unended(rec app.Record) (open []workload.Attempt) {
	for _, a := range rec.Attempts {
		if a.Ended.IsZero() {
			open = append(open, a)
		}
	}
	return open
}

// doubled checks that no more streams stood when the load ended than when it had begun: one for
// each watch that has a name, one for each lease and each session. A client that opens a stream
// elsewhere and forgets the one before would have two.
func (e *Evidence) doubled(rec app.Record) []string {
	var bad lines
	watches, leases := make(map[string]int), 0
	for _, a := range standing(rec) {
		switch {
		case a.Method == workload.MethodKeepAlive:
			leases++
		case a.Watch != "": // a recipe's has none, and comes and goes
			watches[a.Watch]++
		}
	}
	for _, name := range sorted(watches) {
		if n := watches[name]; n > 1 {
			bad.add("watch stream %s stood %d times when the load ended; want it once", name, n)
		}
	}
	if most := len(rec.Load.Leases) + rec.Sessions; leases > most {
		bad.add("%d keepalive streams stood when the load ended; want at most %d, one for each of %d leases and %d sessions", leases, most, len(rec.Load.Leases), rec.Sessions)
	}
	return bad
}

// overlap is how long a stream that is moved may stand twice.
const overlap = time.Second

// standing are the streams that were open all through the end of the load.
func standing(rec app.Record) (streams []workload.Attempt) {
	from, to := rec.Load.Ended.Add(-overlap), rec.Load.Ended
	for _, a := range rec.Attempts {
		if a.Stream() && !a.Began.After(from) && (a.Ended.IsZero() || !a.Ended.Before(to)) {
			streams = append(streams, a)
		}
	}
	return streams
}
