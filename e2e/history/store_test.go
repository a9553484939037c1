package history

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// store is a correct store in virtual time: what callers do to it happens at one moment
// between call and return, whole.
type store struct {
	rng      *rand.Rand
	now      time.Duration
	agenda   agenda
	revision int64
	held     map[string]entry
	truth    Truth
}

type entry struct {
	value           string
	create, version int64
}

func newStore(rng *rand.Rand) *store {
	return &store{rng: rng, revision: 1, held: make(map[string]entry), truth: Truth{From: 1}}
}

// after lets something happen d from now.
func (s *store) after(d time.Duration, do func()) {
	heap.Push(&s.agenda, event{s.now + d, do})
}

// run lets everything happen.
func (s *store) run() {
	for len(s.agenda) > 0 {
		e := heap.Pop(&s.agenda).(event)
		s.now = e.at
		e.do()
	}
	s.truth.Upto = s.revision
}

// some is a random duration up to a limit.
func (s *store) some(limit time.Duration) time.Duration {
	return time.Duration(1 + s.rng.Int64N(int64(limit)))
}

// commit makes one transaction: "" deletes. It returns the revision.
func (s *store) commit(keys []string, value func(i int) string) int64 {
	revision := s.revision + 1
	for i, k := range keys {
		if old, there := s.held[k]; there || value(i) != "" {
			s.revision = revision
			s.change(k, value(i), old, there)
		}
	}
	return s.revision
}

func (s *store) change(k, value string, old entry, there bool) {
	c := Change{Revision: s.revision, Key: k}
	if there {
		c.Previous = &old.value
	}
	if value == "" {
		c.Deleted = true
		delete(s.held, k)
	} else {
		e := entry{value, old.create, old.version + 1}
		if !there {
			e.create = s.revision
		}
		s.held[k] = e
		c.Value, c.Create, c.Version = value, e.create, e.version
	}
	s.truth.Changes = append(s.truth.Changes, c)
}

func (s *store) find(keys []string) []string {
	var all []string
	for _, k := range keys {
		all = append(all, s.held[k].value)
	}
	return all
}

type event struct {
	at time.Duration
	do func()
}

