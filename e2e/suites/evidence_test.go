//go:build linux

package suites

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// The made-up scenario: follower m2 of three is cut from its peers at 3 s and healed at
// 8.5 s; the load runs from 1 s to 12 s. Ours has left m2 after 300 ms; the control's
// watch on m2 delivers nothing until the heal.
const (
	loadBegins = 1 * time.Second
	cutAt      = 3 * time.Second
	leftAt     = 3300 * time.Millisecond
	healedAt   = 8500 * time.Millisecond
	loadEnds   = 12 * time.Second
	closes     = 12500 * time.Millisecond
)

var zero = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return zero.Add(d) }

func address(member string) string { return "10.0.0." + member[1:] + ":2379" }

// sound is evidence of a scenario in which ours did all that it should and the control was
// stuck.
func sound() *Evidence {
	e := &Evidence{
		Scenario: Scenario{Name: "made-up", Target: Follower, Control: Stuck, Budget: noQuorum, Members: 3, Shim: realetcd.ShimSidecar, Fault: "cut"},
		Began:    zero, Ended: at(loadEnds), Cut: at(cutAt), Heal: at(healedAt), Target: "m2",
		Hurts:     []Hurt{{Member: "m2", What: "cut", Effect: Isolates, From: at(cutAt), To: at(healedAt)}},
		Died:      map[string]string{},
		Connected: map[string]int{},
	}
	for _, m := range []string{"m1", "m2", "m3"} {
		e.Members = append(e.Members, MemberFacts{Name: m, Endpoint: address(m)})
	}
	e.sample(0, "m1", realetcd.Leader)
	e.sample(0, "m2", realetcd.Quorum)
	e.sample(0, "m3", realetcd.Quorum)
	e.sample(cutAt, "m2", realetcd.NoQuorum)
	e.sample(healedAt, "m2", realetcd.Quorum)
	e.Upto = 1
	for d := loadBegins; d < loadEnds; d += eventEvery {
		e.Upto++
		ev := workload.Event{Revision: e.Upto, Value: fmt.Sprint("event-", e.Upto), At: at(d)}
		e.Reference, e.History.Events = append(e.Reference, ev), append(e.History.Events, ev)
	}
	e.History.Applied, e.Arrived = map[string]int{}, map[string]int{}
	e.Truth = history.Truth{Upto: e.Upto}
	e.Ours, e.Control = e.record("ours"), e.record("control")
	e.Control.Official, e.Control.Moves = true, nil
	w := e.Control.Load.Watches[1].Events
	for i := range w {
		if w[i].At.After(at(cutAt)) && w[i].At.Before(at(healedAt)) {
			w[i].At = at(healedAt)
		}
	}
	return e
}

func (e *Evidence) sample(d time.Duration, member string, s realetcd.State) {
	e.Samples = append(e.Samples, realetcd.Sample{At: at(d), Member: member, State: s, Leader: 1, Term: 2, Shim: "serving"})
}

// seen changes what a member was seen as from one moment to another, and before and after
// that it serves.
func (e *Evidence) seen(member string, from, to time.Duration, s realetcd.State) {
	e.Samples = slices.DeleteFunc(e.Samples, func(x realetcd.Sample) bool { return x.Member == member })
	e.sample(0, member, realetcd.Quorum)
	e.sample(from, member, s)
	e.sample(to, member, realetcd.Quorum)
}

// elect has members serve in a new term from a moment on.
func (e *Evidence) elect(d time.Duration) {
	for _, m := range []string{"m1", "m3"} {
		e.sample(d, m, realetcd.Quorum)
		e.Samples[len(e.Samples)-1].Term++
	}
}

// silent takes away what was written between two moments, and has members not serve meanwhile.
func (e *Evidence) silent(from, to time.Duration, members ...string) {
	for _, m := range members {
		e.seen(m, from, to, realetcd.NoLeader)
	}
	without := func(events []workload.Event) []workload.Event {
		return slices.DeleteFunc(events, func(ev workload.Event) bool {
			written := at(loadBegins + time.Duration(ev.Revision-2)*eventEvery)
			return !written.Before(at(from)) && written.Before(at(to))
		})
	}
	e.Reference, e.History.Events = without(e.Reference), without(e.History.Events)
	for _, rec := range []app.Record{e.Ours, e.Control} {
		for i := range rec.Load.Watches {
			rec.Load.Watches[i].Events = without(rec.Load.Watches[i].Events)
		}
	}
}

