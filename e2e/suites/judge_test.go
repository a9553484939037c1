//go:build linux

package suites

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
	"github.com/quorumwise/quorumwise/prober"
)

func TestJudgePassesWhatIsSound(t *testing.T) {
	e := sound()
	v := e.Judge()
	if v.Status != report.Passed || len(v.Violations) > 0 {
		t.Errorf("judged %s (%s) with violations %q; want passed with none", v.Status, v.Reason, v.Violations)
	}
}

// revokedEarly makes a lease of ours go with 2 s of its life left.
func revokedEarly(e *Evidence) {
	e.Ours.Load.Leases[1].TTLs = []workload.TTL{
		{At: at(4 * time.Second), Remaining: 3 * time.Second}, {At: at(5 * time.Second), Remaining: -time.Second},
	}
	e.Ours.Load.Leases[1].ClosedAt = at(6 * time.Second)
}

// frozen has m2 lead, and stand still between two moments.
func (e *Evidence) frozen(from, to time.Duration) {
	e.Samples = slices.DeleteFunc(e.Samples, func(s realetcd.Sample) bool { return s.Member == "m2" })
	e.sample(0, "m2", realetcd.Leader)
	e.sample(from, "m2", realetcd.Frozen)
	e.sample(to, "m2", realetcd.Quorum)
}

// stall has the machine stand still between two moments.
func (e *Evidence) stall(from, to time.Duration) {
	e.Stalls, e.Lateness.Worst = append(e.Stalls, Stall{at(from), at(to)}), to-from
}

// delay has one processor of the machine late by so much, three times before some moment.
func (e *Evidence) delay(before, by time.Duration) {
	var of []Stall
	for d := before - 3*(by+10*time.Millisecond); len(of) < 3; d += by + 10*time.Millisecond {
		of = append(of, Stall{at(d), at(d + by)})
	}
	e.lags, e.Lateness.Worst = append(e.lags, nil, of), by
}

// tooLate is a claim about time that does not hold at 5 s.
func tooLate(*Evidence) (bad findings) {
	bad.add([]when{happened(at(5 * time.Second))}, "it was too late")
	return bad
}

// leaves has a stream of ours leave m2 at a moment.
func (e *Evidence) leaves(d time.Duration) {
	e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodWatch, Address: address("m2"), Began: at(loadBegins), Ended: at(d)})
}

// shunned has what ours sent to a member after the heal go to m1.
func (e *Evidence) shunned(member string) {
	for i := range e.Ours.Attempts {
		if a := &e.Ours.Attempts[i]; a.Began.After(at(healedAt)) && a.Address == address(member) {
			a.Address = address("m1")
		}
	}
}

// lagging has what was written between two moments come at the second one.
func (e *Evidence) lagging(from, to time.Duration) {
	events := e.Ours.Load.Watches[0].Events
	for i := range events {
		if !events[i].At.Before(at(from)) && events[i].At.Before(at(to)) {
			events[i].At = at(to)
		}
	}
}

// waiting is a Put of ours between two moments that comes back.
func (e *Evidence) waiting(from, to time.Duration) {
	e.History.Applied["ours-waits"], e.Arrived["ours-waits"] = 1, 1
	e.Ours.Load.Puts = append(e.Ours.Load.Puts, workload.Op{ID: "ours-waits", Began: at(from), Ended: at(to), Revision: int64((to - loadBegins) / (20 * time.Millisecond))})
}

// txn is a transaction of ours on m2.
func (e *Evidence) txn(from time.Duration, to time.Time) {
	e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: "/etcdserverpb.KV/Txn", Address: address("m2"), Began: at(from), Ended: to})
}

// lead has m1 and m3 without a leader between two moments, and in a new term after that.
func (e *Evidence) lead(from, to time.Duration) {
	for _, m := range []string{"m1", "m3"} {
		e.seen(m, from, to, realetcd.NoLeader)
		e.Samples[len(e.Samples)-1].Term++
	}
}

// locked is a stay of ours in a mutex.
func (e *Evidence) locked(d time.Duration, lost bool) {
	e.Ours.Sections = []history.Section{{Mutex: "m", Holder: "h", Key: "m/1", Fence: 5, Asked: d, Entered: d, Left: d + 50*time.Millisecond, Unlocked: history.Done, Lost: lost}}
	e.Truth.Changes = []history.Change{{Revision: 5, Key: "m/1", Create: 5, Version: 1}, {Revision: 9, Key: "m/1", Deleted: true}}
}

// overdue has a keepalive of ours overdue at 5 s.
func (e *Evidence) overdue() {
	e.Ours.Moves = []app.Move{{At: at(5 * time.Second), Class: "lease", Endpoint: address("m2"), Reason: client.ReasonKeepalive}}
	e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodKeepAlive, Address: address("m2"), Began: at(5 * time.Second), Ended: at(closes)})
}

// refusedLease has a lease stream of ours refused at 5 s.
func (e *Evidence) refusedLease() {
	e.overdue()
	e.Ours.Moves[0].Reason = prober.ReasonNoLeader
}

// failing is a Get of ours that failed between two moments.
func failing(e *Evidence, from, to time.Duration) {
	err := &app.Error{Text: "context deadline exceeded", Code: codes.DeadlineExceeded, Deadline: true}
	e.Ours.Load.Gets = append(e.Ours.Load.Gets, workload.Op{Began: at(from), Ended: at(to), Err: err})
	e.Ours.Failures = append(e.Ours.Failures, app.Failure{At: at(to), Class: "get", Err: err})
}

