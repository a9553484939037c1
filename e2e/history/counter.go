package history

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// CheckCounters compares counters, each a key that holds "id:count", with the
// increments of their callers:
//
//   - each change in the store adds one to the count before, under the id of an
//     increment of this counter that is on record and was not refused, once;
//   - every acknowledged increment is there.
//
// So the final count is the number of acknowledged increments and of those unsure
// ones that happened. A counter that is absent counts from 0, one that was there
// before from what it held.
func CheckCounters(counts []Count, truth Truth) []string {
	var bad findings
	counters := make(map[string]*counter)
	for _, c := range counts {
		if counters[c.Counter] == nil {
			counters[c.Counter] = &counter{key: c.Counter, known: make(map[string]increment), found: make(map[string]int64)}
		}
		counters[c.Counter].add(c, &bad)
	}
	for _, c := range truth.Changes {
		if counters[c.Key] != nil {
			counters[c.Key].take(c, truth, &bad)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(counters)) {
		counters[key].finish(&bad)
	}
	return bad.list()
}

// counter is one counter while its changes are read.
type counter struct {
	key   string
	known map[string]increment // by id
	found map[string]int64     // revision by id
	begun bool
	first int // count before the first increment
	count int // now
}

// increment is one on record.
type increment struct {
	caller  string
	outcome Outcome
}

func (c *counter) add(by Count, bad *findings) {
	for outcome, ids := range map[Outcome][]string{Done: by.Acked, Refused: by.Refused, Unknown: by.Unsure} {
		for _, id := range ids {
			if before, twice := c.known[id]; twice {
				bad.add("counter %q: increment %q is on record twice, as %s of %s and as %s of %s", c.key, id, before.outcome, before.caller, outcome, by.Caller)
			}
			c.known[id] = increment{by.Caller, outcome}
		}
	}
}

// take lets one change happen.
func (c *counter) take(change Change, truth Truth, bad *findings) {
	if !c.begun {
		c.begun = true
		if value, known := truth.before(change); known {
			_, c.first, _ = parseCount(value)
			c.count = c.first
		}
	}
	id, count, ok := parseCount(change.Value)
	if change.Deleted || !ok {
		bad.add("counter %q: revision %d left %s, not id:count", c.key, change.Revision, shown(change.Value))
		return
	}
	if count != c.count+1 {
		bad.add("counter %q: increment %q made the count %d from %d at revision %d: want %d, one was lost or doubled", c.key, id, count, c.count, change.Revision, c.count+1)
	}
	c.count = count
	by, known := c.known[id]
	switch first := c.found[id]; {
	case !known:
		bad.add("counter %q: revision %d holds increment %q, which nobody made", c.key, change.Revision, id)
	case first != 0:
		bad.add("counter %q: increment %q of %s was applied at revision %d and again at %d", c.key, id, by.caller, first, change.Revision)
	case by.outcome == Refused:
		bad.add("counter %q: increment %q of %s was refused and stands in the store's history at revision %d", c.key, id, by.caller, change.Revision)
	}
	c.found[id] = change.Revision
}

// finish looks for what never came.
func (c *counter) finish(bad *findings) {
	want := c.first
	for _, id := range slices.Sorted(maps.Keys(c.known)) {
		by := c.known[id]
		if c.found[id] != 0 {
			want++
		} else if by.outcome == Done {
			want++
			bad.add("counter %q: increment %q of %s was acknowledged and is not in the store's history", c.key, id, by.caller)
		}
	}
	if want != c.count {
		bad.add("counter %q: it ends at %d, want %d: as many as were acknowledged, and those of unknown outcome that happened", c.key, c.count, want)
	}
}

// parseCount reads "id:count".
func parseCount(value string) (id string, count int, ok bool) {
	i := strings.LastIndexByte(value, ':')
	if i < 0 {
		return "", 0, false
	}
	count, err := strconv.Atoi(value[i+1:])
	return value[:i], count, err == nil
}
