package history

import "slices"

// transaction is what the store changed in one revision.
type transaction struct {
	revision int64
	changes  []Change
}

// transactions cuts changes into revisions. Changes of one revision stand together
// in the truth.
func transactions(changes []Change) []transaction {
	var all []transaction
	for c := range slices.Values(changes) {
		if n := len(all); n > 0 && all[n-1].revision == c.Revision {
			all[n-1].changes = append(all[n-1].changes, c)
			continue
		}
		all = append(all, transaction{c.Revision, []Change{c}})
	}
	return all
}

// deletes tells whether the transaction does nothing but delete.
func (t transaction) deletes() bool {
	return !slices.ContainsFunc(t.changes, func(c Change) bool { return !c.Deleted })
}

// before is the value that the first change of a key in the truth found: "" for none.
// It is unknown where the key is older than the truth and the store did not tell.
func (t Truth) before(c Change) (value string, known bool) {
	switch {
	case !c.Deleted && c.Create > t.From:
		return "", true // it was not there when the truth begins
	case c.Previous != nil:
		return *c.Previous, true
	default:
		return "", false
	}
}