// refusal is an error of a server's as an application files it.
func refusal(code codes.Code, desc string) *app.Error {
	return app.Crossing(status.Error(code, desc))
}

// refusedTxn is a transaction of ours that was refused for certain.
func (e *Evidence) refusedTxn(text string) {
	e.Ours.Histories = append(e.Ours.Histories, history.Op{
		Caller: 1, Group: "g", ID: "refused", Kind: history.Put, Keys: []string{"g/k", "g/l"}, Values: []string{"refused/k", "refused/l"},
		Call: 5 * time.Second, Return: 5*time.Second + 2*time.Millisecond, Outcome: history.Refused, Error: text,
	})
}

// unharmed turns the scenario into one in which no member is bad.
func unharmed(e *Evidence) {
	e.Scenario.Control, e.Scenario.Budget = Unharmed, Budget{}
	e.Hurts = nil
	e.seen("m2", 0, loadEnds, realetcd.Quorum)
	e.Ours.Moves = nil
	e.Ours.Attempts = slices.DeleteFunc(e.Ours.Attempts, func(a workload.Attempt) bool { return a.Stream() && a.Began.Before(at(loadBegins)) })
}

// Each row plants one violation; a judge that passes it would pass anything.
func TestJudgeCatchesWhatIsPlanted(t *testing.T) {
	for _, row := range []struct {
		name  string
		plant func(*Evidence)
		want  report.Status
		says  string // in a violation, or in the reason
	}{
		{"nothing was inflicted", func(e *Evidence) { e.Hurts, e.Ours.Moves, e.Scenario.Budget = nil, nil, Budget{} }, report.Broken, "nothing was inflicted"},
		{"an answered transaction was counted nowhere", func(e *Evidence) {
			e.did(history.Op{Kind: history.Put, Values: []string{"txn-1/0", "txn-1/1"}})
			delete(e.Arrived, "txn-1/1")
		}, report.Broken, "the counts are incomplete: 1 values of mutations that servers answered, txn-1/1 first"},
		{"a swap of the control was counted nowhere", func(e *Evidence) {
			e.did(history.Op{Kind: history.Swap, Values: []string{"swap-1"}})
			e.Ours.Histories, e.Control.Histories = nil, e.Ours.Histories
			delete(e.Arrived, "swap-1")
		}, report.Broken, "servers answered, swap-1 first"},
		{"an answered swap was counted nowhere", func(e *Evidence) {
			e.did(history.Op{Kind: history.Swap, Values: []string{"swap-1"}})
			delete(e.Arrived, "swap-1")
		}, report.Broken, "servers answered, swap-1 first"},
		{"nothing was counted, and it is known why", func(e *Evidence) {
			e.Arrived, e.Uncounted = map[string]int{}, []string{"the count at m1 is incomplete: it speaks TLS"}
		}, report.Broken, "it speaks TLS"},
		{"nothing was counted, and nobody knows why", func(e *Evidence) { e.Arrived = map[string]int{} }, report.Broken, "the counts are incomplete"},
		{"nobody counted", func(e *Evidence) { e.Arrived = nil }, report.Broken, "the counts are incomplete"},
		{"nothing was counted, and a mutation was applied twice", func(e *Evidence) {
			e.Arrived, e.History.Applied["ours-7"] = map[string]int{}, 2
		}, report.Failed, "was applied 2 times"},
		{"a member was never sampled", func(e *Evidence) {
			e.Samples = slices.DeleteFunc(e.Samples, func(s realetcd.Sample) bool { return s.Member == "m1" })
		}, report.Broken, "never sampled"},
		{"an event is lost", func(e *Evidence) {
			w := &e.Ours.Load.Watches[0]
			w.Events = append(w.Events[:100:100], w.Events[101:]...)
		}, report.Failed, "never delivered revision"},
		{"an event comes twice", func(e *Evidence) {
			w := &e.Ours.Load.Watches[0]
			w.Events = append(w.Events[:101:101], w.Events[100:]...)
		}, report.Failed, "twice"},
		{"events change places", func(e *Evidence) {
			ev := e.Ours.Load.Watches[1].Events
			ev[100], ev[101] = ev[101], ev[100]
		}, report.Failed, "out of order"},
		{"a watch closes", func(e *Evidence) { e.Ours.Load.Watches[0].Closed = &app.Error{Text: "the watch channel closed"} }, report.Failed, "channel closed"},
		{"a lease is revoked though no leader stood still", func(e *Evidence) { revokedEarly(e) }, report.Failed, "was gone at"},
		{"a lease is lost", func(e *Evidence) { e.Ours.Load.Leases[1].ClosedAt = at(6 * time.Second) }, report.Failed, "keepalive channel closed"},
		{"a mutation is applied twice", func(e *Evidence) { e.History.Applied["ours-7"] = 2 }, report.Failed, "applied 2 times"},
		{"a mutation reaches servers twice", func(e *Evidence) { e.Arrived["ours-7"] = 2 }, report.Failed, "reached servers 2 times"},
		{"a member's count is incomplete", func(e *Evidence) {
			e.Uncounted = []string{"the count at m2 is incomplete: a connection cannot be followed"}
		}, report.Broken, "the count at m2 is incomplete"},
		{"an acknowledged mutation was counted nowhere", func(e *Evidence) { delete(e.Arrived, "ours-7") }, report.Broken, "counts are incomplete: 1 values of mutations that servers answered, ours-7 first"},
		{"one of the control was counted nowhere", func(e *Evidence) { delete(e.Arrived, "control-7") }, report.Broken, "control-7 first"},
		{"an incomplete count is too high", func(e *Evidence) {
			e.Uncounted, e.Arrived["ours-7"] = []string{"the count at m2 is incomplete"}, 2
		}, report.Failed, "reached servers 2 times"},
		{"an acknowledged mutation is lost", func(e *Evidence) { delete(e.History.Applied, "ours-7") }, report.Failed, "not in the history"},
		{"a read goes back in time", func(e *Evidence) { e.Ours.Load.Gets[200].Revision = 1 }, report.Failed, "back in time"},
		{"a history has no order", func(e *Evidence) {
			e.Ours.Histories = []history.Op{
				{Caller: 1, Group: "g", ID: "a", Kind: history.Put, Keys: []string{"g/k"}, Values: []string{"a"}, Call: time.Second, Return: 2 * time.Second, Outcome: history.Done},
				{Caller: 1, Group: "g", ID: "b", Kind: history.Get, Keys: []string{"g/k"}, Found: []string{""}, Call: 3 * time.Second, Return: 4 * time.Second, Outcome: history.Done},
			}
		}, report.Failed, "g"},
		{"a Get fails while others serve", func(e *Evidence) { failing(e, 3100*time.Millisecond, 8100*time.Millisecond) }, report.Failed, " gets failed while another member served"},
		{"a Put fails for certain while others serve", func(e *Evidence) {
			e.Ours.Load.Puts[200].Err = &app.Error{Text: "refused", Code: codes.Unavailable}
		}, report.Failed, "puts failed while another member served"},
		{"a transaction fails for certain while others serve", func(e *Evidence) { e.refusedTxn("rpc error: code = ResourceExhausted desc = too many requests") }, report.Failed, "txns failed while another member served"},
		{"a Get is refused in the words of a dropped proposal", func(e *Evidence) {
			e.Ours.Load.Gets[200].Err = refusal(codes.Unavailable, "raft proposal dropped")
		}, report.Failed, "gets failed while another member served"},
		{"a call goes to the bad member too late", func(e *Evidence) {
			e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodRange, Address: address("m2"), Began: at(cutAt + 450*time.Millisecond), Ended: at(cutAt + 451*time.Millisecond)})
		}, report.Failed, "the last new call went to m2 450ms after cut at 3s; want at most 400ms"},
		{"a read stays on the bad member", func(e *Evidence) {
			e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodRange, Address: address("m2"), Began: at(cutAt - time.Millisecond)})
		}, report.Failed, "the last read on m2 ended never after cut"},
		{"a stream leaves the bad member too late", func(e *Evidence) {
			e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodWatch, Address: address("m2"), Began: at(loadBegins), Ended: at(cutAt + 900*time.Millisecond)})
		}, report.Failed, "the last stream left m2 900ms after cut at 3s; want at most 800ms"},
		{"nothing returns to the member", func(e *Evidence) { e.shunned("m2") }, report.Failed, "no call went to m2"},
		{"no stream returns to the member", func(e *Evidence) { e.Scenario.Returns = true }, report.Failed, "no stream went to m2"},
		{"a stream is moved off a good member", func(e *Evidence) {
			e.Ours.Moves = append(e.Ours.Moves, app.Move{At: at(5 * time.Second), Class: "watch", Endpoint: address("m3"), Reason: "no-quorum"})
		}, report.Failed, "false move: a watch left m3"},
		{"an election moves a stream", func(e *Evidence) {
			for _, m := range []string{"m1", "m3"} {
				e.seen(m, 4*time.Second, 5500*time.Millisecond, realetcd.NoLeader)
			}
			e.Ours.Moves = append(e.Ours.Moves, app.Move{At: at(5 * time.Second), Class: "watch", Endpoint: address("m3"), Reason: "no-quorum"})
		}, report.Failed, "false move: a watch left m3"},
		{"a stream moves though no member is bad", func(e *Evidence) {
			unharmed(e)
			e.Ours.Moves = []app.Move{{At: at(5 * time.Second), Class: "watch", Endpoint: address("m2"), Reason: "unreachable"}}
		}, report.Failed, "want no move"},
		{"a stream is opened again though no member is bad", func(e *Evidence) {
			unharmed(e)
			e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodWatch, Watch: "ours", Address: address("m2"), Began: at(5 * time.Second)})
		}, report.Failed, "1 watch streams were opened again"},
		{"a lease stream breaks though no member is bad", func(e *Evidence) {
			unharmed(e)
			e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{
				Method: workload.MethodKeepAlive, Address: address("m2"), Began: at(5 * time.Second), Ended: at(6 * time.Second),
				Err: &app.Error{Text: "the connection is gone", Code: codes.Unavailable},
			})
		}, report.Failed, "1 lease streams broke"},
		{"a member ends by itself", func(e *Evidence) { e.Crashed = []string{"m3: etcd ended by itself: exit status 2"} }, report.Failed, "m3: etcd ended by itself"},
		{"ours dies", func(e *Evidence) { e.Died["ours"], e.Ours = "exit status 2", app.Record{Name: "ours"} }, report.Failed, "died: exit status 2"},
		{"the control dies", func(e *Evidence) { e.Died["control"], e.Control = "exit status 2", app.Record{Name: "control"} }, report.Broken, "exit status 2"},
		{"the scenario's own claim fails", func(e *Evidence) {
			e.Scenario.Judge = func(*Evidence) []string { return []string{"it was not so"} }
		}, report.Failed, "it was not so"},
		{"a checker crashes", func(e *Evidence) {
			e.Scenario.Judge = func(*Evidence) []string { panic("division by zero") }
		}, report.Broken, "a checker crashed: division by zero"},
		{"the machine stands still and a budget is missed", func(e *Evidence) {
			e.stall(cutAt+200*time.Millisecond, cutAt+800*time.Millisecond)
			e.leaves(cutAt + 900*time.Millisecond)
		}, report.Void, "the machine was late by up to 600ms"},
		{"the machine is late again and again before the cut and a budget is missed by as much", func(e *Evidence) {
			e.delay(cutAt, 90*time.Millisecond)
			e.leaves(cutAt + 1070*time.Millisecond)
		}, report.Void, "the machine was late by up to 90ms"},
		{"the machine is late again and again and a budget is missed by more", func(e *Evidence) {
			e.delay(cutAt, 90*time.Millisecond)
			e.leaves(cutAt + 1071*time.Millisecond)
		}, report.Failed, "the last stream left m2 1.071s after cut"},
		{"the machine was late again and again much earlier and a budget is missed", func(e *Evidence) {
			e.delay(cutAt-time.Second, 90*time.Millisecond)
			e.leaves(cutAt + 900*time.Millisecond)
		}, report.Failed, "the last stream left m2 900ms after cut"},
		{"the machine is late again and again afterwards and a budget is missed", func(e *Evidence) {
			e.leaves(cutAt + 900*time.Millisecond)
			e.delay(cutAt+1300*time.Millisecond, 90*time.Millisecond)
		}, report.Failed, "the last stream left m2 900ms after cut"},
		{"two processors are late in turn and a budget is missed by what both took", func(e *Evidence) {
			e.delay(cutAt, 40*time.Millisecond)
			e.delay(cutAt+400*time.Millisecond, 40*time.Millisecond)
			e.leaves(cutAt + 1000*time.Millisecond)
		}, report.Failed, "the last stream left m2 1s after cut"},
		{"the machine is late again and again and a stream is moved off a good member", func(e *Evidence) {
			e.delay(9*time.Second, 90*time.Millisecond)
			e.Ours.Moves = append(e.Ours.Moves, app.Move{At: at(9 * time.Second), Class: "watch", Endpoint: address("m3"), Reason: "no-quorum"})
		}, report.Failed, "false move: a watch left m3"},
		{"the machine is late again and again and an event is lost", func(e *Evidence) {
			e.delay(3*time.Second, 90*time.Millisecond)
			w := &e.Ours.Load.Watches[0]
			w.Events = append(w.Events[:100:100], w.Events[101:]...)
		}, report.Failed, "never delivered revision"},
		{"the machine stood still much earlier and a budget is missed", func(e *Evidence) {
			e.stall(loadBegins, loadBegins+600*time.Millisecond)
			e.leaves(cutAt + 900*time.Millisecond)
		}, report.Failed, "the last stream left m2 900ms after cut"},
		{"the machine stands still and a stream stays for much longer", func(e *Evidence) {
			e.stall(cutAt+100*time.Millisecond, cutAt+300*time.Millisecond)
			e.leaves(cutAt + 3*time.Second)
		}, report.Failed, "the last stream left m2 3s after cut"},
		{"the machine stands still elsewhere and a stream is moved off a good member", func(e *Evidence) {
			e.stall(3*time.Second, 4*time.Second)
			e.Ours.Moves = append(e.Ours.Moves, app.Move{At: at(9 * time.Second), Class: "watch", Endpoint: address("m3"), Reason: "no-quorum"})
		}, report.Failed, "false move: a watch left m3"},
		{"the machine stands still before one of two false moves", func(e *Evidence) {
			e.stall(8*time.Second, 8500*time.Millisecond)
			for _, d := range []time.Duration{9 * time.Second, 10 * time.Second} {
				e.Ours.Moves = append(e.Ours.Moves, app.Move{At: at(d), Class: "watch", Endpoint: address("m3"), Reason: "no-quorum"})
			}
		}, report.Failed, "false move: a watch left m3 for no-quorum at 10s"},
		{"a claim about time fails", func(e *Evidence) { e.Scenario.Timing = tooLate }, report.Failed, "it was too late"},
		{"the machine stands still and a claim about time fails", func(e *Evidence) {
			e.stall(4500*time.Millisecond, 5100*time.Millisecond)
			e.Scenario.Timing = tooLate
		}, report.Void, "the machine was late by up to 600ms"},
		{"the machine stands still and another claim fails", func(e *Evidence) {
			e.stall(4500*time.Millisecond, 5100*time.Millisecond)
			e.Scenario.Judge = func(*Evidence) []string { return []string{"it was not so"} }
		}, report.Failed, "it was not so"},
		{"the machine stands still and an event is lost", func(e *Evidence) {
			e.stall(3*time.Second, 3600*time.Millisecond)
			w := &e.Ours.Load.Watches[0]
			w.Events = append(w.Events[:100:100], w.Events[101:]...)
		}, report.Failed, "never delivered revision"},

		{"a lease is lost before the cluster stands still", func(e *Evidence) {
			e.silent(4*time.Second, 7500*time.Millisecond, "m1", "m3")
			e.Ours.Load.Leases[1].ClosedAt = at(2 * time.Second)
		}, report.Failed, "keepalive channel closed"},
		{"a lease is lost while members serve and nobody may write", func(e *Evidence) {
			e.silent(4*time.Second, 7500*time.Millisecond)
			e.Ours.Load.Leases[1].ClosedAt = at(7 * time.Second)
		}, report.Failed, "keepalive channel closed"},
		{"a lease is revoked though the leader stood still for too short", func(e *Evidence) {
			e.frozen(3*time.Second, 4*time.Second)
			revokedEarly(e)
		}, report.Failed, "was gone at"},
		{"keepalives stop before the end", func(e *Evidence) {
			l := &e.Ours.Load.Leases[0]
			l.Answers = slices.DeleteFunc(l.Answers, func(a time.Time) bool { return a.After(at(8 * time.Second)) })
		}, report.Failed, "no keepalive was answered from 7.667s to 12s"},
		{"a session loses its lease inside a mutex", func(e *Evidence) { e.locked(5*time.Second, true) }, report.Failed, "mutex m: the session of h lost its lease"},
		{"a session loses its lease while it leads", func(e *Evidence) {
			e.Ours.Reigns = []history.Reign{{Election: "m", Leader: "h", Key: "m/1", Fence: 5, Asked: 4 * time.Second, Elected: 5 * time.Second, Lost: true, LostAt: 6 * time.Second}}
			e.Truth.Changes = []history.Change{{Revision: 5, Key: "m/1", Create: 5, Version: 1}, {Revision: 9, Key: "m/1", Deleted: true}}
		}, report.Failed, "election m: the session of h lost its lease between 5s and 6s"},

		{"a watch falls behind", func(e *Evidence) { e.lagging(6*time.Second, 8*time.Second) }, report.Failed, "watch ours/0 fell behind by 2s: what was written at 6s came at 8s; want it within 1s"},
		{"a watch stays behind after the heal", func(e *Evidence) { e.lagging(cutAt, 11*time.Second) }, report.Failed, "want it within 1.8s"},
		{"a watch is behind until after the end", func(e *Evidence) { e.lagging(9*time.Second, 80*time.Second) }, report.Failed, "watch ours/0 fell behind by 1m11s"},
		{"a Get takes too long", func(e *Evidence) { e.Ours.Load.Gets[200].Ended = e.Ours.Load.Gets[200].Began.Add(2 * time.Second) }, report.Failed, "1 gets kept their callers waiting"},
		{"a Get hangs until the end", func(e *Evidence) {
			e.Ours.Load.Gets = append(e.Ours.Load.Gets, workload.Op{Began: at(9 * time.Second)})
		}, report.Failed, "1 gets kept their callers waiting, one from 9s to 12s: 3s; want at most 1s"},
		{"a transaction hangs until the end", func(e *Evidence) {
			e.Ours.Histories = append(e.Ours.Histories, history.Op{
				Caller: 1, Group: "g", ID: "late", Kind: history.Put, Keys: []string{"g/k", "g/l"}, Values: []string{"late/k", "late/l"},
				Call: 9 * time.Second, Return: 12*time.Second + time.Millisecond, Outcome: history.Unknown, Error: "context canceled",
			})
		}, report.Failed, "1 txns kept their callers waiting, one from 9s to 12s"},
		{"a Put waits though no leader was lost", func(e *Evidence) { e.waiting(5*time.Second, 8*time.Second) }, report.Failed, "1 puts kept their callers waiting"},
		{"a Put waits for too long after an election", func(e *Evidence) {
			e.lead(4*time.Second, 5200*time.Millisecond)
			e.waiting(4*time.Second, 9*time.Second)
		}, report.Failed, "1 puts kept their callers waiting"},

		{"a transaction stays on the bad member", func(e *Evidence) { e.txn(cutAt+time.Second, time.Time{}) }, report.Failed, "the last mutation on m2 ended never after cut"},
		{"a transaction leaves the bad member too late", func(e *Evidence) { e.txn(cutAt-time.Millisecond, at(cutAt+900*time.Millisecond)) }, report.Failed, "the last mutation on m2 ended 900ms after cut at 3s; want at most 800ms"},

		{"a mutation is ended on a good member", func(e *Evidence) {
			e.Ours.Moves = append(e.Ours.Moves, app.Move{At: at(10 * time.Second), Class: "mutation", Endpoint: address("m3"), Reason: "leader-lost"})
		}, report.Failed, "a mutation left m3 for leader-lost at 10s, and the member was good"},
		{"a mutation is ended though no member is bad", func(e *Evidence) {
			unharmed(e)
			e.Ours.Moves = []app.Move{{At: at(5 * time.Second), Class: "mutation", Endpoint: address("m3"), Reason: "not-serving"}}
		}, report.Failed, "a mutation left m3 for not-serving"},
		{"a lease stream is refused though no leader was lost", func(e *Evidence) { unharmed(e); e.refusedLease() }, report.Failed, "a lease left m2 for no-leader at 5s; want that only where a leader is lost"},
		{"a member is given up in an election", func(e *Evidence) {
			unharmed(e)
			e.elect(4 * time.Second)
			e.refusedLease()
			e.Ours.Grades = append(e.Ours.Grades, app.Grade{At: at(4900 * time.Millisecond), Endpoint: address("m2"), Grade: gradeUnhealthy, Reason: "no-leader"})
		}, report.Failed, "a lease left m2 for no-leader at 5s; want no move"},
		{"a keepalive is overdue though no leader was lost", func(e *Evidence) { unharmed(e); e.overdue() }, report.Failed, "a lease left m2 for keepalive-overdue at 5s; want that only where a leader is lost"},

		{"a stream leaves a member too late that a soak has cut", func(e *Evidence) {
			e.Scenario.Budget = Budget{}
			e.leaves(cutAt + 900*time.Millisecond)
		}, report.Failed, "the last stream left m2 900ms after cut"},
		{"what is bad long after the fault is taken for its election", func(e *Evidence) {
			e.seen("m1", cutAt+2*time.Second, cutAt+3500*time.Millisecond, realetcd.NoLeader)
			e.seen("m3", cutAt+2*time.Second, cutAt+3500*time.Millisecond, realetcd.NoLeader)
			e.leaves(cutAt + 3*time.Second)
		}, report.Failed, "the last stream left m2 3s after cut"},

		{"one of two members is never used again", func(e *Evidence) {
			e.Hurts = append(e.Hurts, Hurt{Member: "m1", What: "cut", Effect: Isolates, From: at(2 * time.Second), To: at(2300 * time.Millisecond)})
			e.shunned("m2")
		}, report.Failed, "no call went to m2 from 8.5s"},
		{"a member is never used again where no step mends", func(e *Evidence) {
			e.Heal = time.Time{}
			e.shunned("m2")
		}, report.Failed, "no call went to m2 from 8.5s"},
		{"a member that was slow is never used again though the scenario is about that", func(e *Evidence) {
			e.Hurts[0].Effect, e.Scenario.Returns = Slows, true
			e.shunned("m2")
		}, report.Failed, "no call went to m2 from 8.5s"},
		{"the control suffers nothing", func(e *Evidence) {
			for i, ev := range e.Reference {
				e.Control.Load.Watches[1].Events[i].At = ev.At
			}
		}, report.Void, "the official client was not stuck"},
	} {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			e := sound()
			row.plant(e)
			v := e.Judge()
			if text := strings.Join(v.Violations, "\n") + "\n" + v.Reason; v.Status != row.want || !strings.Contains(text, row.says) {
				t.Errorf("judged %s, want %s; it says\n%s\nwant it to say %q", v.Status, row.want, text, row.says)
			}
		})
	}
}

