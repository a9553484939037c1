package report

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// heightsOf walks a path as a browser would.
func heightsOf(t *testing.T, d string) []int {
	t.Helper()
	rest, ok := strings.CutPrefix(d, "M0 0")
	if !ok || !strings.HasSuffix(rest, "z") {
		t.Fatalf("%q does not begin on the base line, or is not closed", d)
	}
	var heights []int
	y := 0
	for rest = strings.TrimSuffix(rest, "z"); rest != ""; {
		var step byte
		var n int
		if _, err := fmt.Sscanf(rest, "%c%d", &step, &n); err != nil {
			t.Fatalf("%q: %v", rest, err)
		}
		rest = strings.TrimPrefix(rest, fmt.Sprintf("%c%d", step, n))
		switch step {
		case 'v':
			y -= n
		case 'h':
			for range n {
				heights = append(heights, y)
			}
		default:
			t.Fatalf("step %c in %q", step, d)
		}
	}
	if y != 0 {
		t.Fatalf("%q ends %d above the base line: the closing line would be slanted", d, y)
	}
	return heights
}

func TestOutlineDrawsEveryColumn(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		want := make([]int, rng.IntN(30))
		for i := range want {
			want[i] = max(0, rng.IntN(6)-2)
		}
		if got := heightsOf(t, outline(want)); !slices.Equal(got, want) {
			t.Fatalf("seed %d: drawn %v, want %v", seed, got, want)
		}
	}
}

func TestOutlineOfEqualColumnsIsOneStep(t *testing.T) {
	if got, want := outline(slices.Repeat([]int{7}, 5000)), "M0 0v-7h5000v7z"; got != want {
		t.Errorf("%s, want %s: a page with hours of calls has to stay small", got, want)
	}
}

func TestSumsKeepEveryCallOfTheTimeline(t *testing.T) {
	points := []Point{{0, 1}, {99 * time.Millisecond, 2}, {100 * time.Millisecond, 4}, {950 * time.Millisecond, 8}, {time.Second, 100}, {-1, 100}}
	for per, want := range map[int][]int{
		1:  {3, 4, 0, 0, 0, 0, 0, 0, 0, 8},
		5:  {7, 8},
		10: {15},
	} {
		if got := sums(points, 0, time.Second, per); !slices.Equal(got, want) {
			t.Errorf("%d slices a column: %v, want %v", per, got, want)
		}
	}
	if got, want := sums(points, 500*time.Millisecond, time.Second, 1), []int{0, 0, 0, 0, 8}; !slices.Equal(got, want) {
		t.Errorf("from the middle on: %v, want %v", got, want)
	}
	if got := sums(points, 0, 0, 1); len(got) != 1 {
		t.Errorf("a timeline without length has %d columns, want one", len(got))
	}
}

func TestColumnsFitTheirLimit(t *testing.T) {
	for _, end := range []time.Duration{0, 1, Slice, time.Minute, time.Hour, 100 * time.Hour} {
		const limit = 468
		per := perColumn(end, limit)
		if n := len(sums(nil, 0, end, per)); n > limit || n < 1 {
			t.Errorf("%v in columns of %d slices: %d columns, want 1 to %d", end, per, n, limit)
		}
	}
}

func TestScaleLosesNoCall(t *testing.T) {
	if got, want := scale([]int{0, 1, 500, 1000}, 1000, 20), []int{0, 1, 10, 20}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v: one call in a crowd has to be seen", got, want)
	}
}
