package history

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// group is all that is known of keys that belong together: what was asked of them and
// what the store did to them.
type group struct {
	name    string
	ops     []*Op // well-formed ones, in order of call
	keys    []string
	index   map[string]int // of keys
	initial []string       // values before the first operation, by index
	made    []transaction  // the store's, restricted to the keys
}

// gather sorts operations and truth into groups, in order of name. What cannot be
// judged is a violation.
func gather(ops []Op, truth Truth, bad *findings) []*group {
	groups := make(map[string]*group)
	writer := make(map[string]*Op) // by value
	for i := range ops {
		op := &ops[i]
		if why := op.malformed(); why != "" {
			bad.add("group %s: the record of %s cannot be judged: %s", op.Group, who(op), why)
			continue
		}
		if groups[op.Group] == nil {
			groups[op.Group] = &group{name: op.Group, index: make(map[string]int)}
		}
		groups[op.Group].ops = append(groups[op.Group].ops, op)
		for _, v := range op.Values {
			if first := writer[v]; first != nil {
				bad.add("group %s: value %s is written by %s and by %s: values must be unique", op.Group, shown(v), who(first), who(op))
			}
			writer[v] = op
		}
	}
	all := slices.SortedFunc(maps.Values(groups), func(a, b *group) int { return cmp.Compare(a.name, b.name) })
	share(all, truth, bad)
	return all
}

// share gives each group its keys and its part of the truth.
func share(groups []*group, truth Truth, bad *findings) {
	owner := make(map[string]*group)
	for _, g := range groups {
		slices.SortStableFunc(g.ops, func(a, b *Op) int { return cmp.Compare(a.Call, b.Call) })
		for _, op := range g.ops {
			for _, k := range op.Keys {
				if other := owner[k]; other != nil && other != g {
					bad.add("group %s: %s touches key %q of group %s: groups must not share keys", g.name, who(op), k, other.name)
				}
				owner[k] = g
				if _, known := g.index[k]; !known {
					g.index[k] = len(g.keys)
					g.keys = append(g.keys, k)
				}
			}
		}
		g.initial = make([]string, len(g.keys))
	}
	parts := make(map[*group][]Change)
	for _, c := range truth.Changes {
		if g := owner[c.Key]; g != nil {
			parts[g] = append(parts[g], c)
		}
	}
	for g, changes := range parts {
		g.made = transactions(changes)
		g.begin(changes, truth)
	}
}

// begin finds what the keys held before the truth begins.
func (g *group) begin(changes []Change, truth Truth) {
	seen := make([]bool, len(g.keys))
	for _, c := range changes {
		i, ours := g.index[c.Key]
		if !ours || seen[i] {
			continue
		}
		seen[i] = true
		if value, known := truth.before(c); known {
			g.initial[i] = value
		}
	}
}

// values is what keys hold.
func (g *group) values(held []string, keys []string) []string {
	some := make([]string, len(keys))
	for i, k := range keys {
		some[i] = held[g.index[k]]
	}
	return some
}

// any tells whether one of the keys is there.
func (g *group) any(held []string, keys []string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return held[g.index[k]] != "" })
}

// horizon is a moment after every operation: what is still on its way may happen
// until then.
func (g *group) horizon() time.Duration {
	var last time.Duration
	for _, op := range g.ops {
		last = max(last, op.Return)
	}
	return last + time.Millisecond
}
