package report

import (
	"cmp"
	"slices"
	"time"
)

// shims in the order of the columns, as [Scenario.Shim] has them.
var shims = []string{"sidecar", "in process", "none"}

// leftColumns are those of the table that tells how soon members were left.
var leftColumns = []string{
	"fault", "scenarios",
	"last new call, s: sidecar", "in process", "no shim",
	"last stream, s: sidecar", "in process", "no shim",
}

// leftTitle stands above the table.
const leftTitle = "How soon our client has left a member that it had to leave, beyond the election where there was one: the nearest to its budget, in seconds, of those allowed."

// beyond is how long after the election something left a member.
func (l Leave) beyond() time.Duration {
	if l.Took == Never {
		return Never
	}
	return max(0, l.Took-l.Election)
}

// text is how long it took of what was allowed.
func (l Leave) text() string {
	switch {
	case l.Took == 0:
		return "-"
	case l.Budget == 0:
		return seconds(l.beyond()) + " of -"
	default:
		return seconds(l.beyond()) + " of " + seconds(l.Budget)
	}
}

// nearer compares by how near their budget two are; where one is not known, by how long they
// took.
func nearer(a, b Leave) int {
	if a.Took == Never || b.Took == Never || a.Budget == 0 || b.Budget == 0 {
		return cmp.Compare(a.beyond(), b.beyond())
	}
	return cmp.Compare(float64(a.beyond())/float64(a.Budget), float64(b.beyond())/float64(b.Budget))
}

// faultLeft are the members that our client had to leave in all scenarios with one fault.
type faultLeft struct {
	fault          string
	scenarios      int
	calls, streams [3]Leave // the nearest to its budget, by kind of shim
}

func (f *faultLeft) add(shim int, left []Left) {
	f.scenarios++
	for _, l := range left {
		for worst, got := range map[*Leave]Leave{&f.calls[shim]: l.Call, &f.streams[shim]: l.Stream} {
			if got.Took != 0 && (worst.Took == 0 || nearer(got, *worst) > 0) {
				*worst = got
			}
		}
	}
}

// lefts gives one row for each fault for which there was a member to leave, in the order in
// which they first appear, and one for all together; nil: there was none.
func (r Run) lefts() []faultLeft {
	var rows []faultLeft
	all := faultLeft{fault: "all"}
	for _, sc := range r.Scenarios {
		left, shim := sc.left(), slices.Index(shims, sc.Shim)
		if len(left) == 0 || shim < 0 || sc.Status != Passed && sc.Status != Failed {
			continue
		}
		name := sc.faultName()
		i := slices.IndexFunc(rows, func(f faultLeft) bool { return f.fault == name })
		if i < 0 {
			rows = append(rows, faultLeft{fault: name})
			i = len(rows) - 1
		}
		rows[i].add(shim, left)
		all.add(shim, left)
	}
	if len(rows) == 0 {
		return nil
	}
	return append(rows, all)
}

// left is what our client left, also of a report that was written before there was
// [Figures.Left]. There the figures are of the target, and the election can be seen in what the
// other members were. What never left a member was not due in a
// scenario that passed.
func (sc Scenario) left() []Left {
	a, ok := sc.ours()
	from, hurt := firstFault(sc.Marks)
	f := a.Figures
	if len(f.Left) > 0 || !ok || !hurt || sc.TargetMember == "" {
		return f.Left
	}
	election := sc.election(from)
	leave := func(took, budget time.Duration) Leave {
		if took == 0 || took == Never && sc.Status == Passed {
			return Leave{}
		}
		return Leave{Took: took, Election: election, Budget: budget}
	}
	l := Left{Member: sc.TargetMember, At: from, Call: leave(f.LastCall, sc.Budget.Calls), Stream: leave(f.LastStream, sc.Budget.Streams)}
	if l.Call == (Leave{}) && l.Stream == (Leave{}) {
		return nil
	}
	return []Left{l}
}

// election is how long after a moment the members other than the target had not all lost and
// found a leader. In the midst of that one may seem to serve for a short time.
func (sc Scenario) election(from time.Duration) time.Duration {
	const flicker = 500 * time.Millisecond
	served, end := from, from // when somebody last began to serve, and until when somebody did
	var good []Span
	for _, l := range sc.Lanes {
		if l.Member == sc.TargetMember {
			continue
		}
		for _, s := range l.Truth {
			if s.State == "quorum" || s.State == "leader" {
				good = append(good, s)
			}
		}
	}
	if len(good) == 0 {
		return 0
	}
	slices.SortFunc(good, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for _, s := range append(good, Span{From: sc.length(), To: sc.length()}) {
		if s.From > end {
			if end-served > flicker {
				break
			}
			served = s.From
		}
		end = max(end, s.To)
	}
	return served - from
}

// late says that it took longer than allowed.
func (l Leave) late() bool { return l.Took == Never || l.Budget > 0 && l.beyond() > l.Budget }

// pageLeft are the lines of the table on the page.
func pageLeft(r Run) (rows []leftRow) {
	for _, f := range r.lefts() {
		row := leftRow{Fault: clean(f.fault), Scenarios: f.scenarios}
		for _, l := range f.all() {
			row.Cells = append(row.Cells, cell{l.text(), l.late()})
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		rows[len(rows)-1].All = true
	}
	return rows
}

// all are the cells of a row.
func (f faultLeft) all() []Leave { return slices.Concat(f.calls[:], f.streams[:]) }

// leftRows are the cells of the table.
func leftRows(r Run) [][]string {
	var cells [][]string
	for _, f := range r.lefts() {
		row := []string{f.fault, number(f.scenarios).Text}
		for _, l := range f.all() {
			row = append(row, l.text())
		}
		cells = append(cells, row)
	}
	return cells
}
