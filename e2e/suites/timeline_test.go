//go:build linux

package suites

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/report"
)

func TestReportShowsWhatHappenedOnTheTimeline(t *testing.T) {
	e := sound()
	e.Version = "3.7.3"
	e.Marks = []report.Mark{{At: cutAt, Kind: report.FaultMark, Text: "cut"}}
	e.Ours.Grades = []app.Grade{
		{At: at(loadBegins), Endpoint: address("m2"), Grade: "healthy"},
		{At: at(leftAt), Endpoint: address("m2"), Grade: "unhealthy", Reason: "no-quorum"},
	}
	for i := range e.Samples {
		if s := &e.Samples[i]; s.Member == "m2" && s.At.Equal(at(cutAt)) {
			s.Shim = "not-serving (no-quorum)"
		}
	}
	r := e.Report(e.Judge())
	if r.Status != report.Passed || r.TargetMember != "m2" || r.End != loadEnds || r.Version != "3.7.3" || r.Fault != "cut" || len(r.Marks) != 1 || r.Budget != report.Budget(noQuorum) {
		t.Errorf("the report is %s of target %q, ends at %v, of version %q, fault %q, with %d marks and the budget %v; want passed, m2, %v, 3.7.3, cut, 1, %v",
			r.Status, r.TargetMember, r.End, r.Version, r.Fault, len(r.Marks), r.Budget, loadEnds, noQuorum)
	}
	wantLane := report.Lane{
		Member: "m2", Address: address("m2"),
		Truth: []report.Span{{From: 0, To: cutAt, State: "quorum"}, {From: cutAt, To: healedAt, State: "no-quorum"}, {From: healedAt, To: loadEnds, State: "quorum"}},
		Shim: []report.Span{
			{From: 0, To: cutAt, State: "serving"},
			{From: cutAt, To: healedAt, State: "not-serving", Detail: "no-quorum"},
			{From: healedAt, To: loadEnds, State: "serving"},
		},
	}
	if diff := cmp.Diff(wantLane, r.Lanes[1]); diff != "" {
		t.Errorf("the lane of m2 (-want +got):\n%s", diff)
	}
	if len(r.Apps) != 2 || r.Apps[0].Name != "ours" || !r.Apps[1].Official {
		t.Fatalf("the report has applications %v; want ours and the official one", r.Apps)
	}
	m2 := r.Apps[0].Members[1]
	wantGrades := []report.Span{{From: loadBegins, To: leftAt, State: "healthy"}, {From: leftAt, To: loadEnds, State: "unhealthy", Detail: "no-quorum"}}
	if diff := cmp.Diff(wantGrades, m2.Grades); diff != "" {
		t.Errorf("the grades of m2 (-want +got):\n%s", diff)
	}
	wantStreams := []report.Point{{}, {At: loadBegins - 100*time.Millisecond, N: 2}, {At: leftAt, N: 0}}
	if diff := cmp.Diff(wantStreams, m2.Streams); diff != "" {
		t.Errorf("the streams on m2 (-want +got):\n%s", diff)
	}
	calls := 0
	for _, p := range m2.Calls {
		if calls += p.N; p.At > cutAt+200*time.Millisecond && p.At < healedAt {
			t.Errorf("%d calls on m2 at %v; want none while it is cut", p.N, p.At)
		}
	}
	want := 0
	for _, a := range e.Ours.Attempts {
		if a.Address == address("m2") && !a.Stream() {
			want++
		}
	}
	if calls != want {
		t.Errorf("%d calls on m2 in all slices, want %d", calls, want)
	}
	wantMove := report.Move{At: leftAt, Member: "m2", Class: "lease", Reason: "no-quorum"}
	if diff := cmp.Diff(wantMove, r.Apps[0].Moves[0]); diff != "" {
		t.Errorf("the first move (-want +got):\n%s", diff)
	}
}

func TestFiguresCountFromTheFaultOn(t *testing.T) {
	e := sound()
	ours, control := e.figures(e.Ours), e.figures(e.Control)
	if ours.LastStream != leftAt-cutAt || ours.EventsLost != 0 || ours.Stuck != "" {
		t.Errorf("ours: last stream left after %v, %d events lost, stuck: %q; want %v, none, not stuck", ours.LastStream, ours.EventsLost, ours.Stuck, leftAt-cutAt)
	}
	if control.Stuck == "" || control.Silence < healedAt-cutAt-eventEvery || control.Lag < healedAt-cutAt-eventEvery {
		t.Errorf("control: stuck %q, silent for %v, behind by %v; want stuck for about %v", control.Stuck, control.Silence, control.Lag, healedAt-cutAt)
	}
	if n := ours.Calls["get"].N; n < 440 || n > 451 {
		t.Errorf("%d Gets are in the figures, want those from the fault on, about 450", n)
	}
	failing(e, 3100*time.Millisecond, 8100*time.Millisecond)
	failing(e, 1100*time.Millisecond, 1200*time.Millisecond) // before the fault
	if f := e.figures(e.Ours); f.Failed["get"] != 1 || f.Avoidable != 1 {
		t.Errorf("%d Gets failed, %d calls avoidably; want 1 and 1: another member served", f.Failed["get"], f.Avoidable)
	}
}
