package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// columns of the figures per fault. "median / worst" is over the scenarios; silence and
// slowest call are the longest of each scenario.
var columns = []string{
	"fault", "scenarios",
	"silence of streams, s", "official client",
	"slowest call, s", "official client",
	"false moves", "events lost", "events doubled",
	"leases lost, ours / official", "avoidable calls, ours / official", "violations",
}

// Table writes the figures per fault as plain text: median / worst over the scenarios,
// in seconds. Where members had to be left, a table tells how soon they were.
func Table(w io.Writer, r Run) error {
	err := plainTable(w, columns, tableRows(r))
	if rows := leftRows(r); len(rows) > 0 && err == nil {
		fmt.Fprintf(w, "\n%s\n\n", leftTitle)
		err = plainTable(w, leftColumns, rows)
	}
	return err
}

func plainTable(w io.Writer, columns []string, rows [][]string) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, strings.Join(columns, "\t"))
	for _, row := range rows {
		for i := range row {
			row[i] = strings.Join(strings.Fields(clean(row[i])), " ")
		}
		fmt.Fprintln(tab, strings.Join(row, "\t"))
	}
	return tab.Flush()
}

// Markdown writes what [Table] does as Markdown.
func Markdown(w io.Writer, r Run) error {
	var b strings.Builder
	mdTable(&b, columns, tableRows(r))
	if rows := leftRows(r); len(rows) > 0 {
		b.WriteString("\n" + leftTitle + "\n\n")
		mdTable(&b, leftColumns, rows)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func mdTable(b *strings.Builder, columns []string, rows [][]string) {
	mdRow(b, columns)
	b.WriteString("|---" + strings.Repeat("|--:", len(columns)-1) + "|\n")
	for _, row := range rows {
		mdRow(b, row)
	}
}

func mdRow(b *strings.Builder, cells []string) {
	for _, c := range cells {
		c = strings.Join(strings.Fields(clean(c)), " ")
		b.WriteString("| " + strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(c) + " ")
	}
	b.WriteString("|\n")
}

func tableRows(r Run) [][]string {
	rows, all := r.faults()
	var cells [][]string
	for _, f := range append(rows, all) {
		row := append([]string{f.fault, f.counted()}, slices.Repeat([]string{"-"}, len(columns)-2)...)
		if f.scenarios > 0 {
			row = []string{
				f.fault, f.counted(),
				f.ours.silence.String(), f.control.silence.String(),
				f.ours.call.String(), f.control.call.String(),
				fmt.Sprint(f.falseMoves), pair(f.ours.lost, f.control.lost), pair(f.ours.twice, f.control.twice),
				both(f.ours.leases, f.control.leases), both(f.ours.avoidable, f.control.avoidable), fmt.Sprint(f.violations),
			}
		}
		cells = append(cells, row)
	}
	return cells
}

// counted is how many scenarios the figures are of, and out of how many.
func (f faultFigures) counted() string {
	if f.uncounted == 0 {
		return fmt.Sprint(f.scenarios)
	}
	return fmt.Sprintf("%d of %d", f.scenarios, f.scenarios+f.uncounted)
}

// String is the median and the worst; one number where there is one scenario.
func (s spread) String() string {
	switch len(s) {
	case 0:
		return "-"
	case 1:
		return seconds(s[0])
	default:
		return seconds(s.median()) + " / " + seconds(s.worst())
	}
}

// both shows the numbers of both: neither is as a rule 0.
func both(ours, control int) string { return fmt.Sprintf("%d / %d", ours, control) }

// pair shows the control's number only where there is something to see.
func pair(ours, control int) string {
	if control == 0 {
		return fmt.Sprint(ours)
	}
	return fmt.Sprintf("%d (official %d)", ours, control)
}
