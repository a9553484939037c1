package history

import (
	"slices"
	"strings"
)

// CheckStream compares what one watch delivered with the store's own history, which
// must reach from before the watch's first revision to Upto:
//
//   - every revision of its range, from the one asked for up to Upto and beyond that up
//     to the last delivered, once and in order, with all its changes in one answer (a
//     fragmented one is whole again when clientv3 hands it on);
//   - nothing outside its range, nothing that was filtered out, nothing that did not
//     happen, each change as it was, also its previous value where that was asked for;
//   - no revision after a progress notice that promised it, no answer with a revision
//     below its own changes;
//   - the channel open until the load was stopped.
//
// A watch that was asked to start with no certain revision (From 0) is judged from the
// first change that it delivered.
func CheckStream(s Stream, truth Truth) []string {
	c := streamCheck{Stream: s, name: s.Name, truth: truth, at: make(map[int64]*delivery), all: make(map[int64]bool)}
	if s.Closed != "" {
		c.bad.add("watch %s was closed under its user: %s", s.Name, s.Closed)
	}
	if s.From > 0 && s.From <= truth.From || s.Upto > truth.Upto {
		c.bad.add("watch %s was asked for revisions %d to %d, of which the store's history that is known has only %d to %d", s.Name, s.From, s.Upto, truth.From+1, truth.Upto)
	}
	for i, r := range s.Responses {
		c.response(i, r)
	}
	c.expect()
	c.compare()
	return c.bad.list()
}

// streamCheck is the judge of one watch.
type streamCheck struct {
	Stream
	name  string
	truth Truth
	bad   findings

	all      map[int64]bool // revisions of the truth, whatever their keys
	want     []expected
	at       map[int64]*delivery
	order    []*delivery // by first arrival
	last     int64       // highest revision delivered
	promised int64       // highest revision of a progress notice
}

// delivery is what came of one revision.
type delivery struct {
	revision int64
	changes  []Change
	answers  []int // indexes of the answers that held a part of it
}

// expected is a revision as the watch should deliver it.
type expected struct {
	transaction
	before []previous
}

// previous is what a change replaced. It is unknown where the truth does not reach
// back that far, and optional where the store may have compacted it.
type previous struct {
	value    string
	known    bool
	optional bool
}

// response takes one answer.
func (c *streamCheck) response(i int, r Response) {
	if len(r.Changes) == 0 {
		if !c.Progress {
			c.bad.add("watch %s got a progress notice at revision %d that it had not asked for", c.name, r.Revision)
		}
		c.promised = max(c.promised, r.Revision)
		return
	}
	for _, t := range transactions(r.Changes) {
		c.take(i, t)
		if t.revision > r.Revision {
			c.bad.add("watch %s got revision %d in an answer of revision %d, which is older", c.name, t.revision, r.Revision)
		}
	}
}

// take files the changes of one revision in one answer.
func (c *streamCheck) take(answer int, t transaction) {
	d, known := c.at[t.revision]
	switch {
	case t.revision <= c.promised:
		c.bad.add("watch %s got revision %d (%s) after a progress notice had promised everything up to %d", c.name, t.revision, summary(t), c.promised)
	case t.revision < c.last && !known:
		c.bad.add("watch %s got revision %d (%s) after %d: out of order", c.name, t.revision, summary(t), c.last)
	}
	if t.revision < c.From {
		c.bad.add("watch %s got revision %d (%s), before %d, which it was asked to start with", c.name, t.revision, summary(t), c.From)
	}
	if !known {
		d = &delivery{revision: t.revision}
		c.at[t.revision] = d
		c.order = append(c.order, d)
	}
	d.answers = append(d.answers, answer)
	d.changes = append(d.changes, t.changes...)
	c.last = max(c.last, t.revision)
}

// expect finds what the watch should have delivered.
func (c *streamCheck) expect() {
	from := c.From
	if from == 0 && len(c.order) > 0 {
		from = c.order[0].revision
	}
	held := make(map[string]previous)
	for _, t := range transactions(c.truth.Changes) {
		c.all[t.revision] = true
		e := expected{transaction: transaction{revision: t.revision}}
		for _, change := range t.changes {
			before := c.replaced(change, held)
			held[change.Key] = previous{value: change.Value, known: true}
			if c.wants(change) {
				e.changes = append(e.changes, change)
				e.before = append(e.before, before)
			}
		}
		if len(e.changes) > 0 && t.revision >= from {
			c.want = append(c.want, e)
		}
	}
}

func (c *streamCheck) replaced(change Change, held map[string]previous) previous {
	p, known := held[change.Key]
	if !known {
		p.value, p.known = c.truth.before(change)
	}
	p.optional = change.Revision-1 < c.truth.Compacted
	return p
}

// wants tells whether a change is in the watch's range and passes its filters.
func (c *streamCheck) wants(change Change) bool {
	return c.inRange(change.Key) && (change.Deleted && c.Deletes || !change.Deleted && c.Puts)
}