// A scenario may only be played again where neither client is the reason that it is void.
func TestJudgeCallsBadLuckWhatNeitherClientCanHelp(t *testing.T) {
	idle := func(e *Evidence) {
		for i, ev := range e.Reference {
			e.Control.Load.Watches[1].Events[i].At = ev.At
		}
	}
	for _, row := range []struct {
		name  string
		plant func(*Evidence)
		want  report.Status
		luck  bool
	}{
		{"sound", func(*Evidence) {}, report.Passed, false},
		{"sound on a late machine", func(e *Evidence) { e.stall(4*time.Second, 5*time.Second) }, report.Passed, false},
		{"the control suffers nothing", idle, report.Void, false},
		{"the control suffers nothing on a late machine", func(e *Evidence) { idle(e); e.stall(4*time.Second, 5*time.Second) }, report.Void, true},
		{"the control suffers nothing on a machine that was late long before the fault", func(e *Evidence) {
			idle(e)
			e.stall(cutAt-1200*time.Millisecond, cutAt-1001*time.Millisecond)
		}, report.Void, false},
		{"the control suffers nothing on a machine that was late just before the fault", func(e *Evidence) {
			idle(e)
			e.stall(cutAt-1200*time.Millisecond, cutAt-time.Second)
		}, report.Void, true},
		{"the control suffers nothing on a machine that was late just after the heal", func(e *Evidence) {
			idle(e)
			e.stall(healedAt+aftermath, healedAt+aftermath+time.Second)
		}, report.Void, true},
		{"the control suffers nothing on a machine that was late long after the heal", func(e *Evidence) {
			idle(e)
			e.stall(healedAt+aftermath+1, healedAt+aftermath+time.Second)
		}, report.Void, false},
		{"the control suffers nothing of a fault that lasts, on a machine that is late at the end", func(e *Evidence) {
			idle(e)
			e.Hurts[0].To = time.Time{}
			e.shunned("m2")
			e.stall(loadEnds-time.Second, loadEnds-500*time.Millisecond)
		}, report.Void, true},
		{"a claim about time fails on a late machine", func(e *Evidence) {
			e.stall(4*time.Second, 5*time.Second)
			e.Scenario.Timing = tooLate
		}, report.Void, true},
		{"a budget is missed on a machine that is late again and again", func(e *Evidence) {
			e.delay(cutAt, 90*time.Millisecond)
			e.leaves(cutAt + 900*time.Millisecond)
		}, report.Void, true},
		{"the control suffers nothing on a machine that is late again and again", func(e *Evidence) { idle(e); e.delay(cutAt, 90*time.Millisecond) }, report.Void, false},
		{"a claim about time fails", func(e *Evidence) { e.Scenario.Timing = tooLate }, report.Failed, false},
		{"another claim fails on a late machine", func(e *Evidence) {
			e.stall(4*time.Second, 5*time.Second)
			e.Scenario.Judge = func(*Evidence) []string { return []string{"not so"} }
		}, report.Failed, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := sound()
			row.plant(e)
			if v := e.Judge(); v.Status != row.want || v.Luck != row.luck {
				t.Errorf("judged %s (%s), bad luck %v; want %s, %v", v.Status, v.Reason, v.Luck, row.want, row.luck)
			}
		})
	}
}

