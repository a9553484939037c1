//go:build linux

package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/quorumwise/quorumwise/e2e/report"
)

func TestBoardTellsHowFarTheRunIs(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	b := newBoard(12, began)
	b.begin("cut", at(0))
	b.begin("freeze", at(1))
	b.tell("cut", "cut\nm2 \x1b[2J")
	b.tell("nobody", "x")
	if got, want := b.live(at(61), 0), "1:01   1/12 cut: cut m2 ?[2J (61 s)   2/12 freeze: starting (60 s)"; got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	lines := b.finish(report.Scenario{
		Name: "cut", Status: report.Failed, Took: 18400 * time.Millisecond, Reason: "two reasons",
		Violations: []string{"one", "two", "three", "four"},
		Apps:       []report.App{{Figures: report.Figures{Silence: report.Never}}},
	})
	want := []string{
		" 1/12 failed  cut  18 s  silence never",
		"          two reasons", "          one", "          two", "          three",
		"          and 1 more, in the report",
	}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	b.finish(report.Scenario{Name: "freeze", Status: report.Passed})
	if got, want := b.live(at(4000), 0), "1:06:40  [1 failed, 1 passed]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLiveLineFitsTheTerminal(t *testing.T) {
	b := newBoard(3, time.Time{})
	b.begin(strings.Repeat("ä", 100), time.Time{})
	for _, width := range []int{20, 79, 300} {
		if n := utf8.RuneCountInString(b.live(time.Time{}, width)); n > width {
			t.Errorf("%d characters on a terminal of %d: it would scroll with every change", n, width)
		}
	}
}

func TestScreenOnATerminalKeepsOneLivingLine(t *testing.T) {
	var out strings.Builder
	s := newScreen(&out, nil)
	s.width = func() (int, bool) { return 40, true }
	s.colours = true
	b := newBoard(1, time.Time{})
	b.begin("cut", time.Time{})
	s.show(b, time.Time{})
	s.show(b, time.Time{}.Add(time.Second))
	s.result(true, "1/1 failed  cut")
	s.clear()
	want := "0:00  1/1 cut: starting (0 s)\r\x1b[K0:01  1/1 cut: starting (1 s)\r\x1b[K\x1b[31m1/1 failed  cut\x1b[0m\n"
	if out.String() != want {
		t.Errorf("%q\nwant %q", out.String(), want)
	}
}

func TestDurationsAreShownRoughly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		12 * time.Second: "12 s", 99 * time.Second: "99 s", 5 * time.Minute: "5 min", 3 * time.Hour: "3.0 h",
	} {
		if got := roughly(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
