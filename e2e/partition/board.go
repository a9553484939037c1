//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// board knows how far a run is. It is owned by [play].
type board struct {
	total   int
	began   time.Time
	running []running // in the order in which they began
	counts  map[report.Status]int
	done    int
}

// running is one scenario that is being played.
type running struct {
	name  string
	since time.Time
	doing string // the latest that it told
}

func newBoard(total int, now time.Time) *board {
	return &board{total: total, began: now, counts: map[report.Status]int{}}
}

func (b *board) begin(name string, now time.Time) {
	b.running = append(b.running, running{name: name, since: now, doing: "starting"})
}

func (b *board) tell(name, what string) {
	for i := range b.running {
		if b.running[i].name == name {
			b.running[i].doing = oneLine(what)
		}
	}
}

// drop forgets a scenario that ended without a result.
func (b *board) drop(name string) {
	b.running = slices.DeleteFunc(b.running, func(r running) bool { return r.name == name })
}

// finish gives the lines that tell how a scenario ended: how far the run is, the result,
// how long it took, what both clients' users saw, and why where it did not pass.
func (b *board) finish(sc report.Scenario) []string {
	b.drop(sc.Name)
	b.done++
	b.counts[sc.Status]++
	line := fmt.Sprintf("%s %-7s %s  %.0f s", b.place(b.done), sc.Status, sc.Name, sc.Took.Seconds())
	if seen := seen(sc); seen != "" && (sc.Status == report.Passed || sc.Status == report.Failed) {
		line += "  " + seen
	}
	lines := []string{line}
	why := sc.Violations
	if sc.Reason != "" {
		why = append([]string{sc.Reason}, why...)
	}
	if sc.Status == report.Passed {
		return lines
	}
	const most = 4
	for i, w := range why {
		if i == most {
			lines = append(lines, fmt.Sprintf("%sand %d more, in the report", indent, len(why)-most))
			break
		}
		lines = append(lines, indent+oneLine(w))
	}
	return lines
}

const indent = "          "

// place is k/n, as wide for every k.
func (b *board) place(k int) string {
	n := fmt.Sprint(b.total)
	return fmt.Sprintf("%*d/%s", len(n), k, n)
}

// seen compares the longest silences.
func seen(sc report.Scenario) string {
	var parts []string
	for _, a := range sc.Apps {
		who := "silence"
		if a.Official {
			who = "official client"
		}
		parts = append(parts, who+" "+report.Shown(a.Figures.Silence))
	}
	return strings.Join(parts, ", ")
}

// live is one line about what goes on, at most width characters.
func (b *board) live(now time.Time, width int) string {
	var parts []string
	for i, r := range b.running {
		parts = append(parts, fmt.Sprintf("%s %s: %s (%.0f s)", b.place(b.done+i+1), r.name, r.doing, now.Sub(r.since).Seconds()))
	}
	line := strings.Join(append([]string{clock(now.Sub(b.began))}, parts...), "  ")
	if so := b.soFar(); so != "" {
		line += "  [" + so + "]"
	}
	return cut(line, width)
}

// soFar counts results, those that need a look first.
func (b *board) soFar() string {
	var parts []string
	for _, s := range report.Statuses {
		if n := b.counts[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

func clock(d time.Duration) string {
	s := int(d.Seconds())
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// oneLine makes one printable line of a text that may hold anything.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7F && r < 0xA0 {
			return '?'
		}
		return r
	}, s)
}

func cut(s string, width int) string {
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}
