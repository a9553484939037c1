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

// before is the value that a change replaced, as the store told: "" for none. It is
// unknown when the store did not tell.
func (c Change) before() (value string, known bool) {
	switch {
	case c.Previous != nil:
		return *c.Previous, true
	case !c.Deleted && c.Version == 1:
		return "", true
	default:
		return "", false
	}
}
