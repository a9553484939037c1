//go:build linux

package suites

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// unnoticed is evidence of a slow m2 of which nothing is expected, and of which nobody
// notices anything: calls on it go on as before.
func unnoticed() *Evidence {
	e := sound()
	unharmed(e)
	e.Scenario.Control = Harmless
	e.Hurts = []Hurt{{Member: "m2", What: "cpu", Effect: Slows, From: at(cutAt), To: at(healedAt)}}
	e.Control = e.record("control")
	e.Control.Official, e.Control.Moves = true, nil
	e.calling("m2", 3*time.Millisecond)
	return e
}

// calling has the official client call a member all through the fault, and each call take so
// long.
func (e *Evidence) calling(member string, each time.Duration) {
	for d := cutAt; d < healedAt+time.Second; d += 60 * time.Millisecond {
		e.Control.Attempts = append(e.Control.Attempts, workload.Attempt{Method: workload.MethodRange, Address: address(member), Began: at(d), Ended: at(d + each)})
	}
}

// mute takes the answers of m2 away from some time on, for a second.
func (e *Evidence) mute() {
	e.Control.Attempts = slices.DeleteFunc(e.Control.Attempts, func(a workload.Attempt) bool {
		return a.Address == address("m2") && a.Began.After(at(4*time.Second)) && a.Began.Before(at(5*time.Second))
	})
}

func TestFaultOfWhichNothingIsExpectedMustBeNoticed(t *testing.T) {
	for _, row := range []struct {
		name  string
		plant func(*Evidence)
		want  report.Status
		says  string
	}{
		{"nobody notices", func(*Evidence) {}, report.Void, "nobody noticed anything of cpu on m2"},
		{"the sampler sees it", func(e *Evidence) { e.seen("m2", 5*time.Second, 6*time.Second, realetcd.NoQuorum) }, report.Passed, ""},
		{"the sampler sees it elsewhere", func(e *Evidence) { e.seen("m3", 5*time.Second, 6*time.Second, realetcd.NoQuorum) }, report.Void, "nobody noticed"},
		{"the sampler saw it before", func(e *Evidence) { e.seen("m2", 1*time.Second, 2*time.Second, realetcd.NoQuorum) }, report.Void, "nobody noticed"},
		{"its shim says so", func(e *Evidence) {
			e.sample(5*time.Second, "m2", realetcd.Quorum)
			e.Samples[len(e.Samples)-1].Shim = realetcd.ShimNotServing + " (no-quorum)"
		}, report.Passed, ""},
		{"ours gives it up", func(e *Evidence) { e.Ours.Grades = grades(5*time.Second, "unhealthy", 6*time.Second, "healthy") }, report.Passed, ""},
		{"ours gave it up long after", func(e *Evidence) { e.Ours.Grades = grades(11*time.Second, "unhealthy") }, report.Void, "nobody noticed"},
		{"its answers take longer", func(e *Evidence) { e.calling("m2", 30*time.Millisecond) }, report.Passed, ""},
		{"answers of another take longer", func(e *Evidence) { e.calling("m3", 30*time.Millisecond) }, report.Void, "nobody noticed"},
		{"its answers stay away", (*Evidence).mute, report.Passed, ""},
		{"a call on it never ends", func(e *Evidence) {
			e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodRange, Address: address("m2"), Began: at(cutAt + time.Millisecond), Ended: at(closes)})
		}, report.Passed, ""},
		{"the official client is stuck", func(e *Evidence) {
			e.Control.Load.Leases[0].ClosedAt, e.Control.Load.Leases[0].Name = at(6*time.Second), "control/0"
		}, report.Passed, ""},
		{"its process ended", func(e *Evidence) { e.Hurts[0].Effect = Ends }, report.Passed, ""},
		{"one of two faults is noticed", func(e *Evidence) {
			e.Hurts = append(e.Hurts, Hurt{Member: "m3", What: "kill", Effect: Ends, From: at(cutAt), To: at(healedAt)})
		}, report.Passed, ""},
		{"only a shim is frozen", func(e *Evidence) { e.Hurts[0].Effect = Spares }, report.Void, "nobody noticed"},
		{"only a shim is frozen, and it is silent", func(e *Evidence) {
			e.Hurts[0].Effect = Spares
			e.shim("m2", 5*time.Second, realetcd.ShimSilent)
		}, report.Passed, ""},
		{"only a shim is frozen, and it says NOT_SERVING", func(e *Evidence) {
			e.Hurts[0].Effect = Spares
			e.shim("m2", 5*time.Second, realetcd.ShimNotServing)
		}, report.Void, "nobody noticed"},
		{"only a shim is frozen, and answers take longer", func(e *Evidence) {
			e.Hurts[0].Effect = Spares
			e.calling("m2", 30*time.Millisecond)
		}, report.Void, "nobody noticed"},
		{"elections are to be forced", func(e *Evidence) { e.Hurts = nil }, report.Void, "none came to another term"},
		{"elections are forced", func(e *Evidence) {
			e.Hurts = nil
			e.sample(5*time.Second, "m1", realetcd.Leader)
			e.Samples[len(e.Samples)-1].Term = 3
		}, report.Passed, ""},
		{"a soak strikes no blow", func(e *Evidence) {
			e.Hurts, e.Scenario.Endless = nil, true
			e.sample(5*time.Second, "m1", realetcd.Leader)
			e.Samples[len(e.Samples)-1].Term = 3
		}, report.Void, "give it more time"},
		{"the scenario has claims of its own", func(e *Evidence) { e.Scenario.Judge = func(*Evidence) []string { return nil } }, report.Passed, ""},
	} {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			e := unnoticed()
			row.plant(e)
			v := e.Judge()
			if v.Status != row.want || !strings.Contains(v.Reason, row.says) {
				t.Errorf("judged %s (%s, %q), want %s that says %q", v.Status, v.Reason, v.Violations, row.want, row.says)
			}
		})
	}
}