// agenda is a heap of events.
type agenda []event

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(e any)        { *a = append(*a, e.(event)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// crowd is a number of callers that work on groups of keys.
type crowd struct {
	groups, callers, ops, keys int     // callers and keys a group, ops a caller
	unknown, refused           float64 // parts of the operations
}

// play lets a crowd work on a store that keeps its promises.
func (c crowd) play(rng *rand.Rand) ([]Op, Truth) {
	s := newStore(rng)
	var ops []*Op
	for g := range c.groups {
		for n := range c.callers {
			w := &worker{store: s, crowd: c, group: fmt.Sprintf("g%d", g), caller: g*c.callers + n}
			w.file = func(op *Op) { ops = append(ops, op) }
			s.after(s.some(time.Millisecond), w.next)
		}
	}
	s.run()
	var all []Op
	for _, op := range ops {
		all = append(all, *op)
	}
	return all, s.truth
}

type worker struct {
	*store
	crowd  crowd
	group  string
	caller int
	begun  int
	file   func(*Op)
}

// next begins an operation.
func (w *worker) next() {
	if w.begun == w.crowd.ops {
		return
	}
	w.begun++
	op := w.invent()
	w.file(op)
	point := w.some(3 * time.Millisecond)
	switch p := w.rng.Float64(); {
	case p < w.crowd.unknown:
		op.Outcome, op.Error = Unknown, "deadline exceeded"
		gaveUp := w.some(4 * time.Millisecond)
		op.Return = w.now + gaveUp
		if w.rng.IntN(2) == 0 {
			w.after(point*time.Duration(1+w.rng.IntN(20)), func() { w.happen(op) })
		}
		w.after(gaveUp+w.some(time.Millisecond), w.next)
	case p < w.crowd.unknown+w.crowd.refused:
		op.Outcome, op.Error = Refused, "too many requests"
		op.Return = w.now + point
		w.after(point+w.some(time.Millisecond), w.next)
	default:
		op.Outcome = Done
		w.after(point, func() {
			w.happen(op)
			back := w.some(2 * time.Millisecond)
			op.Return = w.now + back
			w.after(back+w.some(time.Millisecond)-1, w.next)
		})
	}
	if w.rng.IntN(4) == 0 { // others use the store too
		w.after(point, func() { w.commit([]string{"other"}, func(int) string { return "x" }) })
	}
}

func (w *worker) invent() *Op {
	op := &Op{Caller: w.caller, Group: w.group, ID: fmt.Sprintf("%s-c%d-%d", w.group, w.caller, w.begun), Call: w.now}
	op.Kind = []Kind{Get, Get, Put, Delete, Swap}[w.rng.IntN(5)]
	for _, k := range w.rng.Perm(w.crowd.keys)[:1+w.rng.IntN(w.crowd.keys)] {
		op.Keys = append(op.Keys, fmt.Sprintf("%s/k%d", w.group, k))
	}
	if op.writes() {
		for i := range op.Keys {
			op.Values = append(op.Values, fmt.Sprintf("%s/%d", op.ID, i))
		}
	}
	if op.Kind == Swap && w.rng.IntN(5) > 0 {
		op.Expect = w.held[op.Keys[0]].value
	}
	return op
}

// happen is the moment at which the store does an operation.
func (w *worker) happen(op *Op) {
	var swapped bool
	var found []string
	switch op.Kind {
	case Get:
		found = w.find(op.Keys)
	case Put:
		w.commit(op.Keys, func(i int) string { return op.Values[i] })
	case Delete:
		w.commit(op.Keys, func(int) string { return "" })
	case Swap:
		if swapped = w.held[op.Keys[0]].value == op.Expect; swapped {
			w.commit(op.Keys, func(i int) string { return op.Values[i] })
		} else {
			found = w.find(op.Keys)
		}
	}
	if op.Outcome == Done {
		op.Revision, op.Swapped, op.Found = w.revision, swapped, found
	}
}

// explained is the oracle: it tries every order of a small history, with every unknown
// operation at every place or at none. It knows nothing of a truth.
func explained(ops []Op) bool {
	var some []Op
	for _, op := range ops {
		if op.Outcome != Refused && !(op.Outcome == Unknown && op.Kind == Get) {
			some = append(some, op)
		}
	}
	return ordered(some, map[string]string{}, 0)
}

func ordered(left []Op, held map[string]string, seen int64) bool {
	if !slices.ContainsFunc(left, func(o Op) bool { return o.Outcome == Done }) {
		return true
	}
	for i, op := range left {
		late := slices.ContainsFunc(left, func(o Op) bool { return o.Outcome == Done && o.Return < op.Call })
		if late {
			continue
		}
		after, rev, ok := obeyed(op, held, seen)
		if ok && ordered(slices.Delete(slices.Clone(left), i, i+1), after, rev) {
			return true
		}
	}
	return false
}

// obeyed does one operation the plain way.
func obeyed(op Op, held map[string]string, seen int64) (map[string]string, int64, bool) {
	after := make(map[string]string)
	for k, v := range held {
		after[k] = v
	}
	writes := op.Kind == Put || op.Kind == Swap && held[op.Keys[0]] == op.Expect
	changed := writes
	for i, k := range op.Keys {
		if writes {
			after[k] = op.Values[i]
		}
		if op.Kind == Delete {
			changed = changed || held[k] != ""
			delete(after, k)
		}
	}
	if op.Outcome == Unknown {
		return after, seen + 1, changed
	}
	if op.Kind == Swap && op.Swapped != writes {
		return nil, 0, false
	}
	for i, k := range op.Keys {
		if (op.Kind == Get || op.Kind == Swap && !writes) && held[k] != op.Found[i] {
			return nil, 0, false
		}
	}
	if changed {
		return after, op.Revision, op.Revision > seen
	}
	return after, op.Revision, op.Revision >= seen
}
