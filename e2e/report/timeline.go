package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Measures of a timeline, in pixels of a drawing that a page scales to its width.
const (
	leftWidth  = 132.0 // what the rows are
	plotWidth  = 936.0
	rightWidth = 16.0
	allWidth   = leftWidth + plotWidth + rightWidth

	bandHeight = 13.0
	callHeight = 22
	rowGap     = 2.0
	callGap    = 3.0
	laneGap    = 12.0
	lineHeight = 14.0 // of the texts of marks
	axisHeight = 22.0

	charWidth   = 5.7 // of the small type
	markLines   = 4
	finest      = 0.6 // narrower than that nothing is seen
	finestCalls = 2.0 // columns
	manyMarks   = 16  // more would hide the rows: they stay above them
)

// timeline draws one scenario: for each member what it truly was, what its shim said,
// what our client made of it, and the calls and streams of each application on it.
type timeline struct {
	svg
	sc    Scenario
	from  time.Duration // whole seconds: nothing is known before
	end   time.Duration
	fault time.Duration // the first
	hurt  bool          // there is one
	marks []Mark
	y     float64

	per        int // slices in one column of calls
	mostCalls  int // in any column
	mostStream int // at any moment
}

// drawTimeline gives "" where there is nothing to draw.
func drawTimeline(sc Scenario) template.HTML {
	if len(sc.Lanes) == 0 {
		return ""
	}
	t := &timeline{sc: sc, from: sc.first(), end: sc.length()}
	t.end = max(t.end, t.from+time.Second)
	t.marks = slices.Clone(sc.Marks)
	slices.SortStableFunc(t.marks, func(a, b Mark) int { return int(a.At - b.At) })
	t.fault, t.hurt = firstFault(t.marks)
	t.measure()
	return t.draw()
}

// length is how long the timeline is: at least what is on it.
func (sc Scenario) length() time.Duration {
	end := sc.End
	if end <= 0 {
		end = sc.Took
	}
	return max(end, time.Second)
}

// first is the whole second in which something is first known: hosts and members took
// some time to start, and nobody looks for them.
func (sc Scenario) first() time.Duration {
	first := Never
	for _, l := range sc.Lanes {
		for _, s := range slices.Concat(l.Truth, l.Shim) {
			first = min(first, s.From)
		}
	}
	for _, m := range sc.Marks {
		first = min(first, m.At)
	}
	if first == Never {
		return 0
	}
	return max(0, first.Truncate(time.Second))
}

func (t *timeline) measure() {
	t.per = perColumn(t.end-t.from, int(plotWidth/finestCalls))
	for _, a := range t.sc.Apps {
		for _, u := range a.Members {
			t.mostCalls = max(t.mostCalls, largest(t.columns(u)))
			for _, p := range u.Streams {
				t.mostStream = max(t.mostStream, p.N)
			}
		}
	}
}

// columns are the calls of the timeline.
func (t *timeline) columns(u Use) []int { return sums(u.Calls, t.from, t.end, t.per) }

func (t *timeline) draw() template.HTML {
	top, labels := t.place()
	t.y = top
	lanes := make([]float64, 0, len(t.sc.Lanes)+1)
	for _, l := range t.sc.Lanes {
		lanes = append(lanes, t.y)
		t.lane(l)
	}
	bottom := t.y - laneGap/2
	rows := t.out.String() // drawn last, but their height had to be known
	t.out.Reset()

	t.raw(fmt.Sprintf(`<svg class="tl" viewBox="0 0 %s %s" role="img" aria-label="`, num(allWidth), num(bottom+axisHeight)), escape("timeline of "+t.sc.Name), `">`)
	for i, y := range lanes {
		if next := append(lanes, t.y)[i+1]; i%2 == 0 {
			t.rect("stripe", 0, y-laneGap/2, allWidth, next-y, "")
		}
	}
	t.axis(top, bottom)
	for _, b := range bands(t.marks, t.end) {
		class := "mended"
		if b.fault {
			class = "fault"
		}
		t.rect(class, t.x(b.from), top-4, t.x(b.to)-t.x(b.from), bottom-top+4, "")
	}
	t.raw(rows)
	t.raw(labels)
	for _, m := range t.marks {
		foot := bottom
		if t.many() {
			foot = top
		}
		t.rect("mark "+markClass(m.Kind), t.x(m.At)-0.7, top-4, 1.4, foot-top+4, t.moment(m.At)+": "+m.Text)
	}
	t.raw(`</svg>`)
	return template.HTML(t.out.String()) //nolint:gosec // svg escapes every text
}

// x is where a moment stands.
func (t *timeline) x(at time.Duration) float64 {
	at = min(max(at, t.from), t.end)
	return leftWidth + plotWidth*float64(at-t.from)/float64(t.end-t.from)
}

