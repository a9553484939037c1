package scenario

import (
	"testing"
	"time"
)

func TestLatenessIsTheMedianAndTheWorst(t *testing.T) {
	if got := summary(nil); got != (Lateness{}) {
		t.Errorf("of nothing: %+v, want zero", got)
	}
	got := summary([]time.Duration{9, 1, 2, 3, 1})
	if want := (Lateness{Typical: 2, Worst: 9}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
