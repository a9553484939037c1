package report

import (
	"slices"
	"testing"
	"time"
)

func played(fault string, s Status, ours, control time.Duration) Scenario {
	return Scenario{Fault: fault, Suite: "matrix", Status: s, Apps: []App{
		{Name: "control", Official: true, Figures: Figures{Silence: control, EventsLost: 2, LeasesLost: 1, Leases: 3, Avoidable: 7}},
		{Name: "ours", Figures: Figures{Silence: ours, FalseMoves: 1, Leases: 3, Avoidable: 2, Calls: map[string]Quantiles{"get": {N: 1, Max: ours / 2}, "put": {N: 1, Max: ours / 4}}}},
	}}
}

func TestFiguresPerFaultCountWhatHasShownSomething(t *testing.T) {
	failed := played("cut", Failed, sec(4), Never)
	failed.Violations = []string{"a", "b"}
	r := Run{Scenarios: []Scenario{
		played("cut", Passed, sec(1), sec(9)),
		played("freeze", Passed, sec(7), sec(8)),
		failed,
		played("cut", Void, sec(2), sec(0.2)),
		played("cut", Skipped, sec(50), sec(0)),
		played("cut", Broken, sec(60), sec(0)),
		{Suite: "operations", Status: Passed},
	}}
	rows, all := r.faults()
	var names []string
	for _, f := range rows {
		names = append(names, f.fault)
	}
	if want := []string{"cut", "freeze", "operations"}; !slices.Equal(names, want) {
		t.Fatalf("faults %v, want %v: in the order in which they were played", names, want)
	}
	cut := rows[0]
	if cut.scenarios != 2 || cut.uncounted != 3 || cut.violations != 2 || cut.falseMoves != 2 || cut.control.lost != 4 {
		t.Errorf("%+v; want 2 counted, 3 not, 2 violations, 2 false moves, 4 events lost by the control", cut)
	}
	for _, c := range []struct {
		what      string
		got, want string
	}{
		{"our silence", cut.ours.silence.String(), "4.00 / 4.00"},
		{"the control's, where one never ended", cut.control.silence.String(), "never / never"},
		{"our slowest call, of any class", cut.ours.call.String(), "2.00 / 2.00"},
		{"the control's calls, which nobody measured", cut.control.call.String(), "-"},
		{"one scenario", rows[1].ours.silence.String(), "7.00"},
		{"all", all.ours.silence.String(), "4.00 / 7.00"},
		{"two: the worse one is told", spread{sec(1), Never}.String(), "never / never"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.what, c.got, c.want)
		}
	}
}

// A row of the table is read by its columns: what stands where must not change places.
func TestRowsTellLeasesLostAndCallsThatFailedAvoidably(t *testing.T) {
	lost := played("cut", Failed, sec(4), Never)
	lost.Apps[1].Figures.LeasesLost = 1
	r := Run{Scenarios: []Scenario{played("cut", Passed, sec(1), sec(9)), lost, played("cut", Void, sec(1), sec(9))}}
	row := tableRows(r)[0]
	for column, want := range map[string]string{"leases lost, ours / official": "1 / 2", "avoidable calls, ours / official": "4 / 14", "events lost": "0 (official 4)", "violations": "0"} {
		i := slices.Index(columns, column)
		if i < 0 || i >= len(row) {
			t.Errorf("no column %q in %q", column, columns)
		} else if row[i] != want {
			t.Errorf("%s: %q, want %q: of the two that count", column, row[i], want)
		}
	}
	if len(row) != len(columns) {
		t.Errorf("%d cells under %d headings", len(row), len(columns))
	}
}

func TestNothingIsSaidOfFaultsThatNothingWasShownOf(t *testing.T) {
	rows := tableRows(Run{Scenarios: []Scenario{played("cut", Broken, 0, 0)}})
	if got, want := rows[0], []string{"cut", "0 of 1", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v: a 0 would be a claim", got, want)
	}
}

func TestDotsThatCoincideAreDrawnOnce(t *testing.T) {
	got := distinct(spread{sec(1), sec(1.01), sec(1.02), sec(2), Never, Never})
	if want := (spread{sec(1), sec(2), Never}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := len(distinct(spread{0, 0})); got != 1 {
		t.Errorf("two silences of nothing: %d dots, want 1", got)
	}
}

func TestDotsStayOnTheirAxis(t *testing.T) {
	ax := newLogAxis(faultFigures{ours: side{silence: spread{0, sec(0.001), sec(700), Never}}})
	last := 0.0
	for _, d := range []time.Duration{0, sec(0.001), sec(0.5), sec(700), Never} {
		x := ax.x(d)
		if x < last || x > dotsWidth {
			t.Errorf("%v stands at %v, after %v", d, x, last)
		}
		last = x
	}
	if ax.x(Never) <= ax.x(sec(700)) {
		t.Error("what never ended cannot be told from what did")
	}
}
