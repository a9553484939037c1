package prober

import (
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
)

// detector turns the evidence of one endpoint into its condition. Pure: it has no
// clock and starts nothing.
type detector struct {
	expire   time.Duration // silence after which a report no longer stands
	outlived time.Duration // a view of the leader that is so much newer counts though its term is lower
	last     condition
	// doubt is the newest bad word on quorum that only a proof begun later disproves while no
	// report is followed: etcd's own SERVING, or a connection that works, does not.
	doubt time.Time
	// told is set when the doubt was a shim's, which is no longer heard.
	told bool
}

func newDetector(t times) detector { return detector{expire: 3 * t.poll, outlived: t.outlived} }

// step returns the condition at now.
func (d *detector) step(ev *evidence, now time.Time) condition {
	c := condition{
		answered: ev.check.answered,
		proof:    ev.proof.completed,
		proven:   ev.proof.completed,
		run:      ev.proof.run,
		took:     ev.proof.took,
		waived:   ev.proof.waived,
		rtt:      ev.check.rtt,
		itself:   ev.self.Cluster,
	}
	if p := ev.proof; !p.failing.IsZero() && !p.failing.After(p.completed) {
		c.late = p.took
	}
	word, source, wrong := d.word(ev, now)
	c.source, c.wrongShim = source, wrong
	c.alone = source == SourceStock && ev.shim.sought && ev.inproc.sought
	d.identify(&c, ev, word)
	d.decide(&c, ev, word)
	d.since(&c, now)
	d.last = c
	return c
}

// word chooses whom to believe: the shim's own port, then etcd's, then nobody.
func (d *detector) word(ev *evidence, now time.Time) (w *healthsvc.News, s Source, wrong bool) {
	if ev.shim.speaks(now, d.expire) {
		if wrong = foreign(ev.shim.news.Identity, ev.self); !wrong {
			return &ev.shim.news, SourceShim, false
		}
	}
	if ev.inproc.speaks(now, d.expire) {
		return &ev.inproc.news, SourceInProcess, wrong
	}
	if ev.check.answer == answerNone {
		return nil, SourceNone, wrong
	}
	return nil, SourceStock, wrong
}

// foreign reports whether a shim speaks for another member than the one at the address.
func foreign(id healthsvc.Identity, self membership.Observation) bool {
	return other(membership.ID(id.Member), self.Member) || other(membership.ID(id.Cluster), self.Cluster)
}

// identify fills in who the member is: what etcd says of itself comes first. Of the leader it is
// remembered what was said last, though the report that said so is silent now. A report without
// a quorum does not fall behind that: its member may be frozen.
func (d *detector) identify(c *condition, ev *evidence, word *healthsvc.News) {
	s := ev.self
	c.cluster, c.member, c.leader, c.term, c.heard = s.Cluster, s.Member, s.Leader, s.Term, s.At
	var id healthsvc.Identity
	if word != nil {
		id = word.Identity
	}
	if c.cluster == 0 {
		c.cluster = membership.ID(id.Cluster)
	}
	if c.member == 0 {
		c.member = membership.ID(id.Member)
	}
	if l := &d.last; !other(l.cluster, c.cluster) && !other(l.member, c.member) {
		d.lead(c, l.leader, l.term, l.heard)
	}
	if word != nil && (id.Term >= c.term || word.Status == healthsvc.StatusServing) {
		d.lead(c, membership.ID(id.Leader), id.Term, word.Began)
	}
}

// other reports whether two known ids differ.
func other(a, b membership.ID) bool { return a != 0 && b != 0 && a != b }

// lead takes in one more view of the leader. The one at the higher term counts, of the same term
// the newer; but one that is newer by far comes after a restore from a backup, and the other
// could not be renewed.
func (d *detector) lead(c *condition, leader membership.ID, term uint64, heard time.Time) {
	if term == 0 {
		return
	}
	switch newer := heard.Sub(c.heard); {
	case c.term == 0, newer >= d.outlived:
	case newer <= -d.outlived, term < c.term, term == c.term && newer <= 0:
		return
	}
	c.leader, c.term, c.heard = leader, term, heard
}