func (c *streamCheck) inRange(key string) bool {
	switch c.End {
	case "":
		return key == c.Key
	case "\x00": // etcd's sign for no end
		return key >= c.Key
	default:
		return key >= c.Key && key < c.End
	}
}

// compare goes along what was wanted and what came.
func (c *streamCheck) compare() {
	wanted := make(map[int64]bool)
	for _, e := range c.want {
		wanted[e.revision] = true
		d, came := c.at[e.revision]
		switch {
		case came:
			c.compareOne(e, d)
		case e.revision <= max(c.Upto, c.last):
			c.bad.add("watch %s never got revision %d (%s)", c.name, e.revision, summary(e.transaction))
		}
	}
	for _, d := range c.order {
		if !wanted[d.revision] {
			c.unwanted(d)
		}
	}
}

// unwanted says what is wrong with a revision of which the watch should have got
// nothing.
func (c *streamCheck) unwanted(d *delivery) {
	if c.foreign(d) > 0 {
		return
	}
	switch t := (transaction{d.revision, d.changes}); {
	case d.revision > c.truth.Upto:
		c.bad.add("watch %s got revision %d (%s), beyond the store's history that is known, which ends at %d", c.name, d.revision, summary(t), c.truth.Upto)
	case c.From == 0 || d.revision >= c.From:
		c.bad.add("watch %s got revision %d (%s), which never happened", c.name, d.revision, summary(t))
	}
}

// foreign reports changes that are outside the range or the filters.
func (c *streamCheck) foreign(d *delivery) int {
	n := 0
	for _, change := range d.changes {
		switch {
		case !c.inRange(change.Key):
			c.bad.add("watch %s got revision %d of key %q, outside its range %q to %q", c.name, d.revision, change.Key, c.Key, c.End)
			n++
		case !c.wants(change):
			c.bad.add("watch %s got revision %d, a %s of %q, which its filter leaves out", c.name, d.revision, kindOf(change), change.Key)
			n++
		}
	}
	return n
}

// compareOne compares one revision.
func (c *streamCheck) compareOne(e expected, d *delivery) {
	c.foreign(d)
	got := slices.DeleteFunc(slices.Clone(d.changes), func(change Change) bool { return !c.wants(change) })
	if len(d.answers) > 1 {
		if len(got) > len(e.changes) {
			c.bad.add("watch %s got revision %d (%s) %d times", c.name, d.revision, summary(e.transaction), len(d.answers))
			return
		}
		c.bad.add("watch %s got revision %d split over %d answers: a transaction is no longer whole", c.name, d.revision, len(d.answers))
	}
	for i, want := range e.changes {
		switch {
		case i >= len(got):
			c.bad.add("watch %s got revision %d without its %s of %q", c.name, d.revision, kindOf(want), want.Key)
		case got[i].Key != want.Key || got[i].Deleted != want.Deleted:
			c.bad.add("watch %s got in revision %d a %s of %q where a %s of %q stands", c.name, d.revision, kindOf(got[i]), got[i].Key, kindOf(want), want.Key)
			return
		default:
			c.compareChange(want, got[i], e.before[i])
		}
	}
	for _, more := range got[min(len(got), len(e.changes)):] {
		c.bad.add("watch %s got in revision %d one more %s of %q than happened", c.name, d.revision, kindOf(more), more.Key)
	}
}

func (c *streamCheck) compareChange(want, got Change, before previous) {
	if got.Value != want.Value || got.Create != want.Create || got.Version != want.Version {
		c.bad.add("watch %s got revision %d of %q with value %s, created at %d, version %d; want %s, %d, %d",
			c.name, want.Revision, want.Key, shown(got.Value), got.Create, got.Version, shown(want.Value), want.Create, want.Version)
	}
	switch {
	case got.Previous == nil:
		if c.PrevKV && before.known && !before.optional && before.value != "" {
			c.bad.add("watch %s got revision %d of %q without the value before, %s", c.name, want.Revision, want.Key, shown(before.value))
		}
	case !c.PrevKV:
		c.bad.add("watch %s got revision %d of %q with the value before, %s, for which it had not asked", c.name, want.Revision, want.Key, shown(*got.Previous))
	case before.known && *got.Previous != before.value:
		c.bad.add("watch %s got revision %d of %q with %s as the value before, want %s", c.name, want.Revision, want.Key, shown(*got.Previous), shown(before.value))
	}
}

func kindOf(c Change) string {
	if c.Deleted {
		return "delete"
	}
	return "put"
}

// summary shows the changes of a transaction.
func summary(t transaction) string {
	var all []string
	for _, c := range t.changes {
		if c.Deleted {
			all = append(all, "delete "+shown(c.Key))
		} else {
			all = append(all, shown(c.Key)+" = "+shown(c.Value))
		}
	}
	return strings.Join(all, ", ")
}
