package main

import (
	"slices"
	"testing"
)

func TestLongLinesEndInAnEllipsis(t *testing.T) {
	l := line{{"quorum ", good}, {"wise", bad}}
	for _, c := range []struct {
		width int
		want  string
	}{{0, "quorum wise"}, {11, "quorum wise"}, {10, "quorum wi…"}, {8, "quorum …"}, {7, "quorum…"}, {1, "…"}} {
		if got := l.text(c.width); got != c.want {
			t.Errorf("at %d columns %q, want %q", c.width, got, c.want)
		}
	}
}

func TestWrappedLinesLoseNoWord(t *testing.T) {
	l := line{{"no read failed, ", good}, {"no lease was lost", bad}}
	var got []string
	for _, part := range l.wrap(16) {
		got = append(got, part.text(16))
	}
	if want := []string{"no read failed,", "no lease was", "lost"}; !slices.Equal(got, want) {
		t.Errorf("wrapped to %q, want %q", got, want)
	}
	for _, part := range (line{{"PASSED: quorumwise: no read failed.", good}, {" The official client", bad}}).wrap(35) {
		if part.width() > 35 {
			t.Errorf("a wrapped line of %d columns: %q; want 35 at most", part.width(), part.text(0))
		}
	}
}

func TestCountsReadAsEnglish(t *testing.T) {
	for _, c := range []struct {
		n          int
		noun, want string
	}{{1, "watch", "1 watch"}, {2, "watch", "2 watches"}, {0, "call", "0 calls"}, {3, "lease stream", "3 lease streams"}} {
		if got := count(c.n, c.noun); got != c.want {
			t.Errorf("count(%d, %s) = %q, want %q", c.n, c.noun, got, c.want)
		}
	}
}
