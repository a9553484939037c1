package picker

import "strconv"

// Class says what kind of call a [Call] is, as far as moving it is concerned.
type Class int

const (
	// ClassRead: safe to repeat.
	ClassRead Class = iota
	// ClassMutation: must not be sent twice.
	ClassMutation
	// ClassWatch: a watch stream.
	ClassWatch
	// ClassLease: a lease keepalive stream.
	ClassLease
	// ClassStream: any other stream.
	ClassStream
	// ClassOther: a call that nobody moves.
	ClassOther

	// classes is the number of classes.
	classes = int(ClassOther) + 1
)

// String returns read, mutation, watch, lease, stream or other, for any other value
// class(n).
func (c Class) String() string {
	switch c {
	case ClassRead:
		return "read"
	case ClassMutation:
		return "mutation"
	case ClassWatch:
		return "watch"
	case ClassLease:
		return "lease"
	case ClassStream:
		return "stream"
	case ClassOther:
		return "other"
	default:
		return "class(" + strconv.Itoa(int(c)) + ")"
	}
}

// stream tells the classes that stay on an endpoint for long, so that it
// matters how many of them it already has.
func (c Class) stream() bool {
	switch c {
	case ClassWatch, ClassLease, ClassStream:
		return true
	case ClassRead, ClassMutation, ClassOther:
		return false
	default:
		return false
	}
}

// known maps a class from outside to one that arrays can be indexed by.
func (c Class) known() Class {
	if c < 0 || int(c) >= classes {
		return ClassOther
	}
	return c
}
