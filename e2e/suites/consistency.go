//go:build linux

package suites

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

const (
	// searchMost bounds the search for an order of one application's operations.
	searchMost = 30 * time.Second
	// idleMost is how long a free mutex, or an election without a leader, may stand
	// with somebody who wants it, besides the time to live of the last holder's lease
	// and the longer of two: the time in which nothing could be written at all, and that
	// in which the machine stood still meanwhile.
	idleMost = 3 * time.Second
)

// consistency is what must hold whatever happens, and does not.
type consistency struct {
	violations   []string
	excused      int    // arrivals beyond the first
	undecided    string // why the search for an order came to no end; "" it did
	illustration []byte
}

// consistent compares what an application saw with what really happened, up to the revision
// for which its watches were waited: a write that was given up may still be applied after
// that.
func (e *Evidence) consistent(name string, rec app.Record) (c consistency) {
	if why := e.Died[name]; why != "" {
		c.violations = append(c.violations, "the application died: "+why)
		return c // there is no record
	}
	want := workload.Between(e.History.Events, rec.Load.StartRev, e.Upto)
	for _, w := range rec.Load.Watches {
		c.add(workload.CheckWatch(w.Name, workload.Between(w.Events, rec.Load.StartRev, e.Upto), want))
		if w.Closed != nil {
			c.add([]string{"watch " + w.Name + ": " + w.Closed.Error()})
		}
	}
	c.add(e.kept(rec))
	c.add(resent(rec))
	arrived, excused := e.arrivals(rec)
	c.excused = excused
	c.add(workload.CheckOnce(rec.Load.Puts, e.History.Applied, telling(arrived, written(app.Record{Load: rec.Load}))))
	c.add(workload.CheckReads(rec.Load.Gets, rec.Load.Puts))
	for _, s := range rec.Streams {
		c.add(history.CheckStream(s, e.Truth))
	}
	c.add(history.CheckOnce(rec.Histories, e.Truth, telling(arrived, written(app.Record{Histories: rec.Histories}))))
	truth := e.Truth
	truth.Pauses, truth.Still = e.pauses(rec.Zero), e.still()
	c.add(history.CheckLocks(rec.Sections, truth, e.freeMost()))
	c.add(history.CheckElections(rec.Reigns, truth, e.freeMost()))
	c.add(e.resumed(rec))
	c.add(history.CheckCounters(rec.Counts, e.Truth))
	linear := history.Linearizable(rec.Histories, e.Truth, searchMost)
	c.add(linear.Violations)
	c.illustration = linear.Illustration
	if !linear.Decided {
		c.undecided = "the search for an order of the operations of " + name + " came to no end within " + searchMost.String()
	}
	return c
}

// written are the values that only one mutation of an application puts. Counters, mutexes and
// elections put the same ones again.
func written(rec app.Record) (values []string) {
	for _, p := range rec.Load.Puts {
		values = append(values, p.ID)
	}
	for _, op := range rec.Histories {
		values = append(values, op.Values...)
	}
	return values
}

// sent is how often the message of a mutation went out, and how often of these gRPC itself had it
// go out once more. Of the first time it does not matter: the try before it never went out.
type sent struct{ times, again int }

// sentBy counts by value. Attempts are in order of their begin.
func sentBy(rec app.Record) map[string]sent {
	all := make(map[string]sent)
	for _, a := range rec.Attempts {
		for _, v := range a.Values {
			s := all[v]
			if s.times++; a.Again && s.times > 1 {
				s.again++
			}
			all[v] = s
		}
	}
	return all
}

// resent says which mutations a client sent more often than once by its own doing, whether or
// not they arrived.
func resent(rec app.Record) []string {
	var bad lines
	all := sentBy(rec)
	for _, v := range written(rec) {
		if s := all[v]; s.times-s.again > 1 {
			bad.add("%s was sent %d times, and %d of these by gRPC itself: a mutation was sent again", v, s.times, s.again)
		}
	}
	return bad
}

// arrivals are the counts without as many beyond the first as gRPC itself sent again, because
// a server had said that it had not processed them: on the wire they came twice. What went out
// once has nothing to be excused, and members of the in-process kind count what they process.
func (e *Evidence) arrivals(rec app.Record) (counts map[string]int, excused int) {
	counts = maps.Clone(e.Arrived)
	if e.Scenario.Shim == realetcd.ShimInProcess {
		return counts, 0
	}
	for v, s := range sentBy(rec) {
		if n := min(s.again, counts[v]-1); n > 0 {
			counts[v] -= n
			excused += n
		}
	}
	return counts, excused
}

// telling are the counts; nil where they hold none of some values. What was not counted is no
// client's fault: miscounted tells it.
func telling(counts map[string]int, values []string) map[string]int {
	if slices.ContainsFunc(values, func(v string) bool { return counts[v] > 0 }) {
		return counts
	}
	return nil
}

// miscounted says of the counts that they lack what a server must have got.
func (e *Evidence) miscounted() string {
	missing, first := 0, ""
	for _, v := range slices.Concat(answered(e.Ours), answered(e.Control)) {
		if e.Arrived[v] == 0 {
			missing++
			first = cmp.Or(first, v)
		}
	}
	if missing == 0 {
		return ""
	}
	return fmt.Sprintf("the counts are incomplete: %d values of mutations that servers answered, %s first, were counted nowhere", missing, first)
}

// answered are the values of the mutations that servers answered, also of those that did not swap,
// as far as they are counted where they arrive.
func answered(rec app.Record) (values []string) {
	for _, p := range rec.Load.Puts {
		if !p.Ended.IsZero() && p.Err == nil {
			values = append(values, p.ID)
		}
	}
	for _, op := range rec.Histories {
		if op.Outcome == history.Done {
			values = append(values, op.Values...)
		}
	}
	return slices.DeleteFunc(values, func(v string) bool { return !workload.Identifies(v) })
}

func (c *consistency) add(violations []string) { c.violations = append(c.violations, violations...) }
