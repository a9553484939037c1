package report

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// leaving is a scenario in which ours had to leave members.
func leaving(fault, shim string, left ...Left) Scenario {
	return Scenario{Fault: fault, Shim: shim, Status: Passed, Apps: []App{
		{Name: "control", Official: true, Figures: Figures{LastCall: Never, Left: []Left{{Call: Leave{Took: Never, Budget: 1}, Stream: Leave{Took: Never, Budget: 1}}}}},
		{Name: "ours", Figures: Figures{Left: left}},
	}}
}

func leave(took, election, budget float64) Leave {
	return Leave{Took: sec(took), Election: sec(election), Budget: sec(budget)}
}

func TestLeftTellsTheWorstBeyondTheElectionAndItsBudget(t *testing.T) {
	void := leaving("cut", "none", Left{Call: leave(9, 0, 2), Stream: leave(9, 0, 2)})
	void.Status = Void
	r := Run{Scenarios: []Scenario{
		leaving("cut", "sidecar", Left{Call: leave(0.3, 0, 0.4), Stream: leave(1.7, 1.2, 0.8)}, Left{Call: leave(1.5, 1.3, 0.4), Stream: leave(0.6, 0, 0.8)}),
		leaving("cut", "sidecar", Left{Call: leave(0.9, 0, 2), Stream: Leave{}}), // later, and further from what was allowed
		leaving("cut", "in process", Left{Call: leave(1, 1.2, 0.4), Stream: Leave{Took: Never, Budget: sec(0.8)}}),
		leaving("kill", "none", Left{Call: Leave{}, Stream: leave(2.5, 0, 2)}),
		leaving("delay", "none"),
		void,
	}}
	want := [][]string{
		{"cut", "3", "0.30 of 0.40", "0.000 of 0.40", "-", "0.60 of 0.80", "never of 0.80", "-"},
		{"kill", "1", "-", "-", "-", "-", "-", "2.50 of 2.00"},
		{"all", "4", "0.30 of 0.40", "0.000 of 0.40", "-", "0.60 of 0.80", "never of 0.80", "2.50 of 2.00"},
	}
	got := leftRows(r)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !slices.Equal(got[i], want[i]) {
			t.Fatalf("rows\n%q; want\n%q", got, want)
		}
	}
	if len(want[0]) != len(leftColumns) {
		t.Errorf("%d cells under %d headings", len(want[0]), len(leftColumns))
	}
}

// older is a scenario as it was written before there was Left: m2, which leads, is cut at 3 s;
// the others serve again at 4.2 s.
func older() Scenario {
	sc := leaving("cut", "sidecar")
	sc.TargetMember = "m2"
	sc.Marks = []Mark{{sec(2), NoteMark, "x"}, {sec(3), FaultMark, "cut m2"}, {sec(9), MendedMark, "heal"}}
	sc.End = sec(12)
	sc.Lanes = []Lane{
		{Member: "m1", Truth: []Span{{From: sec(0.1), To: sec(3.1), State: "quorum"}, {From: sec(3.1), To: sec(4.2), State: "no-leader"}, {From: sec(4.2), To: sec(12), State: "leader"}}},
		{Member: "m2", Truth: []Span{{From: sec(0.1), To: sec(3.2), State: "leader"}, {From: sec(3.2), To: sec(12), State: "quorum"}}},
		{Member: "m3", Truth: []Span{{From: sec(0.1), To: sec(3.2), State: "quorum"}, {From: sec(3.2), To: sec(4.25), State: "no-leader"}, {From: sec(4.25), To: sec(12), State: "quorum"}}},
	}
	sc.Apps[1].Figures.LastCall, sc.Apps[1].Figures.LastStream = sec(1.5), sec(1.9)
	return sc
}

