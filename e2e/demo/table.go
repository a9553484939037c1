package main

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// column describes one column of a table.
type column struct {
	title string
	right bool // aligned
	spare int  // columns with the highest number are left out first on narrow screens; 0: never
}

// gap is what separates columns.
const gap = 2

// table lays rows out under their titles. Columns are left out until the rest is no
// wider than width; 0 is no limit.
func table(cols []column, rows [][]line, width int) []line {
	keep := make([]int, len(cols))
	for i := range cols {
		keep[i] = i
	}
	widths := measure(cols, rows)
	for width > 0 && total(keep, widths) > width {
		drop := slices.MaxFunc(keep, func(a, b int) int { return cols[a].spare - cols[b].spare })
		if cols[drop].spare == 0 {
			break
		}
		keep = slices.DeleteFunc(keep, func(i int) bool { return i == drop })
	}
	head := make([]line, len(cols))
	for i, c := range cols {
		head[i] = line{{c.title, faint}}
	}
	lines := []line{row(head, cols, keep, widths)}
	for _, r := range rows {
		lines = append(lines, row(r, cols, keep, widths))
	}
	return lines
}

func measure(cols []column, rows [][]line) []int {
	widths := make([]int, len(cols))
	for i, c := range cols {
		widths[i] = utf8.RuneCountInString(c.title)
		for _, r := range rows {
			widths[i] = max(widths[i], r[i].width())
		}
	}
	return widths
}

func total(keep, widths []int) int {
	n := gap * (len(keep) - 1)
	for _, i := range keep {
		n += widths[i]
	}
	return n
}

// row pads with words of their own, so that no colour covers blanks. Nothing
// follows the last word of a line.
func row(cells []line, cols []column, keep, widths []int) line {
	var l line
	owed := 0
	for _, i := range keep {
		blank := widths[i] - cells[i].width()
		if cols[i].right {
			owed, blank = owed+blank, 0
		}
		if cells[i].width() > 0 {
			if owed > 0 {
				l = append(l, word{strings.Repeat(" ", owed), plain})
			}
			l = append(l, cells[i]...)
			owed = 0
		}
		owed += blank + gap
	}
	return l
}