// place finds room for the texts of the marks above the rows. A text that finds none
// stays a tooltip of its mark; the list below the drawing has all of them.
func (t *timeline) place() (top float64, labels string) {
	var s svg
	used := 0
	lines := t.lines()
	for _, l := range lines {
		used = max(used, l.line+1)
	}
	top = float64(used)*lineHeight + 10
	for _, l := range lines {
		y := float64(used-l.line) * lineHeight
		s.rect("mark "+markClass(l.mark.Kind), l.x-0.7, y-9, 1.4, top-4-y+9, "")
		s.text("what "+markClass(l.mark.Kind)+l.anchor, l.textX(), y, l.text)
	}
	return top, s.out.String()
}

// label is the text of a mark in its place. Line 0 is the lowest.
type label struct {
	mark     Mark
	text     string
	x        float64 // of the mark
	from, to float64 // of the text
	anchor   string  // a class: the text ends at the mark; "" begins there
	line     int
}

// lines places texts from the right to the left, each in the lowest line that has room
// for it; faults first, and they alone where there are many marks.
func (t *timeline) lines() []label {
	var labels []label
	for _, kind := range []MarkKind{FaultMark, MendedMark, NoteMark} {
		for _, m := range slices.Backward(t.marks) {
			if m.Kind != kind {
				continue
			}
			l := t.label(m)
			for l.line < markLines && slices.ContainsFunc(labels, l.collides) {
				l.line++
			}
			if l.line < markLines {
				labels = append(labels, l)
			}
		}
		if t.many() {
			break
		}
	}
	return labels
}

func (t *timeline) many() bool { return len(t.marks) > manyMarks }

func (t *timeline) label(m Mark) label {
	const beside = 3
	l := label{mark: m, text: markGlyph(m.Kind) + " " + clean(m.Text), x: t.x(m.At)}
	width := charWidth * float64(utf8.RuneCountInString(l.text))
	l.from, l.to = l.x+beside, l.x+beside+width
	if l.to > allWidth {
		l.anchor = " end"
		l.from, l.to = l.x-beside-width, l.x-beside
	}
	return l
}

// collides says that texts would stand on each other, or that the line down from one
// mark would cross the text of the other.
func (l label) collides(o label) bool {
	const gap = 8
	switch {
	case l.line == o.line:
		return l.from < o.to+gap && o.from < l.to+gap
	case l.line > o.line:
		return o.from < l.x && l.x < o.to
	default:
		return l.from < o.x && o.x < l.to
	}
}

// textX is where the text is anchored.
func (l label) textX() float64 {
	if l.anchor != "" {
		return l.to
	}
	return l.from
}

func markGlyph(k MarkKind) string {
	switch k {
	case FaultMark:
		return "✕"
	case MendedMark:
		return "✓"
	default:
		return "·"
	}
}

func markClass(k MarkKind) string {
	switch k {
	case FaultMark:
		return "mf"
	case MendedMark:
		return "mm"
	default:
		return "mn"
	}
}

func (t *timeline) axis(top, bottom float64) {
	step := axisStep(t.end-t.from, 24)
	for at := (t.from + step - 1).Truncate(step); at <= t.end; at += step {
		t.line("grid", t.x(at), top-4, t.x(at), bottom+3)
		unit := ""
		if at+step > t.end {
			unit = " s"
		}
		t.text("tick", t.x(at), bottom+15, fmt.Sprint(int(at.Seconds()))+unit)
	}
}

// lane draws one member from t.y down, and moves t.y.
func (t *timeline) lane(l Lane) {
	t.text("member", 4, t.y+11, l.Member)
	under := t.y + 24
	if l.Member == t.sc.TargetMember && l.Member != "" {
		t.text("target", 4, under, strings.TrimSpace("target "+t.sc.Target))
		under += 12
	}
	t.text("address", 4, under, l.Address)
	t.states("state", l.Member, l.Truth)
	t.states("shim", l.Member, l.Shim)
	for _, a := range t.sc.Apps {
		use := a.on(l.Member)
		if !a.Official {
			t.states("client", l.Member, use.Grades)
		}
		t.calls(a, use)
	}
	t.y += laneGap
}

func (a App) on(member string) Use {
	i := slices.IndexFunc(a.Members, func(u Use) bool { return u.Member == member })
	if i < 0 {
		return Use{Member: member}
	}
	return a.Members[i]
}

func (t *timeline) rowName(name string, middle float64) {
	t.text("row", leftWidth-6, middle+3, name)
}

// states draws one row of spans. None at all is no row.
func (t *timeline) states(name, member string, spans []Span) {
	if len(spans) == 0 {
		return
	}
	t.rowName(name, t.y+bandHeight/2)
	drawn := leftWidth // how far the row is drawn
	last := ""         // what it said there
	for _, s := range joined(spans) {
		from, to := max(t.x(s.From), drawn), t.x(s.To)
		l := lookOf(s.State)
		if to-from < finest {
			if l.calm || s.To < s.From {
				continue
			}
			from = min(from, leftWidth+plotWidth-1)
			to = from + 1
		}
		said := from == drawn && l.word == last
		drawn, last = to, l.word
		t.rect("s "+l.class, from, t.y, to-from, bandHeight, t.tip(member+" "+name, l.word, s))
		if !said && charWidth*float64(utf8.RuneCountInString(l.word))+6 < to-from {
			t.text("in "+l.class, from+4, t.y+bandHeight-3, l.word)
		}
	}
	t.y += bandHeight + rowGap
}