func TestLeftIsReadFromOlderReportsAsFarAsTheyTell(t *testing.T) {
	for _, c := range []struct {
		name         string
		spoil        func(*Scenario)
		call, stream string
	}{
		{"a leader", func(*Scenario) {}, "0.30 of -", "0.70 of -"},
		{"with a budget", func(sc *Scenario) { sc.Budget = Budget{sec(0.4), sec(0.8)} }, "0.30 of 0.40", "0.70 of 0.80"},
		{"what is told goes before what is guessed", func(sc *Scenario) {
			sc.Apps[1].Figures.Left = []Left{{Call: leave(0.6, 0.5, 1), Stream: leave(0.7, 0.5, 1)}}
		}, "0.10 of 1.00", "0.20 of 1.00"},
		{"a follower", func(sc *Scenario) { sc.Lanes[0].Truth, sc.Lanes[2].Truth = sc.Lanes[1].Truth, nil }, "1.50 of -", "1.90 of -"},
		{"others that flicker in the midst of the election", func(sc *Scenario) {
			sc.Lanes[2].Truth = append(sc.Lanes[2].Truth, Span{From: sec(3.5), To: sec(3.6), State: "quorum"})
		}, "0.30 of -", "0.70 of -"},
		{"a later outage is none of its election", func(sc *Scenario) {
			sc.Lanes[0].Truth[2].To, sc.Lanes[2].Truth[2].To = sec(6), sec(6)
		}, "0.30 of -", "0.70 of -"},
		{"never in what passed was not due", func(sc *Scenario) { sc.Apps[1].Figures.LastStream = Never }, "0.30 of -", "-"},
		{"never in what failed", func(sc *Scenario) { sc.Status, sc.Apps[1].Figures.LastStream = Failed, Never }, "0.30 of -", "never of -"},
	} {
		sc := older()
		c.spoil(&sc)
		rows := leftRows(Run{Scenarios: []Scenario{sc}})
		if want := []string{"cut", "1", c.call, "-", "-", c.stream, "-", "-"}; len(rows) != 2 || !slices.Equal(rows[0], want) {
			t.Errorf("%s: %q; want %q", c.name, rows, want)
		}
	}
	for name, spoil := range map[string]func(*Scenario){
		"no member was the target": func(sc *Scenario) { sc.TargetMember = "" },
		"no fault":                 func(sc *Scenario) { sc.Marks = nil },
		"nothing to be left":       func(sc *Scenario) { sc.Apps[1].Figures = Figures{} },
		"no application of ours":   func(sc *Scenario) { sc.Apps = sc.Apps[:1] },
	} {
		sc := older()
		spoil(&sc)
		if rows := leftRows(Run{Scenarios: []Scenario{sc}}); len(rows) != 0 {
			t.Errorf("%s: %q; want no row: the election is not known", name, rows)
		}
	}
}

func TestTablesWithoutAnythingLeftAreOne(t *testing.T) {
	var plain, markdown strings.Builder
	r := Run{Scenarios: []Scenario{leaving("delay", "none")}}
	if err := Table(&plain, r); err != nil {
		t.Fatal(err)
	}
	if err := Markdown(&markdown, r); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{plain.String(), markdown.String()} {
		if strings.Contains(text, "last stream") || strings.Contains(text, "\n\n") {
			t.Errorf("a table of nothing:\n%s", text)
		}
	}
}

func TestPageTellsWhatWasNotLeftInTime(t *testing.T) {
	text := func(left ...Left) string {
		var b strings.Builder
		if err := (Run{Scenarios: []Scenario{leaving("cut", "in process", left...)}}).WriteHTML(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		left Left
		want string
	}{
		"in time":  {Left{Call: leave(0.3, 0, 0.4), Stream: leave(0.8, 0, 0.8)}, `<td>-</td><td>0.30 of 0.40</td><td>-</td><td>-</td><td>0.80 of 0.80</td><td>-</td>`},
		"too late": {Left{Call: leave(0.5, 0, 0.4), Stream: Leave{Took: Never}}, `<td>-</td><td class="no">0.50 of 0.40</td><td>-</td><td>-</td><td class="no">never of -</td><td>-</td>`},
	} {
		if got := text(c.left); strings.Count(got, "<tr><th>cut</th><td>1</td>"+c.want) != 1 || !strings.Contains(got, leftTitle) {
			t.Errorf("%s: %s is not on the page, or nothing says what it is", name, c.want)
		}
	}
	if strings.Contains(text(), leftTitle) {
		t.Error("the page has a table of nothing")
	}
}

func TestElectionEndsWhereNobodyElseServes(t *testing.T) {
	sc := older()
	for i := range sc.Lanes {
		sc.Lanes[i].Truth = sc.Lanes[i].Truth[:2]
	}
	if got, want := sc.election(sec(3)), sec(9); got != want {
		t.Errorf("%v; want %v: nobody served until the end", got, want)
	}
	if got := (Scenario{}).election(time.Second); got != 0 {
		t.Errorf("%v without members; want 0: nothing is known of them", got)
	}
}
