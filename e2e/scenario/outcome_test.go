package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// stuck is a control as it should be.
var stuck = workload.Figures{Lag: 9 * time.Second}

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
		void    bool
		say     string // the one violation; "" for none
	}{
		{name: "all is well", sc: cut, out: Outcome{Control: stuck}},
		{name: "control not stuck", sc: cut, out: Outcome{Control: workload.Figures{Lag: stuckAfter}}, void: true},
		{name: "control stuck by the election alone", sc: cut, void: true,
			out: Outcome{Elected: time.Second, Control: workload.Figures{GetMax: stuckAfter + time.Second}}},
		{name: "the cluster stood still", sc: calm, out: Outcome{Still: stillMost + 1}, void: true},
		{name: "control may be well when nothing is bad", sc: calm},
		{name: "a Get failed", sc: calm, out: Outcome{Ours: workload.Figures{Gets: 5, GetsFailed: 1}}, say: "1 of 5 Gets failed"},
		{name: "a Put failed", sc: calm, out: Outcome{Ours: workload.Figures{PutsFailed: 1}}, say: "1 Puts failed"},
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
			ours: workload.Record{Leases: []workload.LeaseRecord{{Name: "l", ClosedAt: time.Now()}}}},
		{name: "a Put applied twice", sc: calm, say: "applied 2 times",
			ours:    workload.Record{Puts: []workload.Op{{ID: "p"}}},
			history: workload.History{Applied: map[string]int{"p": 2}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := tc.out
			out.judge(tc.sc, tc.ours, tc.history, 5, nil)
			if (out.Void != "") != tc.void {
				t.Errorf("void = %q, want void: %v", out.Void, tc.void)
			}
			switch {
			case tc.say == "" && len(out.Violations) > 0:
				t.Errorf("violations %q where all is well", out.Violations)
			case tc.say != "" && (len(out.Violations) != 1 || !strings.Contains(out.Violations[0], tc.say)):
				t.Errorf("violations %q; want one with %q", out.Violations, tc.say)
			}
			if want := !tc.void && tc.say == ""; out.OK() != want {
				t.Errorf("OK() = %v, want %v", out.OK(), want)
			}
		})
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
