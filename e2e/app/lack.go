//go:build linux

package app

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumwise/quorumwise/e2e/history"
)

// LackError says that a part of an application's load was switched on and recorded
// nothing. A record without it has nothing wrong in it, and shows nothing.
type LackError struct {
	App   string
	Lacks []string
	Log   string
}

func (e *LackError) Error() string {
	return fmt.Sprintf("app %s: its record has no %s, and that was asked for: it cannot be judged (log: %s)", e.App, strings.Join(e.Lacks, ", no "), e.Log)
}

// ranEnough is how long a load must have run until every part of it has done something,
// also on a busy machine. It started on members that all served.
const ranEnough = 2 * time.Second

// lacks lists what a record must hold with these settings and does not.
func (c Config) lacks(rec Record) []string {
	var lacks []string
	need := func(wanted, there bool, what string) {
		if wanted && !there {
			lacks = append(lacks, what)
		}
	}
	need(true, rec.Leaks.Goroutines[0] > 0, "count of goroutines")
	need(true, rec.Leaks.Descriptors[0] > 0, "count of open files")
	need(true, !rec.Load.Began.IsZero() && rec.Load.Ended.After(rec.Load.Began), "begin and end of the load")
	if rec.Load.Ended.Sub(rec.Load.Began) < ranEnough {
		return lacks
	}
	c.lacksOfLoad(rec, need)
	need(c.Histories, done(rec.Histories, false), "operation of the histories that was done")
	need(c.Big > 0, done(rec.Histories, true), "big transaction that was done")
	need(c.Big > 0, rec.Fragments > 0 || overwritten(rec.Histories) < 2, "fragment of a big transaction's event")
	need(c.Locks, slices.ContainsFunc(rec.Sections, func(s history.Section) bool { return s.Entered > 0 }), "mutex that was entered")
	need(c.Elections, slices.ContainsFunc(rec.Reigns, func(r history.Reign) bool { return r.Elected > 0 }), "leader that was elected")
	need(c.Counters, slices.ContainsFunc(rec.Counts, func(n history.Count) bool { return len(n.Acked) > 0 }), "increment of a counter that was acknowledged")
	for _, w := range c.wanted() {
		name := c.Name + "/" + w.name
		need(true, slices.ContainsFunc(rec.Streams, func(s history.Stream) bool { return s.Name == name }), "watch "+name)
	}
	need(len(c.wanted()) > 0, slices.ContainsFunc(rec.Streams, func(s history.Stream) bool { return len(s.Responses) > 0 }), "answer of any of these watches")
	return lacks
}

// lacksOfLoad is lacks of what every application does.
func (c Config) lacksOfLoad(rec Record, need func(wanted, there bool, what string)) {
	events, looks := false, false
	for _, w := range rec.Load.Watches {
		events = events || len(w.Events) > 0
	}
	for _, l := range rec.Load.Leases {
		looks = looks || len(l.TTLs) > 0
	}
	need(true, events, "event on any watch of the load")
	need(true, looks, "time to live of any lease")
	need(!c.Quiet, len(rec.Load.Gets) > 0, "Get")
	need(!c.Quiet, len(rec.Load.Puts) > 0, "Put")
	need(true, len(rec.Attempts) > 0, "attempt in its trace")
	need(!c.Official, len(rec.Grades) > 0, "grade of an endpoint")
}

// overwritten counts the big transactions before which another one was done: their events
// have the values before them too, and do not fit into one response.
func overwritten(ops []history.Op) int {
	n := 0
	for _, op := range ops {
		if op.Caller == bigCaller && op.Outcome == history.Done {
			n++
		}
	}
	return max(0, n-1)
}

// done says whether any operation was done: of the writer of big transactions, or of
// the others.
func done(ops []history.Op, big bool) bool {
	return slices.ContainsFunc(ops, func(op history.Op) bool { return op.Outcome == history.Done && (op.Caller == bigCaller) == big })
}
