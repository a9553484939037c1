package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// measure is one figure of an application.
type measure struct {
	name string
	of   func(Figures) cell
}

var measures = []measure{
	{"longest silence of a watch", func(f Figures) cell { return duration(f.Silence) }},
	{"latest event, against the reference", func(f Figures) cell { return duration(f.Lag) }},
	{"last new call went to the member after", func(f Figures) cell { return left(f.LastCall) }},
	{"last read on it ended after", func(f Figures) cell { return left(f.LastRead) }},
	{"last stream left it after", func(f Figures) cell { return left(f.LastStream) }},
	{"last mutation on it ended after", func(f Figures) cell { return left(f.LastMutation) }},
	{"calls that a better choice of member would have served", func(f Figures) cell { return bad(f.Avoidable) }},
	{"mutations of unknown outcome", func(f Figures) cell { return number(f.Unknown) }},
	{"streams moved off a healthy member", func(f Figures) cell { return bad(f.FalseMoves) }},
	{"events lost", func(f Figures) cell { return bad(f.EventsLost) }},
	{"events doubled", func(f Figures) cell { return bad(f.EventsTwice) }},
	{"leases lost", func(f Figures) cell {
		return cell{fmt.Sprintf("%d of %d", f.LeasesLost, f.Leases), f.LeasesLost > 0}
	}},
	{"watches closed under the user", func(f Figures) cell { return bad(f.Closed) }},
	{"got stuck", func(f Figures) cell {
		if f.Stuck == "" {
			return cell{Text: "no"}
		}
		return cell{clean(f.Stuck), true}
	}},
}

func number(n int) cell { return cell{Text: strconv.Itoa(n)} }

// left is when something left a member; zero is that nothing was there to leave, or that the
// member was well again before it was due.
func left(d time.Duration) cell {
	if d == 0 {
		return cell{Text: "-"}
	}
	return duration(d)
}

// figureRows are the figures of the applications side by side, and their calls by class.
func (sc Scenario) figureRows() (names []string, figures []figureRow, calls []callRow) {
	if len(sc.Apps) == 0 {
		return nil, nil, nil
	}
	classes := map[string]bool{}
	for _, a := range sc.Apps {
		names = append(names, clean(a.Name))
		for class := range maps.Keys(a.Figures.Calls) {
			classes[class] = true
		}
		for class := range maps.Keys(a.Figures.Failed) {
			classes[class] = true
		}
	}
	for _, m := range measures {
		row := figureRow{Name: m.name}
		for _, a := range sc.Apps {
			row.Cells = append(row.Cells, m.of(a.Figures))
		}
		figures = append(figures, row)
	}
	calls = append(calls, sc.silences(names))
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		row := callRow{Class: clean(class)}
		for i, a := range sc.Apps {
			row.Apps = append(row.Apps, callsOf{names[i], callCells(a.Figures.Calls[class], a.Figures.Failed[class])})
		}
		calls = append(calls, row)
	}
	return names, figures, calls
}

// silences are the columns of the watches, each of which is silent for some time; "-" in a report
// that does not tell more than the longest.
func (sc Scenario) silences(names []string) callRow {
	row := callRow{Class: "silence of each watch"}
	for i, a := range sc.Apps {
		cells := callCells(a.Figures.Silences, 0)
		if a.Figures.Silences.N == 0 {
			cells[0].Text = "-"
		}
		cells[len(cells)-1].Text = "-"
		row.Apps = append(row.Apps, callsOf{names[i], cells})
	}
	return row
}

// callCells are the columns of one class of calls: number, p50, p90, p99, longest, failed.
func callCells(q Quantiles, failed int) []cell {
	if q.N == 0 {
		return []cell{number(0), {Text: "-"}, {Text: "-"}, {Text: "-"}, {Text: "-"}, number(failed)}
	}
	cells := []cell{number(q.N)}
	for _, d := range []time.Duration{q.P50, q.P90, q.P99, q.Max} {
		cells = append(cells, cell{seconds(d), d == Never})
	}
	return append(cells, number(failed))
}

// callRow is one class of calls: one line for each application.
type callRow struct {
	Class string
	Apps  []callsOf
}

type callsOf struct {
	Name  string
	Cells []cell
}