func (d *detector) decide(c *condition, ev *evidence, word *healthsvc.News) {
	switch {
	case ev.check.answer == answerLearner, ev.self.Learner && !(ev.check.answer == answerOK && ev.check.answered.After(ev.self.At)):
		c.state, c.reason = stateParked, ReasonLearner
	case ev.self.Removed:
		c.state, c.reason = stateParked, ReasonRemoved
	case !ev.check.failing.IsZero():
		c.bad(kindPath, ReasonUnreachable, ev.check.failing, ev.check.missed)
		c.own = true
	case word != nil:
		d.reported(c, ev, word)
	default:
		d.stock(c, ev)
	}
}

// reported decides by a report.
func (d *detector) reported(c *condition, ev *evidence, word *healthsvc.News) {
	c.said = word.Began
	// A NOT_SERVING without an age tells of no proof at all.
	if word.Status != healthsvc.StatusNotServing || word.ProofAge > 0 {
		if at := word.Began.Add(-word.ProofAge); at.After(c.proven) {
			c.proven = at
		}
	}
	if word.Status == healthsvc.StatusNotServing {
		d.doubt, d.told = word.Heard, true
		reason := string(word.Reason)
		if reason == "" {
			reason = ReasonNotServing
		}
		c.bad(kindQuorum, reason, word.Since, word.Since)
		return
	}
	switch {
	case d.contradicted(c, ev):
	case ev.check.answer == answerNone:
		c.reason = ReasonChecking
	default:
		d.doubt, d.told = time.Time{}, false
		c.state = stateGood
	}
}

// contradicted finds what etcd itself says against the member; a SERVING of a shim does not
// outweigh it.
func (d *detector) contradicted(c *condition, ev *evidence) bool {
	switch {
	case ev.check.answer == answerNoLeader:
		d.doubt, d.told = ev.check.answered, false
		c.bad(kindQuorum, ReasonNoLeader, ev.check.answered, ev.check.answered)
	case !ev.proof.failing.IsZero() && ev.proof.noLeader:
		c.bad(kindQuorum, ReasonNoLeader, ev.proof.failing, ev.proof.missed)
	case !ev.proof.failing.IsZero():
		c.bad(kindQuorum, ReasonProofFailed, ev.proof.failing, ev.proof.missed)
	case ev.check.answer == answerNotServing:
		d.doubt, d.told = ev.check.answered, false
		c.bad(kindQuorum, ReasonNotServing, ev.check.answered, ev.check.answered)
	default:
		return false
	}
	c.own = true
	return true
}

// stock decides without any report.
func (d *detector) stock(c *condition, ev *evidence) {
	switch {
	case d.contradicted(c, ev):
	case ev.check.answer == answerNone, !ev.shim.sought, !ev.inproc.sought:
		c.reason = ReasonChecking
	case !d.doubt.IsZero() && !ev.proof.completed.After(d.doubt) && !ev.proof.waived.After(d.doubt):
		c.reason = ReasonUnproved
		if !d.told {
			c.bad(kindQuorum, ReasonUnproved, d.doubt, d.doubt)
			c.own = true
		}
	default:
		d.doubt, d.told = time.Time{}, false
		c.state, c.reason = stateGood, ReasonNoShim
		if c.wrongShim {
			c.reason = ReasonWrongShim
		}
	}
}

func (c *condition) bad(k kind, reason string, from, since time.Time) {
	c.state, c.kind, c.reason, c.from, c.since = stateBad, k, reason, from, since
}

// since makes one stretch of what is one. Bad with changing causes is one, except that a path
// that lives again ends what its silence began: what the member says then is new evidence.
func (d *detector) since(c *condition, now time.Time) {
	healed := d.last.kind == kindPath && c.kind == kindQuorum
	if c.state == d.last.state && !d.last.since.IsZero() && !healed {
		c.since = d.last.since
		if c.state == stateBad {
			c.from = d.last.from
		}
		return
	}
	if c.state != stateBad || c.since.IsZero() || c.since.After(now) || healed {
		c.since = now
	}
}
