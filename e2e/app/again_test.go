//go:build linux

package app

import (
	"fmt"
	"testing"
	"time"
)

// playsMost is how often a test is played at most that shows nothing by bad luck.
const playsMost = 3

// again plays until something is shown. play says why it was not, and fails the test by itself
// where that is no bad luck.
func again(t *testing.T, play func(t *testing.T) (unlucky string)) {
	t.Helper()
	for n := 1; ; n++ {
		var unlucky string
		passed := t.Run(fmt.Sprint("play ", n), func(t *testing.T) {
			if unlucky = play(t); unlucky != "" && n == playsMost {
				t.Errorf("%d plays have shown nothing: %s", n, unlucky)
			}
		})
		if !passed || unlucky == "" {
			return
		}
		t.Logf("played again: %s", unlucky)
	}
}

// nothingToLeave says that no stream of ours stood on a member when it was cut off, for ours had
// given it up before, on a machine that was busy at the start.
func nothingToLeave(moves []Move, endpoint string, cut time.Time, lastStream time.Duration) (unlucky string) {
	if lastStream > 0 {
		return ""
	}
	for _, m := range moves {
		if m.Endpoint == endpoint && m.At.Before(cut) {
			return fmt.Sprintf("a %s had left %s for %s %v before the cut, and no stream stood there", m.Class, endpoint, m.Reason, cut.Sub(m.At))
		}
	}
	return ""
}

func TestOnlyAMemberThatWasGivenUpBeforeHasNothingToLeave(t *testing.T) {
	cut := time.Now()
	early, late := cut.Add(-time.Second), cut.Add(time.Second)
	for _, row := range []struct {
		name string
		m    Move
		last time.Duration
		want bool
	}{
		{"given up before the cut", Move{At: early, Class: "watch", Endpoint: "m2"}, 0, true},
		{"given up before the cut, and a stream is there", Move{At: early, Class: "watch", Endpoint: "m2"}, time.Second, false},
		{"given up after the cut", Move{At: late, Class: "watch", Endpoint: "m2"}, 0, false},
		{"another given up", Move{At: early, Class: "watch", Endpoint: "m1"}, 0, false},
		{"never", Move{}, 0, false},
	} {
		if got := nothingToLeave([]Move{row.m}, "m2", cut, row.last); (got != "") != row.want {
			t.Errorf("%s: %q; want a reason: %v", row.name, got, row.want)
		}
	}
}

func TestAPlayIsRepeatedOnlyWhileItShowsNothing(t *testing.T) {
	for _, words := range [][]string{{""}, {"late", ""}, {"late", "late", ""}} {
		n := 0
		again(t, func(*testing.T) string { n++; return words[n-1] })
		if n != len(words) {
			t.Errorf("%q: %d plays; want %d", words, n, len(words))
		}
	}
}