// A scenario that is not marked as a no-harm one shows nothing when the official client
// suffers nothing, whoever else noticed the fault.
func TestControlThatSuffersNothingMakesAScenarioVoid(t *testing.T) {
	const without = "the official client suffered nothing"
	ended := func(e *Evidence) { e.Hurts[0].Effect = Ends }
	for _, row := range []struct {
		name   string
		expect Expect
		plant  func(*Evidence)
		want   report.Status
		says   string
	}{
		{"nothing", Suffers, func(*Evidence) {}, report.Void, without},
		{"nothing, though a process ended", Suffers, ended, report.Void, without},
		{"a call waits hardly longer than usual", Suffers, func(e *Evidence) {
			ended(e)
			e.Control.Load.Gets[150].Ended = e.Control.Load.Gets[150].Began.Add(harmedAfter)
		}, report.Void, without},
		{"a call waited before the fault", Suffers, func(e *Evidence) {
			ended(e)
			e.Control.Load.Gets[20].Ended = e.Control.Load.Gets[20].Began.Add(time.Second)
		}, report.Void, without},
		{"a watch was behind before the fault", Suffers, func(e *Evidence) { ended(e); e.laggingControl(1500*time.Millisecond, 2900*time.Millisecond) }, report.Void, without},
		{"a watch is behind", Suffers, func(e *Evidence) { ended(e); e.laggingControl(5*time.Second, 6*time.Second) }, report.Passed, ""},
		{"ours suffers", Suffers, func(e *Evidence) {
			ended(e)
			e.Ours.Load.Gets[150].Ended = e.Ours.Load.Gets[150].Began.Add(harmedAfter + 100*time.Millisecond)
		}, report.Void, without},
		{"a call waits", Suffers, func(e *Evidence) {
			ended(e)
			e.Control.Load.Gets[150].Ended = e.Control.Load.Gets[150].Began.Add(harmedAfter + time.Millisecond)
		}, report.Passed, ""},
		{"a call fails", Suffers, func(e *Evidence) {
			ended(e)
			e.Control.Load.Gets[150].Err = refusal(codes.Unavailable, "gone")
		}, report.Passed, ""},
		{"a Put's outcome is unknown", Suffers, func(e *Evidence) {
			ended(e)
			e.Control.Load.Puts[150].Err = refusal(codes.Unavailable, "gone")
		}, report.Passed, ""},
		{"a lease is lost", Suffers, func(e *Evidence) {
			ended(e)
			e.Control.Load.Leases[0].ClosedAt = at(6 * time.Second)
		}, report.Passed, ""},
		{"nothing, which was to be expected", Harmless, ended, report.Passed, ""},
		{"it was stuck before the fault", Stuck, func(e *Evidence) {
			e.Scenario.Budget = Budget{}
			e.Cut, e.Hurts[0].From, e.Hurts[0].Effect = at(6*time.Second), at(6*time.Second), Ends
			e.waitingControl(2*time.Second, 5*time.Second)
			e.laggingControl(2*time.Second, 5*time.Second)
			e.Control.Load.Leases[0].ClosedAt = at(4 * time.Second)
		}, report.Void, "was not stuck"},
		{"less than it was to", Stuck, func(e *Evidence) {
			e.Control.Load.Gets[150].Ended = e.Control.Load.Gets[150].Began.Add(time.Second)
		}, report.Void, "was not stuck"},
	} {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			e := unnoticed()
			e.Scenario.Control = row.expect
			row.plant(e)
			v := e.Judge()
			if v.Status != row.want || !strings.Contains(v.Reason, row.says) {
				t.Errorf("judged %s (%s, %q), want %s that says %q", v.Status, v.Reason, v.Violations, row.want, row.says)
			}
			marked := slices.ContainsFunc(v.Notes, func(n string) bool { return strings.Contains(n, without) })
			if marked != (row.expect == Harmless) {
				t.Errorf("notes %q; want one that it is a no-harm scenario: %v", v.Notes, row.expect == Harmless)
			}
		})
	}
}

