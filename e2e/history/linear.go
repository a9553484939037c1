package history

import (
	"time"

	"github.com/anishathalye/porcupine"
)

// Linearity is what the search for an order of operations has found.
type Linearity struct {
	Decided      bool // every group was decided in the time given
	Violations   []string
	Illustration []byte // HTML of the first group that is wrong
}

// Linearizable looks in each group for an order of its operations, each between its
// call and its return, in which a correct store gives every answer that was given, and
// compares the operations with the store's own history.
//
// An operation of unknown outcome may have happened at any time after its call, or
// never; the truth tells. It must therefore be read when nothing is on its way any
// more, and reach back to before the first operation. Without one (the zero Truth,
// keys absent at the beginning) every possibility is tried, which takes time
// exponential in the number of unknown outcomes.
//
// The search ends after timeout, 0 being never; what the comparison finds does not
// depend on it.
func Linearizable(ops []Op, truth Truth, timeout time.Duration) Linearity {
	var bad findings
	result := Linearity{Decided: true}
	limit := newBudget(timeout)
	for _, g := range gather(ops, truth, &bad) {
		m, calls := g.model(truth)
		before := bad.total
		if m.pinned {
			g.explain(calls, truth, &bad)
		}
		if bad.total == before { // else the verdict is out, and a search for what is not there takes long
			switch m.search(calls, limit) {
			case porcupine.Unknown:
				result.Decided = false
			case porcupine.Illegal:
				bad.add("group %s: no order of its %d operations explains every answer", g.name, len(calls))
			}
		}
		if bad.total > before && result.Illustration == nil {
			result.Illustration = m.illustrate(calls, bad.lines[min(before, most-1):min(bad.total, most)])
		}
	}
	result.Violations = bad.list()
	return result
}

// model is the group for the search, with the calls that take part in it.
func (g *group) model(truth Truth) (*model, []*call) {
	m := &model{group: g, begin: &state{held: g.initial}}
	if truth.Upto == 0 {
		return m, g.calls()
	}
	m.pinned = true
	calls := g.pin()
	place(calls)
	return m, calls
}

// calls are those of a group of whose own history nothing is known.
func (g *group) calls() []*call {
	var calls []*call
	for _, op := range g.ops {
		switch {
		case op.Outcome == Done:
			calls = append(calls, &call{op: op, role: answered, revision: op.Revision, end: op.Return})
		case op.Outcome == Unknown && op.Kind != Get:
			calls = append(calls, &call{op: op, role: open, end: g.horizon()})
		}
	}
	return calls
}

func (m *model) search(calls []*call, limit budget) porcupine.CheckResult {
	left, ok := limit.left()
	if !ok {
		return porcupine.Unknown
	}
	return porcupine.CheckOperationsTimeout(m.porcupine(), operations(calls), left)
}

// operations are calls in the form that the search takes. Those without an answer
// overlap what their caller did next: each gets a lane of its own.
func operations(calls []*call) []porcupine.Operation {
	lanes := make(map[int]int)
	for _, c := range calls {
		if _, known := lanes[c.op.Caller]; !known && c.op.Outcome == Done {
			lanes[c.op.Caller] = len(lanes)
		}
	}
	extra := len(lanes)
	all := make([]porcupine.Operation, 0, len(calls))
	for _, c := range calls {
		lane := lanes[c.op.Caller]
		if c.op.Outcome != Done {
			lane = extra
			extra++
		}
		all = append(all, porcupine.Operation{ClientId: lane, Input: c, Call: int64(c.op.Call), Return: int64(c.end)})
	}
	return all
}

// budget is the time that a search over many groups may take.
type budget struct {
	limited bool
	until   time.Time
}

func newBudget(d time.Duration) budget {
	return budget{limited: d > 0, until: time.Now().Add(d)}
}

// left is 0 for no limit; not ok when nothing is left.
func (b budget) left() (time.Duration, bool) {
	if !b.limited {
		return 0, true
	}
	d := time.Until(b.until)
	return d, d > 0
}
