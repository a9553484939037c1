package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// counted is what some callers see of a counter in a store that keeps its promises.
func counted(rng *rand.Rand) ([]Count, Truth) {
	s := newStore(rng)
	counts := []Count{{Counter: "c/0", Caller: "x"}, {Counter: "c/0", Caller: "y"}, {Counter: "c/1", Caller: "x"}}
	totals := make(map[string]int)
	for n := range 60 {
		c := &counts[rng.IntN(len(counts))]
		id := fmt.Sprintf("%s-%d", c.Caller, n)
		happens := rng.IntN(4) > 0
		if happens {
			totals[c.Counter]++
			s.commit([]string{c.Counter}, func(int) string { return fmt.Sprintf("%s:%d", id, totals[c.Counter]) })
		}
		switch unsure := rng.IntN(4) == 0; {
		case unsure:
			c.Unsure = append(c.Unsure, id)
		case happens:
			c.Acked = append(c.Acked, id)
		default:
			c.Refused = append(c.Refused, id)
		}
	}
	s.run()
	return counts, s.truth
}

func TestCountersOfACorrectStoreAreClean(t *testing.T) {
	rng := dice(t)
	for range 50 {
		counts, truth := counted(rng)
		if bad := CheckCounters(counts, truth); len(bad) > 0 {
			t.Fatalf("%+v, %+v: %q, want correct counters passed", counts, truth, bad)
		}
	}
}

func TestCheckCountersCatchesPlantedViolations(t *testing.T) {
	put := func(revision int64, value string, version int64) Change {
		return Change{Revision: revision, Key: "c", Value: value, Create: 2, Version: version}
	}
	for _, c := range []struct {
		name  string
		spoil func(c *Count, t *Truth)
		want  string
	}{
		{"nothing", func(*Count, *Truth) {}, ""},
		{"an acknowledged one lost", func(_ *Count, t *Truth) { t.Changes[2] = put(5, "x-4:3", 3); drop(t, 3) },
			`counter "c": increment "x-2" of x was acknowledged and is not in the store's history`},
		{"the count does not follow", func(_ *Count, t *Truth) { t.Changes[2].Value = "x-2:2" },
			`counter "c": increment "x-2" made the count 2 from 2 at revision 5: want 3, one was lost or doubled`},
		{"the end is wrong", func(_ *Count, t *Truth) { t.Changes[3].Value = "x-4:5" }, `counter "c": it ends at 5, want 4`},
		{"one twice", func(_ *Count, t *Truth) { t.Changes[3].Value = "x-2:4" }, `counter "c": increment "x-2" of x was applied at revision 5 and again at 7`},
		{"a refused one happened", func(_ *Count, t *Truth) { t.Changes[3].Value = "x-3:4" }, `counter "c": increment "x-3" of x was refused and stands in the store's history at revision 7`},
		{"one of nobody", func(_ *Count, t *Truth) { t.Changes[3].Value = "z:4" }, `counter "c": revision 7 holds increment "z", which nobody made`},
		{"an unsure one that never happened", func(_ *Count, t *Truth) { drop(t, 3) }, ""},
		{"deleted", func(_ *Count, t *Truth) { t.Changes[3].Deleted, t.Changes[3].Value = true, "" }, `counter "c": revision 7 left nothing, not id:count`},
		{"no count", func(_ *Count, t *Truth) { t.Changes[3].Value = "x-4" }, `counter "c": revision 7 left "x-4", not id:count`},
		{"counted from before", func(_ *Count, t *Truth) {
			before := "w:9"
			t.From, t.Changes[0].Create, t.Changes[0].Version, t.Changes[0].Previous = 2, 2, 10, &before
			for i := range t.Changes {
				id, n, _ := parseCount(t.Changes[i].Value)
				t.Changes[i].Value = fmt.Sprintf("%s:%d", id, n+9)
			}
		}, ""},
		{"on record twice", func(c *Count, _ *Truth) { c.Unsure = append(c.Unsure, "x-1") }, `counter "c": increment "x-1" is on record twice`},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			count := Count{Counter: "c", Caller: "x", Acked: []string{"x-0", "x-1", "x-2"}, Refused: []string{"x-3"}, Unsure: []string{"x-4"}}
			truth := Truth{From: 1, Upto: 9, Changes: []Change{put(2, "x-0:1", 1), put(4, "x-1:2", 2), put(5, "x-2:3", 3), put(7, "x-4:4", 4)}}
			c.spoil(&count, &truth)
			judge(t, CheckCounters([]Count{count}, truth), c.want)
		})
	}
}

func TestAnySpoiltCounterIsCaught(t *testing.T) {
	rng := dice(t)
	for range 200 {
		counts, truth := counted(rng)
		i := rng.IntN(len(truth.Changes))
		change := truth.Changes[i]
		last := !slices.ContainsFunc(truth.Changes[i+1:], func(c Change) bool { return c.Key == change.Key })
		switch rng.IntN(3) {
		case 0:
			if last {
				continue // an unsure one may be missing at the end
			}
			drop(&truth, i)
		case 1:
			truth.Changes = slices.Insert(truth.Changes, i, change)
		case 2:
			if last {
				continue
			}
			truth.Changes[i].Value = "z" + change.Value
		}
		if bad := CheckCounters(counts, truth); len(bad) == 0 {
			t.Fatalf("change %d, %+v: nothing was found in %+v, %+v", i, change, counts, truth)
		}
	}
}

func FuzzCountIsReadOrRejected(f *testing.F) {
	for _, s := range []string{"a:1", "a:b:2", ":", "", "a", "a:-1", "a:99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if id, n, ok := parseCount(s); ok && !strings.HasPrefix(s, id+":") {
			t.Errorf("%q was read as %q and %d", s, id, n)
		}
	})
}
