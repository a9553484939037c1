package report

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// outline is the outline of columns that stand on a base line, as the data of one SVG
// path. One unit across is one column, one unit down is one pixel, and the base line is
// at 0: with whole numbers only, and one step for each run of equal heights, a minute of
// calls takes a few hundred bytes.
func outline(heights []int) string {
	var d strings.Builder
	d.WriteString("M0 0")
	at, run := 0, 0
	across := func() {
		if run > 0 {
			d.WriteString("h" + strconv.Itoa(run))
		}
		run = 0
	}
	for _, h := range heights {
		if h != at {
			across()
			d.WriteString("v" + strconv.Itoa(at-h))
			at = h
		}
		run++
	}
	across()
	if at != 0 {
		d.WriteString("v" + strconv.Itoa(at))
	}
	d.WriteString("z")
	return d.String()
}

// perColumn is how many slices one column holds, so that at most limit columns show all
// of a time.
func perColumn(end time.Duration, limit int) int {
	slices := int((end + Slice - 1) / Slice)
	return max(1, (slices+limit-1)/limit)
}

// sums adds up the points of a time that fall into one column of per slices.
func sums(points []Point, from, to time.Duration, per int) []int {
	width := time.Duration(per) * Slice
	cols := make([]int, max(1, int((to-from+width-1)/width)))
	for _, p := range points {
		if i := int((p.At - from) / width); p.At >= from && i < len(cols) {
			cols[i] += p.N
		}
	}
	return cols
}

// scale makes heights of numbers: the largest that is drawn anywhere is full, and what
// is not zero is seen.
func scale(numbers []int, largest, full int) []int {
	hs := make([]int, len(numbers))
	for i, n := range numbers {
		if n > 0 {
			hs[i] = min(full, max(1, (n*full+largest/2)/max(largest, 1)))
		}
	}
	return hs
}

func largest(points []int) int {
	if len(points) == 0 {
		return 0
	}
	return slices.Max(points)
}
