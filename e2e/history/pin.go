package history

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// pin finds the revision of every call of a group: from its answer or, for one that
// has none, from the store's own history. Calls without an answer that the store knows
// nothing of never happened and are left out.
func (g *group) pin() []*call {
	var calls []*call
	end := g.horizon()
	byValue := g.revisionsByValue()
	for _, op := range g.ops {
		switch {
		case op.Outcome == Done:
			calls = append(calls, &call{op: op, role: op.role(), revision: op.Revision, end: op.Return})
		case op.Outcome == Unknown && op.writes():
			if r := appliedAt(op, byValue); len(r) > 0 {
				calls = append(calls, &call{op: op, role: changing, revision: r[0], end: end})
			}
		}
	}
	calls = append(calls, g.pinDeletions(calls, end)...)
	slices.SortStableFunc(calls, func(a, b *call) int { return cmp.Compare(a.op.Call, b.op.Call) })
	return calls
}

// role is that of an answered operation; a deletion's is a reading until the store's
// history shows a change for it.
func (op *Op) role() role {
	if op.Kind == Put || op.Kind == Swap && op.Swapped {
		return changing
	}
	return reading
}

func (g *group) revisionsByValue() map[string][]int64 {
	all := make(map[string][]int64)
	for _, t := range g.made {
		for _, c := range t.changes {
			if !c.Deleted {
				all[c.Value] = append(all[c.Value], c.Revision)
			}
		}
	}
	return all
}

// pinDeletions finds out which calls made the deletions in the store's history: they
// leave no value to know them by. Answered ones have priority, as they can have made
// none but that of their own revision (several may have the same: one deleted, the
// others came right after and found nothing). The rest is shared among those without an
// answer. Either way it must have been called before anybody saw the deletion: any
// assignment within that limit is as good as any other.
func (g *group) pinDeletions(calls []*call, end time.Duration) []*call {
	known := seenBy(calls)
	match := matching{made: make(map[*Op]int)}
	held := slices.Clone(g.initial)
	for _, t := range g.made {
		if t.deletes() {
			limit := known.limit(t.revision)
			if c := g.answeredDeletion(calls, held, t, limit); c != nil {
				c.role = changing
			} else {
				match.add(t, g.candidates(held, t, limit))
			}
		}
		g.advance(held, t)
	}
	var found []*call
	for op, i := range match.made {
		found = append(found, &call{op: op, role: changing, revision: match.wanted[i].revision, end: end})
	}
	return found
}

func (g *group) answeredDeletion(calls []*call, held []string, t transaction, limit time.Duration) *call {
	for _, c := range calls {
		if c.op.Kind == Delete && c.revision == t.revision && c.op.Call <= limit && g.explains(c.op, held, t) {
			return c
		}
	}
	return nil
}

// candidates are the deletions without an answer that can have made a transaction.
func (g *group) candidates(held []string, t transaction, limit time.Duration) []*Op {
	var some []*Op
	for _, op := range g.ops {
		if op.Kind == Delete && op.Outcome == Unknown && op.Call <= limit && g.explains(op, held, t) {
			some = append(some, op)
		}
	}
	return some
}

// explains tells whether a deletion, done to what the keys held, makes just this
// transaction.
func (g *group) explains(op *Op, held []string, t transaction) bool {
	there := 0
	for _, k := range op.Keys {
		if held[g.index[k]] != "" {
			there++
		}
	}
	return there == len(t.changes) && !slices.ContainsFunc(t.changes, func(c Change) bool { return !slices.Contains(op.Keys, c.Key) })
}

// advance lets a transaction happen to what the keys hold.
func (g *group) advance(held []string, t transaction) {
	for _, c := range t.changes {
		held[g.index[c.Key]] = c.Value
		if c.Deleted {
			held[g.index[c.Key]] = ""
		}
	}
}

// sightings tell by when a revision had been made, as answers show.
type sightings struct {
	revisions []int64         // rising
	returned  []time.Duration // earliest return of an answer with this revision or a higher one
}

func seenBy(calls []*call) sightings {
	answers := slices.DeleteFunc(slices.Clone(calls), func(c *call) bool { return c.op.Outcome != Done })
	slices.SortFunc(answers, func(a, b *call) int { return cmp.Compare(a.revision, b.revision) })
	s := sightings{make([]int64, len(answers)), make([]time.Duration, len(answers))}
	earliest := time.Duration(math.MaxInt64)
	for i, c := range slices.Backward(answers) {
		earliest = min(earliest, c.op.Return)
		s.revisions[i], s.returned[i] = c.revision, earliest
	}
	return s
}

func (s sightings) limit(revision int64) time.Duration {
	i, _ := slices.BinarySearch(s.revisions, revision)
	if i == len(s.revisions) {
		return math.MaxInt64
	}
	return s.returned[i]
}

// matching shares transactions among the operations that can have made them, no
// operation twice, by augmenting paths.
type matching struct {
	wanted []transaction
	able   [][]*Op
	made   map[*Op]int // index of wanted
}

func (m *matching) add(t transaction, able []*Op) {
	m.wanted = append(m.wanted, t)
	m.able = append(m.able, able)
	m.place(len(m.wanted)-1, make(map[*Op]bool))
}

func (m *matching) place(i int, tried map[*Op]bool) bool {
	for _, op := range m.able[i] {
		if tried[op] {
			continue
		}
		tried[op] = true
		if other, taken := m.made[op]; !taken || m.place(other, tried) {
			m.made[op] = i
			return true
		}
	}
	return false
}
