//go:build linux

package suites

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
)

func randomness(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func TestTheSameSeedGivesTheSameSchedule(t *testing.T) {
	for _, members := range []int{3, 5} {
		one := schedule(randomness(7), soakable(true), members, time.Hour)
		again := schedule(randomness(7), soakable(true), members, time.Hour)
		other := schedule(randomness(8), soakable(true), members, time.Hour)
		if !reflect.DeepEqual(one, again) {
			t.Errorf("%d members: the same seed gave two schedules: a failure could not be repeated", members)
		}
		if reflect.DeepEqual(one, other) {
			t.Errorf("%d members: two seeds gave the same schedule", members)
		}
	}
}

func TestALongerSoakBeginsLikeAShorterOne(t *testing.T) {
	short := schedule(randomness(7), soakable(false), 3, 5*time.Minute)
	long := schedule(randomness(7), soakable(false), 3, time.Hour)
	if len(long) <= len(short) || !reflect.DeepEqual(long[:len(short)], short) {
		t.Errorf("the first bouts of an hour differ from those of five minutes: a failure in an hour could not be repeated sooner")
	}
}

// Whoever lives with every bout: some client reaches a majority, or the bout is over
// before a lease is.
func TestBoutsLeaveAMajorityOrEndSoon(t *testing.T) {
	faults := soakable(true)
	seen := make(map[string]int)
	for seed := range uint64(300) {
		for _, members := range []int{3, 5} {
			var whole time.Duration
			for _, b := range schedule(randomness(seed), faults, members, 5*time.Minute) {
				whole += b.Lasts + b.Quiet
				if n := len(b.Blows); n < 1 || n > 2 {
					t.Fatalf("seed %d: %v has %d faults, want one or two", seed, b, n)
				}
				if n := useless(faults, b, members); members-n < majority(members) && b.Lasts > longestOutage {
					t.Errorf("seed %d: %v takes %d of %d members away, for longer than %v: leases would be lost whatever a client does", seed, b, n, members, longestOutage)
				}
				if len(b.Blows) == 2 && b.Blows[0].Member == b.Blows[1].Member {
					for _, bl := range b.Blows {
						if slices.Contains(halting, bl.Fault) {
							t.Errorf("seed %d: %v: it could not be played or lifted", seed, b)
						}
					}
				}
				for _, bl := range b.Blows {
					seen[bl.Fault]++
					if bl.Member < 0 || bl.Member >= members || bl.After < 0 || bl.After >= b.Lasts {
						t.Errorf("seed %d: %+v of a bout of %v does not fit", seed, bl, b.Lasts)
					}
				}
			}
			if whole > 5*time.Minute {
				t.Errorf("seed %d: the bouts take %v, want at most what was told", seed, whole)
			}
		}
	}
	for _, f := range faults {
		if seen[f.Name] == 0 {
			t.Errorf("no bout had %s: the soak would never try it", f.Name)
		}
	}
}

// halting are the faults that have a process end, or hold one that others have to end.
var halting = []string{"freeze", "freeze-shim", "freeze-both", "kill", "kill-restart", "kill-shim", "disk-hang", "memory"}

// useless is how many members a bout takes away at worst: whichever leads.
func useless(faults []Fault, b bout, members int) (worst int) {
	for leader := range members {
		gone := make(map[int]bool)
		for _, bl := range b.Blows {
			f := faults[slices.IndexFunc(faults, func(f Fault) bool { return f.Name == bl.Fault })]
			for m := range members {
				gone[m] = gone[m] || f.Everybody || f.Spreads && bl.Member == leader || f.Effect != Spares && m == bl.Member
			}
		}
		n := 0
		for _, is := range gone {
			if is {
				n++
			}
		}
		worst = max(worst, n)
	}
	return worst
}

func TestSegmentsAreNeverLongerThanMemoryAllows(t *testing.T) {
	for _, whole := range []time.Duration{time.Second, segment, segment + time.Second, 8 * time.Hour} {
		var sum time.Duration
		for _, d := range segments(whole) {
			sum += d
			if d > segment {
				t.Errorf("of %v: a segment of %v, want at most %v", whole, d, segment)
			}
		}
		if lost := whole - sum; lost < 0 || lost > time.Second {
			t.Errorf("of %v: the segments last %v altogether", whole, sum)
		}
	}
}

// played is a segment as its seed decides: that of seed 6 fails, after seed 7 it is over.
func played(_ context.Context, sc Scenario, o Options) (report.Scenario, error) {
	switch o.Seed {
	case 6:
		return report.Scenario{Name: sc.Name, Status: report.Failed, Violations: []string{"lost an event"}}, nil
	case 8:
		return report.Scenario{Name: sc.Name}, errInterrupted
	}
	return report.Scenario{Name: sc.Name, Status: report.Passed}, nil
}

var errInterrupted = errors.New("interrupted")

func TestInterruptedSoakKeepsWhatItFound(t *testing.T) {
	for _, row := range []struct {
		seed       int64
		status     report.Status
		violations []string
		last       string // note
	}{
		{5, report.Failed, []string{"segment 2: lost an event"}, "ended after 3 of 9 segments: interrupted"},
		{7, report.Passed, nil, "ended after 1 of 9 segments: interrupted"},
		{8, "", nil, ""},
	} {
		r, err := runSegments(t.Context(), Scenario{Name: "soak"}, Options{Seed: row.seed, Duration: 9 * segment}, played)
		if !errors.Is(err, errInterrupted) || r.Status != row.status || !slices.Equal(r.Violations, row.violations) {
			t.Errorf("from seed %d: %q, violations %q, error %v; want %q, %q and that it was interrupted", row.seed, r.Status, r.Violations, err, row.status, row.violations)
		}
		if row.last != "" && (len(r.Notes) == 0 || r.Notes[len(r.Notes)-1] != row.last) {
			t.Errorf("from seed %d: notes %q; want the last to be %q", row.seed, r.Notes, row.last)
		}
	}
}

func TestSegmentThatFailsIsToldAtOnce(t *testing.T) {
	var told []string
	opts := Options{Seed: 5, Duration: 3 * segment, Progress: func(p Progress) {
		if p.Failing {
			told = append(told, p.Text)
		}
	}}
	if _, err := runSegments(t.Context(), Scenario{Name: "soak"}, opts, played); err != nil {
		t.Fatal(err)
	}
	if want := []string{"failing in segment 2 of 3, seed 6: lost an event"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q: the end may be hours away", told, want)
	}
}

func TestSegmentsAreReportedAsOne(t *testing.T) {
	var seeds []int64
	play := func(_ context.Context, sc Scenario, o Options) (report.Scenario, error) {
		seeds = append(seeds, o.Seed)
		r := report.Scenario{
			Name: sc.Name, Status: report.Passed, Took: time.Second, TargetMember: o.Dir,
			Apps: []report.App{{Figures: report.Figures{
				Silence: time.Duration(o.Seed), Leases: 1, Failed: map[string]int{"put": 1},
				Calls: map[string]report.Quantiles{"get": {N: 10, P50: time.Duration(o.Seed), Max: 1}},
			}}},
		}
		if o.Seed == 6 {
			r.Status, r.Violations = report.Failed, []string{"lost an event"}
		}
		return r, nil
	}
	r, err := runSegments(t.Context(), Scenario{Name: "soak"}, Options{Seed: 5, Duration: 3 * segment, Dir: "d"}, play)
	if err != nil || !reflect.DeepEqual(seeds, []int64{5, 6, 7}) {
		t.Fatalf("played seeds %v, error %v; want 5, 6 and 7", seeds, err)
	}
	if r.Status != report.Failed || !reflect.DeepEqual(r.Violations, []string{"segment 2: lost an event"}) || r.TargetMember != "d/segment-002" {
		t.Errorf("got %v, %q, timeline of %q; want the failure of segment 2 and its timeline", r.Status, r.Violations, r.TargetMember)
	}
	f := r.Apps[0].Figures
	want := report.Figures{
		Silence: 7, Leases: 3, Failed: map[string]int{"put": 3},
		Calls: map[string]report.Quantiles{"get": {N: 30, P50: 7, Max: 1}},
	}
	if !reflect.DeepEqual(f, want) || r.Took != 3*time.Second {
		t.Errorf("figures %+v in %v\nwant %+v in 3 s: sums of counts, the worst of durations", f, r.Took, want)
	}
}
