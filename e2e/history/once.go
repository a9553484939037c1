package history

import "slices"

// CheckOnce says which operations were applied, or reached a server, more often than
// once; which were acknowledged and never applied; and which were refused and applied
// all the same. It looks at operations that write values: deletions leave none.
//
// arrived counts arrivals at servers by the value that is written; nil says that
// nobody counted. Counts of other things than these operations prove nothing, and are
// told.
func CheckOnce(ops []Op, truth Truth, arrived map[string]int) []string {
	var bad findings
	at := make(map[string][]int64) // revisions by value
	for _, c := range truth.Changes {
		if !c.Deleted {
			at[c.Value] = append(at[c.Value], c.Revision)
		}
	}
	acked, counted := 0, false
	for i := range ops {
		if op := &ops[i]; op.Kind == Put || op.Kind == Swap {
			checkOnce(&bad, op, at, arrived)
			if op.Outcome == Done {
				acked++
			}
			counted = counted || slices.ContainsFunc(op.Values, func(v string) bool { return arrived[v] > 0 })
		}
	}
	if arrived != nil && acked > 0 && !counted {
		bad.add("none of %d answered operations was counted where it arrived: the servers' counts say nothing", acked)
	}
	return bad.list()
}

func checkOnce(bad *findings, op *Op, at map[string][]int64, arrived map[string]int) {
	applied := appliedAt(op, at)
	acked := op.Outcome == Done && (op.Kind == Put || op.Swapped)
	switch {
	case len(applied) > 1:
		bad.add("%s was applied at revisions %v: a mutation was sent again", who(op), applied)
	case len(applied) == 0 && acked:
		bad.add("%s was acknowledged at revision %d and is not in the store's history", who(op), op.Revision)
	case len(applied) == 1 && op.Outcome == Refused:
		bad.add("%s was refused (%s) and stands in the store's history at revision %d", who(op), op.Error, applied[0])
	case len(applied) == 1 && op.Outcome == Done && !acked:
		bad.add("%s was told that it did not swap, and stands in the store's history at revision %d", who(op), applied[0])
	}
	for _, v := range op.Values {
		if n := arrived[v]; n > 1 {
			bad.add("%s reached servers %d times with value %s: a mutation was sent again", who(op), n, shown(v))
		}
	}
}

// appliedAt is the revisions at which values of an operation were written: one for
// every time that it was applied, as long as the store keeps transactions whole.
func appliedAt(op *Op, at map[string][]int64) []int64 {
	var all []int64
	for _, v := range op.Values {
		all = append(all, at[v]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
