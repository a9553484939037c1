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
		{"a mutation reaches servers twice", func(e *Evidence) { e.Arrived = map[string]int{"ours-7": 2} }, report.Failed, "reached servers 2 times"},
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
		}, report.Failed, "the last new call went to m2 450ms after cut; want at most 400ms"},
		{"a read stays on the bad member", func(e *Evidence) {
			e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodRange, Address: address("m2"), Began: at(cutAt - time.Millisecond)})
		}, report.Failed, "the last read on m2 ended never after cut"},
		{"a stream leaves the bad member too late", func(e *Evidence) {
			e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodWatch, Address: address("m2"), Began: at(loadBegins), Ended: at(cutAt + 900*time.Millisecond)})
		}, report.Failed, "the last stream left m2 900ms after cut; want at most 800ms"},
		{"nothing returns to the member", func(e *Evidence) {
			for i := range e.Ours.Attempts {
				if a := &e.Ours.Attempts[i]; a.Began.After(at(healedAt)) {
					a.Address = address("m1")
				}
			}
		}, report.Failed, "no call went to the member"},
		{"no stream returns to the member", func(e *Evidence) { e.Scenario.Returns = true }, report.Failed, "no stream went to the member"},
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
		{"a goroutine is left", func(e *Evidence) { e.Ours.Leaks.Goroutines[1]++ }, report.Failed, "goroutines"},
		{"a descriptor is left", func(e *Evidence) { e.Ours.Leaks.Descriptors[1]++ }, report.Failed, "open files"},
		{"a connection is left", func(e *Evidence) { e.Ours.Leaks.Connections = []string{"a to b"} }, report.Failed, "connections are left"},
		{"members hold connections", func(e *Evidence) { e.Connected["ours"] = 2 }, report.Failed, "still hold 2 connections"},
		{"a member ends by itself", func(e *Evidence) { e.Crashed = []string{"m3: etcd ended by itself: exit status 2"} }, report.Failed, "m3: etcd ended by itself"},
		{"ours dies", func(e *Evidence) { e.Died["ours"], e.Ours = "exit status 2", app.Record{Name: "ours"} }, report.Failed, "died: exit status 2"},
		{"the control dies", func(e *Evidence) { e.Died["control"], e.Control = "exit status 2", app.Record{Name: "control"} }, report.Broken, "exit status 2"},
		{"the scenario's own claim fails", func(e *Evidence) {
			e.Scenario.Judge = func(*Evidence) []string { return []string{"it was not so"} }
		}, report.Failed, "it was not so"},
		{"a checker crashes", func(e *Evidence) {
			e.Scenario.Judge = func(*Evidence) []string { panic("division by zero") }
		}, report.Broken, "a checker crashed: division by zero"},
		{"the machine is late and a budget is missed", func(e *Evidence) {
			e.Lateness.Worst = 600 * time.Millisecond
			e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodWatch, Address: address("m2"), Began: at(loadBegins), Ended: at(cutAt + 900*time.Millisecond)})
		}, report.Void, "the machine was late by up to 600ms"},
		{"a claim about time fails", func(e *Evidence) {
			e.Scenario.Timing = func(*Evidence) []string { return []string{"it was too late"} }
		}, report.Failed, "it was too late"},
		{"the machine is late and a claim about time fails", func(e *Evidence) {
			e.Lateness.Worst = 600 * time.Millisecond
			e.Scenario.Timing = func(*Evidence) []string { return []string{"it was too late"} }
		}, report.Void, "the machine was late by up to 600ms"},
		{"the machine is late and another claim fails", func(e *Evidence) {
			e.Lateness.Worst = 600 * time.Millisecond
			e.Scenario.Judge = func(*Evidence) []string { return []string{"it was not so"} }
		}, report.Failed, "it was not so"},
		{"the machine is late and an event is lost", func(e *Evidence) {
			e.Lateness.Worst = 600 * time.Millisecond
			w := &e.Ours.Load.Watches[0]
			w.Events = append(w.Events[:100:100], w.Events[101:]...)
		}, report.Failed, "never delivered revision"},
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
		{"sound on a late machine", func(e *Evidence) { e.Lateness.Worst = time.Second }, report.Passed, false},
		{"the control suffers nothing", idle, report.Void, false},
		{"the control suffers nothing on a late machine", func(e *Evidence) { idle(e); e.Lateness.Worst = time.Second }, report.Void, true},
		{"a claim about time fails on a late machine", func(e *Evidence) {
			e.Lateness.Worst, e.Scenario.Timing = time.Second, func(*Evidence) []string { return []string{"too late"} }
		}, report.Void, true},
		{"a claim about time fails", func(e *Evidence) { e.Scenario.Timing = func(*Evidence) []string { return []string{"too late"} } }, report.Failed, false},
		{"another claim fails on a late machine", func(e *Evidence) {
			e.Lateness.Worst, e.Scenario.Judge = time.Second, func(*Evidence) []string { return []string{"not so"} }
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
			e.Scenario.Control = Open
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
		{"an overdue keepalive opens a lease stream again", func(e *Evidence) {
			unharmed(e)
			e.Ours.Moves = []app.Move{{At: at(5 * time.Second), Class: "lease", Endpoint: address("m2"), Reason: client.ReasonKeepalive}}
			e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodKeepAlive, Address: address("m2"), Began: at(5 * time.Second)})
		}},
		{"a leader that stood still revokes a lease when it goes on", func(e *Evidence) {
			e.seen("m2", 0, cutAt, realetcd.Leader)
			e.Samples[len(e.Samples)-1].State = realetcd.Frozen
			revokedEarly(e)
		}},
		{"the control's reads go back in time", func(e *Evidence) { e.Control.Load.Gets[200].Revision = 1 }},
		{"nothing is expected of the control", func(e *Evidence) {
			e.Scenario.Control = Open
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
