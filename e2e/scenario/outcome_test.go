package scenario

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

var t0 = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// ms is a moment, in milliseconds after the fault. It is healed at 9000.
func ms(n int) time.Time { return t0.Add(time.Duration(n) * time.Millisecond) }

// stuck is a control as it should be.
var stuck = workload.Figures{Lag: 9 * time.Second}

// dropped is what a leader that hands over answers to a Put.
var dropped = status.Error(codes.Unknown, "raft proposal dropped")

func TestJudgeCatchesEveryKindOfPlantedFailure(t *testing.T) {
	cut := Scenario{Budget: noQuorum}
	calm := Scenario{Control: Unharmed}
	drift := client.MoveKind{Class: "watch", Reason: client.ReasonDrift}
	overdue := client.MoveKind{Class: "lease", Reason: client.ReasonKeepalive}
	for _, tc := range []struct {
		name    string
		sc      Scenario
		out     Outcome
		ours    workload.Record
		history workload.History
		machine lags
		stood   spans // Still is then at least as long
		moved   []string
		void    bool
		say     string // the one violation; "" for none
		doubt   string // what is in doubt; "" for nothing
	}{
		{name: "all is well", sc: cut, out: Outcome{Control: stuck}},
		{name: "control not stuck", sc: cut, out: Outcome{Control: workload.Figures{Lag: stuckAfter}}, void: true},
		{name: "control stuck by the election alone", sc: cut, void: true,
			out: Outcome{Elected: time.Second, Control: workload.Figures{GetMax: stuckAfter + time.Second}}},
		{name: "the cluster stood still", sc: calm, out: Outcome{Still: stillMost + 1}, void: true},
		{name: "control may be well when nothing is bad", sc: calm},
		{name: "a Get failed", sc: calm, out: Outcome{Ours: workload.Figures{Gets: 5, GetsFailed: 1}}, say: "1 of 5 Gets failed"},
		{name: "a Put failed", sc: calm, out: Outcome{Ours: workload.Figures{PutsFailed: 1}}, say: "1 Puts failed"},
		{name: "a leader that hands over drops a Put", sc: calm, out: Outcome{Ours: workload.Figures{PutsFailed: 1, PutsDropped: 1}}},
		{name: "a Put failed beside a dropped one", sc: calm, out: Outcome{Ours: workload.Figures{PutsFailed: 2, PutsDropped: 1}}, say: "1 Puts failed"},
		{name: "a new call too late", sc: cut, say: "last new call went to the member after 401ms",
			out: Outcome{Control: stuck, Ours: workload.Figures{LastCall: 401 * time.Millisecond}}},
		{name: "a call within an election more", sc: cut,
			out: Outcome{Control: stuck, Elected: time.Second, Ours: workload.Figures{LastCall: 1400 * time.Millisecond}}},
		{name: "a read never re-sent", sc: cut, say: "last read on the member ended after never",
			out: Outcome{Control: stuck, Ours: workload.Figures{LastRead: workload.Never}}},
		{name: "a stream too late", sc: cut, say: "last stream left the member after 801ms",
			out: Outcome{Control: stuck, Ours: workload.Figures{LastStream: 801 * time.Millisecond}}},
		{name: "a watch moved for nothing", sc: calm, say: "1 moves of watch",
			out: Outcome{Moves: map[client.MoveKind]int{drift: 1}}},
		{name: "a watch opened again without a word", sc: calm, say: "1 watch streams were opened again",
			out: Outcome{Ours: workload.Figures{WatchesReopened: 1}}},
		{name: "an overdue keepalive may reopen its stream", sc: calm,
			out: Outcome{Moves: map[client.MoveKind]int{overdue: 1}, Ours: workload.Figures{LeasesReopened: 1}}},
		{name: "a read may be sent again in an election", sc: calm,
			out: Outcome{Moves: map[client.MoveKind]int{{Class: "read", Reason: "no-quorum"}: 1}}},
		{name: "a lease stream opened again for nothing", sc: calm, say: "2 lease streams were opened again",
			out: Outcome{Moves: map[client.MoveKind]int{overdue: 1}, Ours: workload.Figures{LeasesReopened: 2}}},
		{name: "the member is not used again", sc: Scenario{Control: Unharmed, Returns: true}, say: "after the heal 7 calls and 0 streams",
			out: Outcome{Ours: workload.Figures{CallsBack: 7}}},
		{name: "an event lost", sc: calm, say: "never delivered revision 5",
			ours:    workload.Record{StartRev: 4, Watches: []workload.WatchRecord{{Name: "w"}}},
			history: workload.History{Events: []workload.Event{{Revision: 4, Value: "old"}, {Revision: 5, Value: "x"}}}},
		{name: "a write that was given up may be applied after the end", sc: calm,
			ours:    workload.Record{StartRev: 5, Watches: []workload.WatchRecord{{Name: "w"}}},
			history: workload.History{Events: []workload.Event{{Revision: 6, Value: "late"}}}},
		{name: "a lease lost", sc: calm, say: "its keepalive channel closed",
			ours: workload.Record{Leases: []workload.LeaseRecord{{Name: "l", ClosedAt: ms(5000)}}}},
		{name: "something moved before the fault", sc: cut, out: Outcome{Control: stuck}, moved: []string{"it moved a watch"}, say: "it moved a watch"},
		{name: "a Put applied twice", sc: calm, say: "applied 2 times",
			ours:    workload.Record{Puts: []workload.Op{{ID: "p"}}},
			history: workload.History{Applied: map[string]int{"p": 2}}},

		// What a late machine explains, and what it does not.
		{name: "late, and all is well", sc: cut, out: Outcome{Control: stuck}, machine: lateBy(300, 200)},
		{name: "late, and control not stuck", sc: cut, machine: lateBy(300, 200), void: true},
		{name: "late for a call", sc: cut, machine: lateBy(300, 101), void: true, doubt: "after 500ms; want at most 400ms",
			out: Outcome{Control: stuck, Ours: workload.Figures{LastCall: 500 * time.Millisecond}}},
		{name: "late again and again before the fault", sc: cut, machine: lateBy(-310, 90, -210, 90, -110, 90, -10, 1, 0, 1, 10, 1, 20, 1, 30, 1), void: true, doubt: "after 660ms; want at most 400ms",
			out: Outcome{Control: stuck, Ours: workload.Figures{LastCall: 660 * time.Millisecond}}},
		{name: "late again and again before the fault, by less than the call", sc: cut, machine: lateBy(-310, 90, -210, 90, -110, 90, -10, 1, 0, 1, 10, 1, 20, 1, 30, 1), say: "after 680ms; want at most 400ms",
			out: Outcome{Control: stuck, Ours: workload.Figures{LastCall: 680 * time.Millisecond}}},
		{name: "late again and again long before the fault", sc: cut, machine: lateBy(-1310, 90, -1210, 90, -1110, 90, -10, 1, 0, 1, 10, 1, 20, 1, 30, 1), say: "after 500ms; want at most 400ms",
			out: Outcome{Control: stuck, Ours: workload.Figures{LastCall: 500 * time.Millisecond}}},
		{name: "a little late all the time before the fault", sc: cut, machine: always(-1000, 0, 9), say: "after 500ms; want at most 400ms",
			out: Outcome{Control: stuck, Ours: workload.Figures{LastCall: 500 * time.Millisecond}}},
		{name: "late by less than the call", sc: cut, machine: lateBy(300, 99), say: "after 500ms; want at most 400ms",
			out: Outcome{Control: stuck, Ours: workload.Figures{LastCall: 500 * time.Millisecond}}},
		{name: "late after the call", sc: cut, machine: lateBy(700, 150), say: "after 500ms; want at most 400ms",
			out: Outcome{Control: stuck, Ours: workload.Figures{LastCall: 500 * time.Millisecond}}},
		{name: "late, but not for the whole fault", sc: cut, machine: lateBy(3000, 2900), say: "last read on the member ended after never",
			out: Outcome{Control: stuck, Ours: workload.Figures{LastRead: workload.Never}}},
		{name: "late for a lease", sc: calm, machine: lateBy(3000, 600), void: true, doubt: "its keepalive channel closed",
			ours: workload.Record{Leases: []workload.LeaseRecord{{Name: "l", ClosedAt: ms(5000)}}}},
		{name: "late long before a lease", sc: calm, machine: lateBy(-500, 600), say: "its keepalive channel closed",
			ours: workload.Record{Leases: []workload.LeaseRecord{{Name: "l", ClosedAt: ms(5000)}}}},
		{name: "no leader for a lease", sc: calm, out: Outcome{Still: stillMost + 1}, void: true, doubt: "its keepalive channel closed",
			ours: workload.Record{Leases: []workload.LeaseRecord{{Name: "l", ClosedAt: ms(5000)}}}},
		{name: "late for a Get", sc: calm, machine: lateBy(3000, 600), void: true, doubt: "1 of 1 Gets failed",
			out:  Outcome{Ours: workload.Figures{Gets: 1, GetsFailed: 1}},
			ours: workload.Record{Gets: []workload.Op{{Began: ms(0), Ended: ms(5000), Err: context.DeadlineExceeded}}}},
		{name: "late for one of two Gets", sc: calm, machine: lateBy(3000, 600), say: "2 of 2 Gets failed",
			out: Outcome{Ours: workload.Figures{Gets: 2, GetsFailed: 2}},
			ours: workload.Record{Gets: []workload.Op{
				{Began: ms(0), Ended: ms(5000), Err: context.DeadlineExceeded}, {Began: ms(6000), Ended: ms(11000), Err: context.DeadlineExceeded},
			}}},
		{name: "late for a Put, not for a dropped one", sc: calm, machine: lateBy(3000, 600), void: true, doubt: "1 Puts failed",
			out: Outcome{Ours: workload.Figures{PutsFailed: 2, PutsDropped: 1}},
			ours: workload.Record{Puts: []workload.Op{
				{ID: "p", Began: ms(0), Ended: ms(5000), Err: context.Canceled}, {ID: "q", Began: ms(6000), Ended: ms(6100), Err: dropped},
			}},
			history: workload.History{Applied: map[string]int{"p": 1}}},
		{name: "late, and a watch moved", sc: calm, machine: lateBy(300, 150), void: true, doubt: "1 moves of watch",
			out: Outcome{Moves: map[client.MoveKind]int{drift: 1}}},
		{name: "late, and an event lost", sc: calm, machine: lateBy(300, 600), say: "never delivered revision 5",
			ours:    workload.Record{StartRev: 4, Watches: []workload.WatchRecord{{Name: "w"}}},
			history: workload.History{Events: []workload.Event{{Revision: 5, Value: "x"}}}},

		// What a cluster that stood still explains, and what it does not.
		{name: "no leader for a Get", sc: calm, stood: spans{{ms(0), ms(4000)}}, void: true, doubt: "1 of 1 Gets failed",
			out:  Outcome{Ours: workload.Figures{Gets: 1, GetsFailed: 1}},
			ours: workload.Record{Gets: []workload.Op{{Began: ms(0), Ended: ms(5000), Err: context.DeadlineExceeded}}}},
		{name: "no leader, but not for this Get", sc: calm, stood: spans{{ms(0), ms(4000)}}, void: true, say: "1 of 1 Gets failed",
			out:  Outcome{Ours: workload.Figures{Gets: 1, GetsFailed: 1}},
			ours: workload.Record{Gets: []workload.Op{{Began: ms(3600), Ended: ms(8600), Err: context.DeadlineExceeded}}}},
		{name: "no leader for a Put", sc: calm, stood: spans{{ms(0), ms(4000)}}, void: true, doubt: "1 Puts failed",
			out:     Outcome{Ours: workload.Figures{PutsFailed: 1}},
			ours:    workload.Record{Puts: []workload.Op{{ID: "p", Began: ms(0), Ended: ms(5000), Err: context.Canceled}}},
			history: workload.History{Applied: map[string]int{"p": 1}}},
		{name: "no leader, and a watch moved", sc: calm, stood: spans{{ms(0), ms(4000)}}, void: true, doubt: "1 moves of watch",
			out: Outcome{Moves: map[client.MoveKind]int{drift: 1}}},
		{name: "no leader for long, and a watch moved", sc: calm, out: Outcome{Still: stillMost, Moves: map[client.MoveKind]int{drift: 1}}, say: "1 moves of watch"},
		{name: "no leader, and something moved before the fault", sc: cut, stood: spans{{ms(-4000), ms(-500)}}, void: true,
			moved: []string{"it moved a watch"}, doubt: "it moved a watch"},
		{name: "no leader after the fault, and something moved before it", sc: cut, stood: spans{{ms(0), ms(4000)}}, void: true,
			moved: []string{"it moved a watch"}, say: "it moved a watch"},
		{name: "no leader for a call", sc: cut, stood: spans{{ms(0), ms(4000)}}, void: true, doubt: "after 4.2s; want at most 400ms",
			out: Outcome{Ours: workload.Figures{LastCall: 4200 * time.Millisecond}}},
		{name: "a leader again for longer than a call takes", sc: cut, stood: spans{{ms(0), ms(4000)}}, void: true, say: "after 4.5s; want at most 400ms",
			out: Outcome{Ours: workload.Figures{LastCall: 4500 * time.Millisecond}}},
		{name: "a leader until the call was late", sc: cut, stood: spans{{ms(4000), ms(8000)}}, void: true, say: "after 500ms; want at most 400ms",
			out: Outcome{Ours: workload.Figures{LastCall: 500 * time.Millisecond}}},
		{name: "no leader after the heal", sc: Scenario{Control: Unharmed, Returns: true}, stood: spans{{ms(9000), ms(13000)}}, void: true, doubt: "after the heal 0 calls"},
		{name: "a leader after the heal", sc: Scenario{Control: Unharmed, Returns: true}, stood: spans{{ms(0), ms(4000)}}, void: true, say: "after the heal 0 calls"},
		{name: "no leader, and an event lost", sc: calm, stood: spans{{ms(0), ms(4000)}}, void: true, say: "never delivered revision 5",
			ours:    workload.Record{StartRev: 4, Watches: []workload.WatchRecord{{Name: "w"}}},
			history: workload.History{Events: []workload.Event{{Revision: 5, Value: "x"}}}},
		{name: "no leader, and a Put applied twice", sc: calm, stood: spans{{ms(0), ms(4000)}}, void: true, say: "applied 2 times",
			ours:    workload.Record{Puts: []workload.Op{{ID: "p"}}},
			history: workload.History{Applied: map[string]int{"p": 2}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := tc.out
			for _, s := range tc.stood {
				out.Still = max(out.Still, s.to.Sub(s.from))
			}
			tc.ours.Began, tc.ours.Ended = ms(-5000), ms(14000)
			out.judge(tc.sc, evidence{
				marks: marks{cut: t0, heal: ms(9000)}, ours: tc.ours, history: tc.history, upTo: 5,
				machine: tc.machine, stood: tc.stood, moved: tc.moved,
			})
			if (out.Void != "") != tc.void {
				t.Errorf("void = %q, want void: %v", out.Void, tc.void)
			}
			switch {
			case tc.say == "" && len(out.Violations) > 0:
				t.Errorf("violations %q where all is well", out.Violations)
			case tc.say != "" && (len(out.Violations) != 1 || !strings.Contains(out.Violations[0], tc.say)):
				t.Errorf("violations %q; want one with %q", out.Violations, tc.say)
			}
			if got := strings.Join(out.Doubts, "; "); (got == "") != (tc.doubt == "") || !strings.Contains(got, tc.doubt) {
				t.Errorf("in doubt is %q; want %q", got, tc.doubt)
			}
			if want := !tc.void && tc.say == ""; out.OK() != want {
				t.Errorf("OK() = %v, want %v", out.OK(), want)
			}
			if want := tc.void && tc.say == "" && (tc.doubt != "" || out.Still > stillMost); out.Luck() != want {
				t.Errorf("Luck() = %v, want %v: only then it is played again", out.Luck(), want)
			}
		})
	}
}

