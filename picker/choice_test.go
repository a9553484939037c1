package picker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/grpc/connectivity"
)

var (
	everyGrade = []Grade{Unknown, Healthy, Suspect, Unhealthy, Parked}
	everyState = []connectivity.State{
		connectivity.Idle, connectivity.Connecting, connectivity.Ready,
		connectivity.TransientFailure, connectivity.Shutdown,
	}
)

func TestChooseNamedCases(t *testing.T) {
	const (
		ready      = connectivity.Ready
		connecting = connectivity.Connecting
		failing    = connectivity.TransientFailure
	)
	for _, tc := range []struct {
		name string
		all  []candidate
		best []int
		wait bool
	}{
		{"no endpoints", nil, nil, false},
		{"a lone endpoint is used whatever its grade: unhealthy", []candidate{{Unhealthy, ready}}, []int{0}, false},
		{"a lone endpoint is used whatever its grade: parked", []candidate{{Parked, ready}}, []int{0}, false},
		{"no evidence: all", []candidate{{Unknown, ready}, {Unknown, ready}, {Unknown, failing}}, []int{0, 1}, false},
		{"healthy beats unknown", []candidate{{Unknown, ready}, {Healthy, ready}}, []int{1}, false},
		{"unknown is not kept waiting for a healthy one", []candidate{{Unknown, ready}, {Healthy, connecting}}, []int{0}, false},
		{"suspect waits for a healthy one", []candidate{{Suspect, ready}, {Healthy, connecting}}, []int{0}, true},
		{"parked waits for a healthy one", []candidate{{Parked, ready}, {Healthy, connecting}}, []int{0}, true},
		{"parked waits for any other, also one that is away", []candidate{{Parked, ready}, {Suspect, failing}}, []int{0}, true},
		{"all parked: used", []candidate{{Parked, ready}, {Parked, failing}}, []int{0}, false},
		{"suspect does not wait for a failing one", []candidate{{Suspect, ready}, {Healthy, failing}}, []int{0}, false},
		{"suspect does not wait for an unknown one", []candidate{{Suspect, ready}, {Unknown, connecting}}, []int{0}, false},
		{"fail open over suspect ones before unhealthy ones", []candidate{{Suspect, ready}, {Unhealthy, ready}, {Suspect, ready}, {Parked, ready}}, []int{0, 2}, false},
		{"fail open over unhealthy ones, not parked ones", []candidate{{Suspect, failing}, {Unhealthy, ready}, {Parked, ready}}, []int{1}, false},
		{"nothing connected: gRPC decides", []candidate{{Healthy, connecting}, {Unknown, failing}}, nil, false},
		{"a grade from the future counts as unknown", []candidate{{Grade(9), ready}, {Suspect, ready}}, []int{0}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := choose(tc.all)
			if !slices.Equal(got.best, tc.best) || got.wait != tc.wait {
				t.Errorf("choose(%v) = best %v wait %v, want best %v wait %v", tc.all, got.best, got.wait, tc.best, tc.wait)
			}
		})
	}
}

// dumbChoice says the same as choose in another way: each endpoint is asked by
// itself whether any other forbids it.
func dumbChoice(all []candidate) (best []int, wait, evidence bool) {
	level := map[Grade]int{Healthy: 0, Unknown: 1, Suspect: 2, Unhealthy: 3, Parked: 4}
	lowest := 5
	for i, c := range all {
		if c.state != connectivity.Ready {
			continue
		}
		forbidden := false
		for _, o := range all {
			forbidden = forbidden || o.state == connectivity.Ready && level[o.grade] < level[c.grade]
		}
		if !forbidden {
			best = append(best, i)
			lowest = level[c.grade]
		}
	}
	for _, c := range all {
		if c.grade == Healthy {
			evidence = true
			soon := c.state == connectivity.Connecting || c.state == connectivity.Idle
			wait = wait || soon && (lowest == 2 || lowest == 3)
		}
		wait = wait || c.grade != Parked && lowest == 4
	}
	return best, wait, evidence
}

func TestChooseAgreesWithADumbSecondVersion(t *testing.T) {
	check := func(all []candidate) {
		best, wait, evidence := dumbChoice(all)
		got := choose(all)
		if !slices.Equal(got.best, best) || got.wait != wait || got.evidence != evidence {
			t.Fatalf("choose(%v) = %+v, want best %v wait %v evidence %v", all, got, best, wait, evidence)
		}
	}
	var every []candidate
	for _, g := range everyGrade {
		for _, s := range everyState {
			every = append(every, candidate{g, s})
		}
	}
	for _, a := range every {
		check([]candidate{a})
		for _, b := range every {
			check([]candidate{a, b})
			for _, c := range every {
				check([]candidate{a, b, c})
			}
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d for more than three endpoints", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		all := make([]candidate, 4+r.IntN(6))
		for i := range all {
			all[i] = every[r.IntN(len(every))]
		}
		check(all)
	}
}

func TestGradeAndClassPrintTheirNames(t *testing.T) {
	got := fmt.Sprint(Unknown, Healthy, Suspect, Unhealthy, Parked, Grade(7), ClassRead, ClassMutation, ClassWatch, ClassLease, ClassStream, ClassOther, Class(-1))
	want := "unknown healthy suspect unhealthy parked grade(7) read mutation watch lease stream other class(-1)"
	if got != want {
		t.Errorf("got %q, want %q: people read these in logs", got, want)
	}
}