// Where something was missing that the scenario needs, ours broke no promise: nothing was shown.
func TestJudgeCallsVoidWhatHadNoPremise(t *testing.T) {
	missed := func(e *Evidence) { e.Marks = append(e.Marks, report.Mark{Text: notShown + "no snapshot"}) }
	for _, row := range []struct {
		name  string
		plant func(*Evidence)
		want  report.Status
		says  string
		luck  bool
	}{
		{"a step missed something", missed, report.Void, "no snapshot", false},
		{"likewise, and the machine stood still", func(e *Evidence) { missed(e); e.stall(cutAt, cutAt+500*time.Millisecond) }, report.Void, "no snapshot", true},
		{"likewise, and ours broke a promise", func(e *Evidence) { missed(e); revokedEarly(e) }, report.Failed, "", false},
		{"no keepalive stream stood there", func(e *Evidence) {
			e.Scenario.Timing, e.Second = keepalivesLeft, "m3"
			e.calm("m3")
		}, report.Void, "no keepalive stream of ours stood on m3", false},
		{"no leader was named", func(e *Evidence) { e.Scenario.Timing = leaderNamedAllTheSame }, report.Void, "named itself for 0s", false},
		{"the member never stopped serving", func(e *Evidence) {
			e.Scenario.Timing = leftOnceBad(time.Second)
			e.seen("m2", loadEnds, loadEnds, realetcd.Quorum)
		}, report.Void, "never stopped serving", false},
		{"the quota was never full", func(e *Evidence) { e.Scenario.Timing = noStreamMoved }, report.Void, "not used up", false},
	} {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			e := sound()
			row.plant(e)
			if v := e.Judge(); v.Status != row.want || !strings.Contains(v.Reason, row.says) || v.Luck != row.luck {
				t.Errorf("judged %s (%s), bad luck %v, %q; want %s with %q, %v", v.Status, v.Reason, v.Luck, v.Violations, row.want, row.says, row.luck)
			}
		})
	}
}

