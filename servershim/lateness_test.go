package servershim

import (
	"testing"
	"time"
)

func TestLatenessForgivesTimeSleptThrough(t *testing.T) {
	type wake struct{ due, now time.Duration }
	for _, c := range []struct {
		why    string
		newest time.Duration
		wakes  []wake
		want   time.Duration // forgiven since newest
		void   bool
	}{
		{"never late", 0, []wake{{100 * ms, 101 * ms}, {200 * ms, 225 * ms}}, 0, false},
		{"one pause", 0, []wake{{100 * ms, 500 * ms}}, 400 * ms, false},
		{"a proof begun in the middle of it", 300 * ms, []wake{{100 * ms, 500 * ms}}, 200 * ms, false},
		{"a proof begun after it", 600 * ms, []wake{{100 * ms, 500 * ms}}, 0, false},
		{"two pauses", 0, []wake{{100 * ms, 300 * ms}, {400 * ms, 600 * ms}}, 400 * ms, false},
		{"at most the ceiling for one proof: slow for good is no excuse", 0,
			[]wake{{0, 400 * ms}, {500 * ms, 900 * ms}, {1000 * ms, 1400 * ms}, {1500 * ms, 1900 * ms}}, time.Second, false},
		{"a pause of the length of the ceiling", 0, []wake{{100 * ms, 1100 * ms}}, time.Second, false},
		{"a longer pause voids all", 0, []wake{{100 * ms, 1101 * ms}}, 0, true},
	} {
		l := lateness{tolerance: 25 * ms, ceiling: time.Second}
		for _, w := range c.wakes {
			l.wake(at(w.due), at(w.now), at(c.newest))
		}
		if got := l.forgiven(at(c.newest)); got != c.want {
			t.Errorf("%s: got %v forgiven, want %v", c.why, got, c.want)
		}
		if got := !l.void.IsZero(); got != c.void {
			t.Errorf("%s: got void %v, want %v", c.why, got, c.void)
		}
	}
}

func TestLatenessKeepsAFewPausesOnly(t *testing.T) {
	l := lateness{tolerance: 25 * ms, ceiling: time.Second}
	for i := range 100000 {
		now := at(time.Duration(i) * 100 * ms)
		l.wake(now.Add(-50*ms), now, start)
	}
	if len(l.pauses) > maxPauses {
		t.Errorf("got %d pauses kept, want at most %d: a machine may be slow for years", len(l.pauses), maxPauses)
	}
}

func TestLatenessOfTheFirstWakeIsNone(t *testing.T) {
	l := lateness{tolerance: 25 * ms, ceiling: time.Second}
	if l.wake(time.Time{}, start, time.Time{}) {
		t.Error("got late at the first wake, which was due at no time")
	}
}
