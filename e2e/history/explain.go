package history

import (
	"cmp"
	"slices"
)

// explain says what is wrong with a group by going along the store's own history. As
// answers carry revisions, an order that explains them can only be the order of
// revisions: so this is a judgement of its own, beside that of the search, and the
// one that can name the operation that is wrong.
func (g *group) explain(calls []*call, truth Truth, bad *findings) {
	g.explainWrites(truth, bad)
	g.explainMade(calls, bad)
	g.explainAnswers(calls, bad)
	g.explainOrder(calls, bad)
}

// explainWrites compares operations that write values with where these stand in the
// store.
func (g *group) explainWrites(truth Truth, bad *findings) {
	byValue := g.revisionsByValue()
	for _, op := range g.ops {
		if op.Outcome == Done && (op.Revision < truth.From || op.Revision > truth.Upto) {
			bad.add("group %s: %s was answered at revision %d, outside the store's history that is known, %d to %d", g.name, who(op), op.Revision, truth.From, truth.Upto)
			continue
		}
		if op.writes() {
			g.explainWrite(op, appliedAt(op, byValue), bad)
		}
	}
}

func (g *group) explainWrite(op *Op, found []int64, bad *findings) {
	acked := op.Outcome == Done && (op.Kind == Put || op.Swapped)
	switch {
	case len(found) > 1:
		bad.add("group %s: what %s wrote stands at revisions %v: it was applied twice, or not as one transaction", g.name, who(op), found)
	case len(found) == 0 && acked:
		bad.add("group %s: %s was acknowledged at revision %d and is not in the store's history", g.name, who(op), op.Revision)
	case len(found) == 0:
	case op.Outcome == Refused:
		bad.add("group %s: %s was refused (%s) and stands in the store's history at revision %d", g.name, who(op), op.Error, found[0])
	case op.Outcome == Done && !acked:
		bad.add("group %s: %s was told that it did not swap and stands in the store's history at revision %d", g.name, who(op), found[0])
	case acked && found[0] != op.Revision:
		bad.add("group %s: %s was acknowledged at revision %d and stands in the store's history at revision %d", g.name, who(op), op.Revision, found[0])
	}
}

// explainMade looks for changes in the store that no operation explains.
func (g *group) explainMade(calls []*call, bad *findings) {
	writer := make(map[string]*Op)
	for _, op := range g.ops {
		for _, v := range op.Values {
			writer[v] = op
		}
	}
	deleter := make(map[int64]bool)
	for _, c := range calls {
		if c.op.Kind == Delete && c.role == changing {
			deleter[c.revision] = true
		}
	}
	for _, t := range g.made {
		if !t.deletes() {
			g.explainPut(t, writer, bad)
		} else if !deleter[t.revision] {
			bad.add("group %s: revision %d deleted %q, which no operation can have done", g.name, t.revision, keysOf(t))
		}
	}
}

// explainPut compares a transaction that puts values with the operation whose they are.
func (g *group) explainPut(t transaction, writer map[string]*Op, bad *findings) {
	var by *Op
	for _, c := range t.changes {
		op := writer[c.Value]
		switch {
		case c.Deleted || op == nil:
			bad.add("group %s: revision %d left %s in %q, which no operation wrote", g.name, t.revision, shown(c.Value), c.Key)
			return
		case by != nil && op != by:
			bad.add("group %s: revision %d holds writes of %s and of %s", g.name, t.revision, who(by), who(op))
			return
		case slices.Index(op.Keys, c.Key) != slices.Index(op.Values, c.Value):
			bad.add("group %s: revision %d wrote %s to %q, where %s did not want it", g.name, t.revision, shown(c.Value), c.Key, who(op))
			return
		}
		by = op
	}
	if by != nil && len(t.changes) != len(by.Keys) {
		bad.add("group %s: revision %d wrote %q, a part of the keys %q of %s", g.name, t.revision, keysOf(t), by.Keys, who(by))
	}
}

func keysOf(t transaction) []string {
	var all []string
	for _, c := range t.changes {
		all = append(all, c.Key)
	}
	return all
}

// explainAnswers compares what operations found, or needed to find, with what the keys
// held at their revision.
func (g *group) explainAnswers(calls []*call, bad *findings) {
	held := slices.Clone(g.initial)
	next := 0
	for _, c := range byRevision(calls) {
		upto := c.revision
		if c.role == changing {
			upto-- // what it found was before its own change
		}
		for next < len(g.made) && g.made[next].revision <= upto {
			g.advance(held, g.made[next])
			next++
		}
		g.explainAnswer(c, held, bad)
	}
}

func (g *group) explainAnswer(c *call, held []string, bad *findings) {
	op := c.op
	if op.Kind == Swap && c.role == changing {
		if now := held[g.index[op.Keys[0]]]; now != op.Expect {
			bad.add("group %s: %s swapped at revision %d though %q held %s, not %s", g.name, who(op), c.revision, op.Keys[0], shown(now), shown(op.Expect))
		}
	}
	if op.Kind == Swap && c.role == reading && op.Found[0] == op.Expect {
		bad.add("group %s: %s did not swap at revision %d though it found %s in %q, as it expected", g.name, who(op), c.revision, shown(op.Found[0]), op.Keys[0])
	}
	for i, k := range op.Keys {
		now := held[g.index[k]]
		if op.finds() && op.Found[i] != now {
			bad.add("group %s: %s found %s in %q at revision %d, where the store held %s", g.name, who(op), shown(op.Found[i]), k, c.revision, shown(now))
		}
		if op.Kind == Delete && c.role == reading && now != "" {
			bad.add("group %s: %s was acknowledged at revision %d, where the store still held %s in %q", g.name, who(op), c.revision, shown(now), k)
		}
	}
}

// byRevision orders calls as they must have happened: a change before those that read
// at its revision.
func byRevision(calls []*call) []*call {
	return slices.SortedStableFunc(slices.Values(calls), func(a, b *call) int {
		if a.revision != b.revision {
			return cmp.Compare(a.revision, b.revision)
		}
		return cmp.Compare(b.role, a.role)
	})
}

// explainOrder looks for calls whose revision is older than what had been answered
// before they began.
func (g *group) explainOrder(calls []*call, bad *findings) {
	returned := slices.DeleteFunc(slices.Clone(calls), func(c *call) bool { return c.op.Outcome != Done })
	slices.SortStableFunc(returned, func(a, b *call) int { return cmp.Compare(a.op.Return, b.op.Return) })
	var newest *call
	next := 0
	for _, c := range calls { // in order of call
		for ; next < len(returned) && returned[next].op.Return < c.op.Call; next++ {
			if newest == nil || returned[next].revision > newest.revision {
				newest = returned[next]
			}
		}
		if newest == nil || c.revision > newest.revision || c.role == reading && c.revision == newest.revision {
			continue
		}
		bad.add("group %s: %s, called at %s, has revision %d, though %s had returned at %s with revision %d: it went back in time",
			g.name, who(c.op), at(c.op.Call), c.revision, who(newest.op), at(newest.op.Return), newest.revision)
	}
}