// did files a mutation of ours, of the histories, that was done once as it should be. It has an ID
// and keys of its own, and was counted.
func (e *Evidence) did(op history.Op) {
	op.ID, _, _ = strings.Cut(op.Values[0], "/")
	op.Caller, op.Group, op.Outcome = 1, op.ID, history.Done
	op.Call, op.Return, op.Revision = 5*time.Second, 5*time.Second+2*time.Millisecond, 100
	op.Swapped = op.Kind == history.Swap
	for i, v := range op.Values {
		op.Keys = append(op.Keys, fmt.Sprint(op.ID, "/", i))
		e.Truth.Changes = append(e.Truth.Changes, history.Change{Revision: op.Revision, Key: op.Keys[i], Value: v, Create: op.Revision, Version: 1})
		if len(v) <= 1024 {
			e.Arrived[v] = 1
		}
	}
	e.Ours.Histories = append(e.Ours.Histories, op)
}

// record is what an application sees that leaves m2 in time.
func (e *Evidence) record(name string) app.Record {
	rec := app.Record{
		Name: name, Zero: zero, Leaks: app.Leaks{Goroutines: [2]int{3, 3}, Descriptors: [2]int{9, 9}},
		Load: workload.Record{Name: name, Began: at(loadBegins), Ended: at(loadEnds), StartRev: 1},
	}
	for i := range 2 {
		w := workload.WatchRecord{Name: fmt.Sprint(name, "/", i)}
		for _, ev := range e.Reference {
			ev.At = ev.At.Add(2 * time.Millisecond)
			w.Events = append(w.Events, ev)
		}
		rec.Load.Watches = append(rec.Load.Watches, w)
		l := workload.LeaseRecord{Name: w.Name, ID: int64(i + 1)}
		for d := loadBegins; d < loadEnds; d += 5 * time.Second / 3 {
			l.Answers = append(l.Answers, at(d))
		}
		rec.Load.Leases = append(rec.Load.Leases, l)
	}
	n := 0
	for d := loadBegins; d < loadEnds; d += 20 * time.Millisecond {
		n++
		member := fmt.Sprint("m", n%3+1)
		if d > cutAt+100*time.Millisecond && d < healedAt+200*time.Millisecond && member == "m2" {
			member = "m3"
		}
		began, ended := at(d), at(d+3*time.Millisecond)
		id := fmt.Sprint(name, "-", n)
		rec.Load.Gets = append(rec.Load.Gets, workload.Op{Began: began, Ended: ended, Revision: int64(n)})
		rec.Load.Puts = append(rec.Load.Puts, workload.Op{ID: id, Began: began, Ended: ended, Revision: int64(n)})
		e.History.Applied[id], e.Arrived[id] = 1, 1
		rec.Attempts = append(rec.Attempts,
			workload.Attempt{Method: workload.MethodRange, Address: address(member), Began: began, Ended: ended},
			workload.Attempt{Method: workload.MethodPut, Address: address(member), Began: began, Ended: ended, Values: []string{id}})
	}
	for method, of := range map[string]string{workload.MethodWatch: name, workload.MethodKeepAlive: ""} {
		rec.Attempts = append(rec.Attempts,
			workload.Attempt{Method: method, Watch: of, Address: address("m2"), Began: at(loadBegins - 100*time.Millisecond), Ended: at(leftAt)},
			workload.Attempt{Method: method, Watch: of, Address: address("m3"), Began: at(leftAt), Ended: at(closes)},
			workload.Attempt{Method: method, Watch: of + of, Address: address("m1"), Began: at(loadBegins - 100*time.Millisecond), Ended: at(closes)})
	}
	rec.Moves = []app.Move{
		{At: at(leftAt), Class: "lease", Endpoint: address("m2"), Reason: "no-quorum"},
		{At: at(leftAt), Class: "watch", Endpoint: address("m2"), Reason: "no-quorum"},
	}
	return rec
}