// joined makes one span of neighbours that say the same.
func joined(spans []Span) []Span {
	var all []Span
	for _, s := range spans {
		if n := len(all) - 1; n >= 0 && all[n].State == s.State && all[n].Detail == s.Detail && s.From <= all[n].To {
			all[n].To = max(all[n].To, s.To)
			continue
		}
		all = append(all, s)
	}
	return all
}

func (t *timeline) tip(row, word string, s Span) string {
	text := fmt.Sprintf("%s: %s from %s to %s, for %s", row, word, t.moment(s.From), t.moment(s.To), Shown(s.To-s.From))
	if s.Detail != "" {
		text += "\n" + s.Detail
	}
	return text
}

// moment shows a moment, and how long after the first fault it was.
func (t *timeline) moment(at time.Duration) string {
	if t.hurt && at >= t.fault {
		return fmt.Sprintf("%s (fault + %s)", Shown(at), Shown(at-t.fault))
	}
	return Shown(at)
}

// calls draws the calls of an application on a member as columns, its streams as a line
// with their number, and what was moved away as ticks.
func (t *timeline) calls(a App, u Use) {
	class := "ours"
	if a.Official {
		class = "control"
	}
	name := a.Name
	if name == "" {
		name = class
	}
	t.rowName(name, t.y+callHeight/2)
	base := t.y + callHeight
	t.line("base", leftWidth, base, leftWidth+plotWidth, base)
	cols := t.columns(u)
	width := plotWidth / (float64(t.end-t.from) / float64(time.Duration(t.per)*Slice))
	total := 0
	for _, n := range cols {
		total += n
	}
	if total > 0 {
		t.path("c "+class, outline(scale(cols, t.mostCalls, callHeight-2)),
			fmt.Sprintf("translate(%s %s) scale(%.4g 1)", num(leftWidth), num(base), width),
			fmt.Sprintf("calls of %s on %s: %d; a column is %s, the highest anywhere is %d calls", name, u.Member, total, time.Duration(t.per)*Slice, t.mostCalls))
	}
	t.streams(class, name, u, base)
	if !a.Official {
		t.moves(a, u.Member)
	}
	t.y += callHeight + callGap
}

func (t *timeline) streams(class, name string, u Use, base float64) {
	if len(u.Streams) == 0 || t.mostStream == 0 {
		return
	}
	height := func(n int) float64 {
		return base - 1 - float64(n)/float64(t.mostStream)*(callHeight-4)
	}
	var d strings.Builder
	var numbers svg
	lastX, number := math.Inf(-1), math.Inf(-1)
	for i, p := range u.Streams {
		x := t.x(p.At)
		if i == 0 {
			d.WriteString("M" + num(x) + " " + num(height(p.N)))
		} else if x-lastX >= finest || i == len(u.Streams)-1 {
			d.WriteString("H" + num(x) + "V" + num(height(p.N)))
		} else {
			continue
		}
		lastX = x
		next := t.x(t.end)
		if i+1 < len(u.Streams) {
			next = t.x(u.Streams[i+1].At)
		}
		if next-x > 14 && x > number {
			numbers.text("n "+class, x+3, beside(height(p.N), base), fmt.Sprint(p.N))
			number = x + 14
		}
	}
	d.WriteString("H" + num(t.x(t.end)))
	t.path("st "+class, d.String(), "", fmt.Sprintf("streams of %s on %s; most anywhere: %d", name, u.Member, t.mostStream))
	t.raw(numbers.out.String())
}

// beside is where a number stands, above or below its line.
func beside(line, base float64) float64 {
	if base-line < callHeight/2 {
		return line - 2.5
	}
	return line + 9.5
}

// moves draws one tick where something was moved off the member; what was moved within
// a few pixels shares one.
func (t *timeline) moves(a App, member string) {
	const apart = 5.0
	var at []Move
	for _, m := range a.Moves {
		if m.Member == member {
			at = append(at, m)
		}
	}
	slices.SortStableFunc(at, func(a, b Move) int { return int(a.At - b.At) })
	for len(at) > 0 {
		x, n := t.x(at[0].At), 1
		for n < len(at) && t.x(at[n].At)-x < apart {
			n++
		}
		t.path("move", fmt.Sprintf("M%s %sl-3.5 -6h7z", num(x), num(t.y+6)), "", t.moved(at[:n], member))
		at = at[n:]
	}
}

// moved says what was moved at one moment.
func (t *timeline) moved(ms []Move, member string) string {
	const most = 6
	lines := []string{fmt.Sprintf("%d moved off %s:", len(ms), member)}
	for i, m := range ms {
		if i == most {
			lines = append(lines, fmt.Sprintf("and %d more", len(ms)-most))
			break
		}
		lines = append(lines, fmt.Sprintf("%s at %s: %s", m.Class, t.moment(m.At), m.Reason))
	}
	return strings.Join(lines, "\n")
}