// Each row is unusual and no violation.
func TestJudgePassesWhatIsNobodysFault(t *testing.T) {
	for _, row := range []struct {
		name  string
		plant func(*Evidence)
	}{
		{"nobody served a Get that failed", func(e *Evidence) {
			for _, m := range []string{"m1", "m3"} {
				e.seen(m, 4*time.Second, 5500*time.Millisecond, realetcd.NoLeader)
			}
			failing(e, 4100*time.Millisecond, 5100*time.Millisecond)
		}},
		{"the members that served were out of reach", func(e *Evidence) {
			for _, m := range []string{"m1", "m3"} {
				e.Hurts = append(e.Hurts, Hurt{Member: m, What: "client-cut-all", Effect: Silences, From: at(cutAt), To: at(healedAt)})
			}
			failing(e, 3100*time.Millisecond, 8100*time.Millisecond)
			e.Scenario.Control = Harmless
		}},
		{"a leader that hands over drops a Put", func(e *Evidence) { e.Ours.Load.Puts[200].Err = refusal(codes.Unknown, "raft proposal dropped") }},
		{"a leader that hands over drops a transaction", func(e *Evidence) { e.refusedTxn("rpc error: code = Unknown desc = raft proposal dropped") }},
		{"an election comes before the budget", func(e *Evidence) {
			for _, m := range []string{"m1", "m3"} {
				e.seen(m, cutAt, cutAt+1500*time.Millisecond, realetcd.NoLeader)
			}
			e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodWatch, Address: address("m2"), Began: at(loadBegins), Ended: at(cutAt + 2200*time.Millisecond)})
		}},
		{"a stream leaves a member that the sampler saw bad", func(e *Evidence) {
			e.seen("m3", 9*time.Second, 10*time.Second, realetcd.Mute)
			e.Ours.Moves = append(e.Ours.Moves, app.Move{At: at(9800 * time.Millisecond), Class: "watch", Endpoint: address("m3"), Reason: "unreachable"})
		}},
		{"streams drift back", func(e *Evidence) {
			e.Ours.Moves = append(e.Ours.Moves, app.Move{At: at(11 * time.Second), Class: "watch", Endpoint: address("m3"), Reason: client.ReasonDrift})
		}},
		{"a lease stream is refused in an election", func(e *Evidence) {
			unharmed(e)
			e.refusedLease()
			e.elect(4 * time.Second)
		}},
		{"an overdue keepalive opens a lease stream again after an election", func(e *Evidence) {
			unharmed(e)
			e.overdue()
			e.elect(4 * time.Second)
		}},
		{"a leader that stood still revokes a lease when it goes on", func(e *Evidence) {
			e.frozen(0, 4500*time.Millisecond)
			revokedEarly(e)
		}},
		{"a session's lease goes when a leader goes on that stood still", func(e *Evidence) {
			e.frozen(cutAt, 7*time.Second)
			e.locked(8*time.Second, true)
		}},
		{"a lease is lost while the cluster stands still", func(e *Evidence) {
			e.Scenario.Control = Harmless
			e.silent(4*time.Second, 7500*time.Millisecond, "m1", "m3")
			e.Ours.Load.Leases[1].ClosedAt = at(7 * time.Second)
		}},
		{"a lock is held", func(e *Evidence) { e.locked(5*time.Second, false) }},
		{"a watch stays behind as long as a bad member may be kept", func(e *Evidence) { e.lagging(cutAt, cutAt+1700*time.Millisecond) }},
		{"a watch on a slow member falls behind", func(e *Evidence) {
			e.Hurts = append(e.Hurts, Hurt{Member: "m3", What: "loss", Effect: Slows, From: at(9 * time.Second), To: at(10 * time.Second)})
			e.lagging(9*time.Second, 11500*time.Millisecond)
		}},
		{"a Get waits for an election", func(e *Evidence) {
			e.lead(4*time.Second, 5200*time.Millisecond)
			e.Ours.Load.Gets[150].Ended = e.Ours.Load.Gets[150].Began.Add(2 * time.Second) // begun at 3.98 s
		}},
		{"a Put that was with a lost leader waits for two election timeouts of the next", func(e *Evidence) {
			e.lead(4*time.Second, 5200*time.Millisecond)
			e.waiting(4*time.Second, 7300*time.Millisecond)
		}},
		{"a Put that was with a leader which handed over waits likewise", func(e *Evidence) {
			e.elect(5 * time.Second)
			e.waiting(4900*time.Millisecond, 7300*time.Millisecond)
		}},
		{"a transaction leaves the bad member with the streams", func(e *Evidence) { e.txn(cutAt-time.Millisecond, at(cutAt+700*time.Millisecond)) }},
		{"a mutation is ended on a good member after an election", func(e *Evidence) {
			e.elect(7 * time.Second)
			e.Ours.Moves = append(e.Ours.Moves, app.Move{At: at(9100 * time.Millisecond), Class: "mutation", Endpoint: address("m3"), Reason: "leader-lost"})
		}},
		{"a read is sent again on a suspicion that passes", func(e *Evidence) {
			unharmed(e)
			e.Scenario.Shown = func(*Evidence) string { return "" }
			e.Ours.Moves = []app.Move{{At: at(5 * time.Second), Class: "read", Endpoint: address("m3"), Reason: "not-serving"}}
		}},
		{"a killed member that runs again gets calls", func(e *Evidence) {
			e.Scenario.Budget = Budget{}
			e.Hurts[0].Effect, e.Hurts[0].What = Ends, "killed"
			e.seen("m2", cutAt+50*time.Millisecond, cutAt+2*time.Second, realetcd.Stopped)
			e.txn(cutAt+2*time.Second, at(cutAt+3*time.Second))
		}},
		{"a member whose shim is frozen too is left later", func(e *Evidence) {
			e.Scenario.Budget = Budget{}
			e.Hurts = append(e.Hurts, Hurt{Member: "m2", What: "freeze-shim", Effect: Spares, From: at(2 * time.Second), To: at(healedAt)})
			e.leaves(cutAt + 1900*time.Millisecond)
		}},
		{"a fault ends before the member must be left", func(e *Evidence) {
			e.Hurts = append(e.Hurts, Hurt{Member: "m1", What: "cut", Effect: Isolates, From: at(9 * time.Second), To: at(9300 * time.Millisecond)})
		}},
		{"there is nowhere to go since a second fault", func(e *Evidence) {
			e.Scenario.Budget = Budget{}
			e.Hurts = append(e.Hurts, Hurt{Member: "m1", What: "freeze", Effect: Silences, From: at(cutAt + 600*time.Millisecond), To: at(6 * time.Second)})
			e.seen("m1", cutAt+600*time.Millisecond, 6*time.Second, realetcd.Frozen)
			e.seen("m3", cutAt+600*time.Millisecond, 6*time.Second, realetcd.NoQuorum)
			e.leaves(6500 * time.Millisecond)
		}},
		{"a member that comes and goes is held down", func(e *Evidence) {
			e.Hurts = append([]Hurt{{Member: "m2", What: "cut", Effect: Isolates, From: at(1200 * time.Millisecond), To: at(1500 * time.Millisecond)}}, e.Hurts...)
			e.sample(healedAt+time.Millisecond, "m2", realetcd.Quorum)
			e.Samples[len(e.Samples)-1].Shim = realetcd.ShimNotServing + " (settling)"
			e.shunned("m2")
		}},
		{"what is too long to be counted was not", func(e *Evidence) {
			e.did(history.Op{Kind: history.Put, Values: []string{"big-1", "big-1/" + strings.Repeat("x", 2000)}})
		}},
		{"what nobody answered was not counted", func(e *Evidence) {
			e.did(history.Op{Kind: history.Put, Values: []string{"lost-1"}})
			op := &e.Ours.Histories[0]
			op.Outcome, op.Error, op.Revision = history.Unknown, "context deadline exceeded", 0
			delete(e.Arrived, "lost-1")
		}},
		{"the control's reads go back in time", func(e *Evidence) { e.Control.Load.Gets[200].Revision = 1 }},
		{"nothing is expected of the control", func(e *Evidence) {
			e.Scenario.Control = Harmless
			e.Control = e.record("control")
		}},
	} {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			e := sound()
			row.plant(e)
			if v := e.Judge(); v.Status != report.Passed {
				t.Errorf("judged %s (%s) with violations %q; want passed", v.Status, v.Reason, v.Violations)
			}
		})
	}
}
