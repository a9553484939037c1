package history

import (
	"fmt"
	"strings"
	"time"
)

// role is what an operation did to the store, as far as its answer or the store's own
// history tells.
type role int

// The roles.
const (
	answered role = iota // it has an answer; whether a deletion changed anything depends on what it found
	reading              // it has an answer and changed nothing
	changing             // it is the change of its group at its revision
	open                 // it has no answer and may have happened at any time after its call, or never
)

// call is one operation in the search for an order.
type call struct {
	op       *Op
	role     role
	revision int64         // the answer's, or the store's for one without an answer; 0: open
	end      time.Duration // latest moment at which it can have happened

	first, last int // of the places that it can have in the order of revisions, if all are known
}

// describe is what a reader sees in the illustration.
func (c *call) describe() string {
	var b strings.Builder
	op := c.op
	switch op.Kind {
	case Get:
		fmt.Fprintf(&b, "get %s", pairs(op.Keys, op.Found, " = "))
	case Put:
		fmt.Fprintf(&b, "put %s", pairs(op.Keys, op.Values, " := "))
	case Delete:
		fmt.Fprintf(&b, "delete %s", strings.Join(op.Keys, ", "))
	case Swap:
		fmt.Fprintf(&b, "if %s = %s put %s", op.Keys[0], shown(op.Expect), pairs(op.Keys, op.Values, " := "))
		if op.Outcome == Done && !op.Swapped {
			fmt.Fprintf(&b, ": no, found %s", pairs(op.Keys, op.Found, " = "))
		}
	}
	switch {
	case c.role == open:
		b.WriteString(" (outcome unknown)")
	case op.Outcome == Unknown:
		fmt.Fprintf(&b, " (no answer; the store has it at revision %d)", c.revision)
	default:
		fmt.Fprintf(&b, " @%d", c.revision)
	}
	return b.String()
}

// pairs shows keys with what belongs to them.
func pairs(keys, values []string, between string) string {
	all := make([]string, 0, len(keys))
	for i, k := range keys {
		if i < len(values) {
			k += between + shown(values[i])
		}
		all = append(all, k)
	}
	return strings.Join(all, ", ")
}