// laggingControl has what was written between two moments come to a watch of the control at the second one.
func (e *Evidence) laggingControl(from, to time.Duration) {
	events := e.Control.Load.Watches[1].Events
	for i, ev := range e.Reference {
		if within(ev.At, at(from), at(to)) {
			events[i].At = at(to)
		}
	}
}

// lose takes away from a watch of the control what was written at a moment.
func (e *Evidence) lose(d time.Duration) {
	w := &e.Control.Load.Watches[1]
	w.Events = slices.DeleteFunc(w.Events, func(ev workload.Event) bool { return within(ev.At, at(d), at(d+eventEvery-time.Millisecond)) })
}

// waitingControl is a Get of the control that comes back.
func (e *Evidence) waitingControl(from, to time.Duration) {
	e.Control.Load.Gets = append(e.Control.Load.Gets, workload.Op{Began: at(from), Ended: at(to), Revision: 1 << 40})
}

// What was before the fault is no harm of it, nor what the machine did.
func TestHarmIsWhatTheFaultBrings(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	leaseLost := func(d time.Duration) func(*Evidence) {
		return func(e *Evidence) { e.Control.Load.Leases[0].ClosedAt = at(d) }
	}
	failed := func(d time.Duration) func(*Evidence) {
		return func(e *Evidence) {
			e.Control.Load.Gets = append(e.Control.Load.Gets, workload.Op{Began: at(d), Ended: at(d + ms), Err: refusal(codes.Unavailable, "gone")})
		}
	}
	unmarked := func(e *Evidence) { e.Cut = time.Time{} }
	for _, row := range []struct {
		name  string
		plant func(*Evidence)
		want  string
	}{
		{"nothing", func(*Evidence) {}, ""},
		{"a watch falls behind", func(e *Evidence) { e.laggingControl(5*s, 5400*ms) }, "a wait of 400ms"},
		{"a watch was behind before", func(e *Evidence) { e.laggingControl(1500*ms, 2900*ms) }, ""},
		{"a watch was behind before and still is", func(e *Evidence) { e.laggingControl(2*s, 3300*ms) }, "a wait of 300ms"},
		{"an event is lost", func(e *Evidence) { e.lose(11 * s) }, "1 events lost"},
		{"an event was lost before", func(e *Evidence) { e.lose(2 * s) }, ""},
		{"a watch is closed", func(e *Evidence) { e.Control.Load.Watches[0].Closed = refusal(codes.Unavailable, "gone") }, "1 watches closed"},
		{"a lease is lost", leaseLost(6 * s), "1 leases lost"},
		{"a lease was lost before", leaseLost(2 * s), ""},
		{"a call fails", failed(6 * s), "1 calls failed"},
		{"a call failed before", failed(2 * s), ""},
		{"a call waits", func(e *Evidence) { e.waitingControl(5*s, 5400*ms) }, "a wait of 400ms"},
		{"a call waited before", func(e *Evidence) { e.waitingControl(2*s, 3100*ms) }, ""},
		{"a call waits since before", func(e *Evidence) { e.waitingControl(2*s, 3300*ms) }, "a wait of 300ms"},
		{"a call waited before a fault that no step is marked for", func(e *Evidence) { unmarked(e); e.waitingControl(1*s, 2*s) }, ""},
		{"a call waits after a fault that no step is marked for", func(e *Evidence) { unmarked(e); e.waitingControl(3*s, 4*s) }, "a wait of 1s"},
		{"a call waited before the first step, and no member is hurt", func(e *Evidence) {
			unmarked(e)
			e.Hurts, e.Acted = nil, at(4*s)
			e.waitingControl(1*s, 3900*ms)
		}, ""},
		{"a call waits after the first step, and no member is hurt", func(e *Evidence) {
			unmarked(e)
			e.Hurts, e.Acted = nil, at(4*s)
			e.waitingControl(4*s, 5*s)
		}, "a wait of 1s"},
		{"the machine stands still, and a watch is behind", func(e *Evidence) { e.stall(5*s, 5400*ms); e.laggingControl(5*s, 5400*ms) }, ""},
		{"the machine stands still, and a call waits", func(e *Evidence) { e.stall(5*s, 5400*ms); e.waitingControl(5*s, 5400*ms) }, ""},
		{"the machine stands still, and a call waits for much longer", func(e *Evidence) { e.stall(5*s, 5400*ms); e.waitingControl(5*s, 8*s) }, "a wait of 3s"},
		{"the machine stands still elsewhere, and a call waits", func(e *Evidence) { e.stall(7*s, 7400*ms); e.waitingControl(5*s, 5400*ms) }, "a wait of 400ms"},
	} {
		e := unnoticed()
		row.plant(e)
		if got := e.harm(e.Control); got != row.want {
			t.Errorf("%s: harm %q; want %q", row.name, got, row.want)
		}
	}
}

// Calls that no fault touches are no witness; without any before it nobody knows.
func TestAnswersAreComparedWithThoseBefore(t *testing.T) {
	ms := time.Millisecond
	usual := answers{calls: 100, mean: 4 * ms, gap: 60 * ms}
	for _, row := range []struct {
		name   string
		before answers
		during answers
		want   bool
	}{
		{"the same", usual, usual, false},
		{"a little slower", usual, answers{100, 7 * ms, 100 * ms}, false},
		{"slower", usual, answers{100, 9 * ms, 100 * ms}, true},
		{"a little pause", usual, answers{100, 4 * ms, 400 * ms}, false},
		{"a pause", usual, answers{100, 4 * ms, 600 * ms}, true},
		{"a pause as there were before", answers{100, 4 * ms, 400 * ms}, answers{100, 4 * ms, 600 * ms}, false},
		{"nobody called before", answers{gap: 2 * time.Second}, answers{100, 300 * ms, 10 * time.Second}, false},
	} {
		if got := row.during.worse(row.before); got != row.want {
			t.Errorf("%s: noticed %v, want %v", row.name, got, row.want)
		}
	}
}
