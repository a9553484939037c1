package history

import (
	"fmt"
	"strings"
)

// who names an operation in a line.
func who(op *Op) string {
	return fmt.Sprintf("%s %q of caller %d", op.Kind, op.ID, op.Caller)
}

// writes tells whether an operation, if it happens, leaves values of its own.
func (op *Op) writes() bool { return op.Kind == Put || op.Kind == Swap }

// malformed says what is wrong with the record of an operation; "" if nothing is. A
// record comes from another process: one that cannot be judged is a violation, lest
// a mistake of the recorder make the check blind.
func (op *Op) malformed() string {
	switch {
	case op.Kind != Get && op.Kind != Put && op.Kind != Delete && op.Kind != Swap:
		return fmt.Sprintf("kind %q is none of get, put, delete, swap", op.Kind)
	case op.Outcome != Done && op.Outcome != Refused && op.Outcome != Unknown:
		return fmt.Sprintf("outcome %q is none of done, refused, unknown", op.Outcome)
	case len(op.Keys) == 0:
		return "it has no keys"
	case op.Call > op.Return:
		return fmt.Sprintf("it returned at %s, before its call at %s", at(op.Return), at(op.Call))
	case op.Outcome == Done && op.Revision <= 0:
		return "its answer has no revision"
	}
	return op.misfit()
}

// misfit is the part of malformed about the number of values.
func (op *Op) misfit() string {
	if op.writes() {
		if len(op.Values) != len(op.Keys) {
			return fmt.Sprintf("%d values for %d keys", len(op.Values), len(op.Keys))
		}
		for _, v := range op.Values {
			if v == "" || !strings.HasPrefix(v, op.ID) {
				return fmt.Sprintf("value %s does not begin with its id", shown(v))
			}
		}
	}
	if op.finds() && len(op.Found) != len(op.Keys) {
		return fmt.Sprintf("%d values found for %d keys", len(op.Found), len(op.Keys))
	}
	return ""
}

// finds tells whether the answer carries what the keys held.
func (op *Op) finds() bool {
	return op.Outcome == Done && (op.Kind == Get || op.Kind == Swap && !op.Swapped)
}
