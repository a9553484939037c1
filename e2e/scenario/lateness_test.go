package scenario

import (
	"slices"
	"testing"
	"time"
)

// lateBy has the machine late at moments, in pairs of milliseconds since t0: when it woke,
// and how late.
func lateBy(pairs ...int) (ls lags) {
	for i := 0; i < len(pairs); i += 2 {
		ls = append(ls, lag{ms(pairs[i]), time.Duration(pairs[i+1]) * time.Millisecond})
	}
	return ls
}

// always has the machine late by so much in every step between two moments.
func always(from, to, late int) (ls lags) {
	for n := from; n < to; n += 10 + late {
		ls = append(ls, lateBy(n, late)...)
	}
	return ls
}

func TestLatenessIsTheMedianAndTheWorst(t *testing.T) {
	if got := (lags)(nil).summary(); got != (Lateness{}) {
		t.Errorf("of nothing: %+v, want zero", got)
	}
	got := lateBy(10, 9, 20, 1, 30, 2, 40, 3, 50, 1).summary()
	if want := (Lateness{Typical: 2 * time.Millisecond, Worst: 9 * time.Millisecond}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOnlyWhatIsUnusualIsALongLag(t *testing.T) {
	got := lateBy(10, 2, 20, 2, 30, 10, 40, 2, 200, 90, 300, 2).long()
	if want := lateBy(200, 88); !slices.Equal(got, want) {
		t.Errorf("long lags %v; want %v: what was more than 10 ms late, less the usual", got, want)
	}
}

func TestOnlyWhatTheMachineTookInTimeCounts(t *testing.T) {
	ls := lateBy(100, 50, 300, 100, 900, 7)
	for _, tc := range []struct{ from, to, want int }{
		{0, 1000, 157}, {100, 1000, 107}, {80, 250, 70}, {220, 280, 60}, {400, 800, 0},
	} {
		if got := ls.between(ms(tc.from), ms(tc.to)); got != time.Duration(tc.want)*time.Millisecond {
			t.Errorf("between %d and %d ms the machine took %v, want %d ms", tc.from, tc.to, got, tc.want)
		}
	}
}