func TestOnlyAStartOrALateMachineIsBadLuck(t *testing.T) {
	late := Outcome{Void: "late", Doubts: []string{"a call took too long"}}
	stopped, stop := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	stop(interrupted)
	_, unstarted := Run(t.Context(), Scenario{Name: "none", Members: -1}, Options{})
	_, ended := Run(stopped, Scenario{Name: "none", Members: 1}, Options{})
	if !errors.Is(ended, interrupted) {
		t.Errorf("interrupted while it starts: %v; want %v", ended, interrupted)
	}
	for _, tc := range []struct {
		name string
		out  Outcome
		err  error
		want bool
	}{
		{"all is well", Outcome{}, nil, false},
		{"a late machine", late, nil, true},
		{"a late machine, and a violation", Outcome{Void: "late", Doubts: late.Doubts, Violations: []string{"lost"}}, nil, false},
		{"control not stuck", Outcome{Void: "not stuck"}, nil, false},
		{"it did not start", Outcome{}, unstarted, true},
		{"ours did not start where the control did", Outcome{}, notStarted(workload.Started(context.DeadlineExceeded, nil)), false},
		{"both did not start", Outcome{}, notStarted(workload.Started(context.DeadlineExceeded, context.DeadlineExceeded)), true},
		{"interrupted while it starts", Outcome{}, ended, false},
		{"a step failed", late, errors.New("step"), false},
	} {
		if why, got := Unlucky(tc.out, tc.err); got != tc.want || got && why == "" {
			t.Errorf("%s: bad luck %v (%q), want %v", tc.name, got, why, tc.want)
		}
	}
}

func TestReportShowsBothClientsAndWhatNeverEnded(t *testing.T) {
	var b strings.Builder
	out := Outcome{Scenario: "s", Control: workload.Figures{LastStream: workload.Never}, ControlStuck: "lease lost"}
	if err := Report(&b, []Outcome{out}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "quorumwise") || !strings.Contains(lines[2], "never") || !strings.Contains(lines[2], "lease lost") {
		t.Errorf("report:\n%s\nwant a heading, ours, and the control with its never and why it was stuck", b.String())
	}
}
