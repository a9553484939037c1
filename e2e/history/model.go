package history

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// state is a group between two operations.
type state struct {
	held []string // by index of key; "" for an absent one
	seen int64    // the highest revision that an answer so far has told
	turn int      // how many calls have come: in the order of revisions, whose turn it is
}

func (s *state) equal(o *state) bool {
	return s.seen == o.seen && s.turn == o.turn && slices.Equal(s.held, o.held)
}

var hashSeed = maphash.MakeSeed()

func (s *state) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	maphash.WriteComparable(&h, s.seen)
	for _, v := range s.held {
		maphash.WriteComparable(&h, v)
	}
	return h.Sum64()
}

// model is what a correct store does with the operations of one group, one after the
// other. Revisions are the whole store's, so a group sees gaps between its own.
type model struct {
	*group
	begin  *state
	pinned bool // every call has a revision, and a place
}

// place gives every call its place in the order of revisions: calls that change
// nothing share one where they have the same revision.
func place(calls []*call) {
	ordered := byRevision(calls)
	for i, c := range ordered {
		c.first, c.last = i, i
		if i > 0 && c.role == reading && ordered[i-1].role == reading && ordered[i-1].revision == c.revision {
			c.first = ordered[i-1].first
		}
	}
	for i, c := range slices.Backward(ordered) {
		if i+1 < len(ordered) && ordered[i+1].first == c.first {
			c.last = ordered[i+1].last
		}
	}
}

// step tells whether a call can come next and what it leaves behind: more than one
// state if nobody knows what it did.
//
// A change has a revision above all that the group has told before, a read none
// below. So where all revisions are known, calls can only come in their order. Asking
// for that at once is no further condition, any other order would be found wrong
// later, but it keeps the search from trying them.
func (m *model) step(s *state, c *call) []*state {
	if m.pinned && (s.turn < c.first || s.turn > c.last) {
		return nil
	}
	switch c.role {
	case open:
		return m.guess(s, c.op)
	case reading:
		return m.read(s, c)
	case changing:
		return m.change(s, c)
	default: // answered
		if changes := m.changesIn(s, c.op); changes {
			return m.change(s, c)
		}
		return m.read(s, c)
	}
}

func (m *model) changesIn(s *state, op *Op) bool {
	switch op.Kind {
	case Put:
		return true
	case Swap:
		return op.Swapped
	case Delete:
		return m.any(s.held, op.Keys)
	default:
		return false
	}
}

func (m *model) read(s *state, c *call) []*state {
	if c.revision < s.seen {
		return nil
	}
	switch op := c.op; op.Kind {
	case Get:
		if !slices.Equal(op.Found, m.values(s.held, op.Keys)) {
			return nil
		}
	case Swap:
		if op.Found[0] == op.Expect || !slices.Equal(op.Found, m.values(s.held, op.Keys)) {
			return nil
		}
	case Delete:
		if m.any(s.held, op.Keys) {
			return nil
		}
	default: // a put always changes something
		return nil
	}
	return []*state{{held: s.held, seen: c.revision, turn: s.turn + 1}}
}

func (m *model) change(s *state, c *call) []*state {
	if c.revision <= s.seen {
		return nil
	}
	held, possible := m.apply(s.held, c.op)
	if !possible {
		return nil
	}
	return []*state{{held: held, seen: c.revision, turn: s.turn + 1}}
}

// apply is what a change leaves of the values; impossible if it would change nothing.
func (m *model) apply(held []string, op *Op) (after []string, possible bool) {
	switch op.Kind {
	case Swap:
		possible = held[m.index[op.Keys[0]]] == op.Expect
	case Delete:
		possible = m.any(held, op.Keys)
	default:
		possible = op.Kind == Put
	}
	if !possible {
		return nil, false
	}
	after = slices.Clone(held)
	for i, k := range op.Keys {
		after[m.index[k]] = ""
		if op.writes() {
			after[m.index[k]] = op.Values[i]
		}
	}
	return after, true
}

// guess is both that an operation happened, with the lowest revision that it can have
// had, and that it did not.
func (m *model) guess(s *state, op *Op) []*state {
	skipped := &state{held: s.held, seen: s.seen, turn: s.turn + 1}
	if held, possible := m.apply(s.held, op); possible {
		return []*state{skipped, {held: held, seen: s.seen + 1, turn: s.turn + 1}}
	}
	return []*state{skipped}
}

// porcupine is the model in the form that the search takes.
func (m *model) porcupine() porcupine.Model {
	form := porcupine.NondeterministicModel{
		Init: func() []any { return []any{m.begin} },
		Step: func(s, in, _ any) []any {
			var all []any
			for _, next := range m.step(s.(*state), in.(*call)) {
				all = append(all, next)
			}
			return all
		},
		Equal:             func(a, b any) bool { return a.(*state).equal(b.(*state)) },
		Hash:              func(s any) uint64 { return s.(*state).hash() },
		DescribeOperation: func(in, _ any) string { return in.(*call).describe() },
		DescribeState:     func(s any) string { return m.describe(s.(*state)) },
	}
	return form.ToModel()
}

// describe shows a state in the illustration.
func (m *model) describe(s *state) string {
	return fmt.Sprintf("%s, seen %d", strings.ReplaceAll(pairs(m.keys, s.held, " = "), `"`, ""), s.seen)
}
