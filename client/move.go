package client

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorumwise/quorumwise/membership"
	"github.com/quorumwise/quorumwise/picker"
	"github.com/quorumwise/quorumwise/prober"
)

// callView is one call or stream in flight, as the mover sees it.
type callView struct {
	call   *picker.Call
	class  picker.Class
	method string
	picked time.Time // for the endpoint that it is on; it may have begun long before
	lease  leaseInfo // of a lease stream
}

// endpointView is one endpoint with its verdict and what is in flight on it.
type endpointView struct {
	address string
	member  membership.ID
	grade   prober.Grade
	reason  string
	since   time.Time
	ready   bool // connected, so that a call can go there now
	// settling: unhealthy still, but it proves its quorum and is about to return. What went
	// there when nobody was better may stay; nothing new goes there.
	settling bool
	left     bool // no longer in the set of endpoints, and judged by nobody
	calls    []callView
}

// view is everything a decision about moving needs.
type view struct {
	now       time.Time
	endpoints []endpointView
	term      uint64 // highest raft term reported; 0: none
	leader    uint64 // leader of that term; 0: none
}

// endpoint returns the view of an address, one that is not connected if there is none.
func (v view) endpoint(address string) endpointView {
	for _, e := range v.endpoints {
		if e.address == address {
			return e
		}
	}
	return endpointView{address: address}
}

// ending is one call to be ended, with the cause that its caller gets.
type ending struct {
	call  *picker.Call
	cause *MovedError
	to    string // the endpoint that the call had better go to next; "": whichever
}

// decision is what follows from a view.
type decision struct {
	ends  []ending      // in the order in which they are to be carried out
	prove []string      // endpoints with an overdue call: settle them
	wait  time.Duration // look again after this long at the latest; 0: when something changes
	watch bool          // something is in flight whose age has to be watched, or that may have to go
}

// mover decides which calls leave their endpoint. It is a pure core: no lock,
// no clock, no I/O; one goroutine owns it.
type mover struct {
	overdue   time.Duration // age of a unary call that asks for a proof
	keepalive time.Duration // age of an unanswered keepalive that reopens its stream
	election  time.Duration // the servers' election timeout
	spread    time.Duration // over which watches leave
	hold      time.Duration // suspect to unhealthy
	rand      func() float64

	// asked is what proofs were asked for lately, of endpoints in use with an overdue call.
	asked map[string]inquiry
	// bad is since when an endpoint has been one to avoid, without a break: what
	// the callers are told, since a verdict's own time begins anew with each step.
	bad map[string]time.Time
	// settled are the endpoints to avoid that are settling, or were.
	settled map[string]settling
	// due is when a watch or other stream on an unhealthy endpoint goes.
	due map[*picker.Call]time.Time
	// term is the last one with a known leader, and changes are when later ones than
	// the first were heard of, oldest first. A mutation that was sent before one may
	// have been forwarded to the leader that was lost then; also when that one was
	// elected again.
	term    uint64
	changes []time.Time
	// lower is a lower term than that, and since when no higher one has had a leader.
	lower struct {
		term  uint64
		since time.Time
	}
}

// mostChanges bounds what is remembered of them.
const mostChanges = 100

// changed is when the leader was lost that had something since some moment; zero: it
// leads. Later changes give no more time: what was lost with the first stays lost.
func (m *mover) changed(since time.Time) time.Time {
	i, _ := slices.BinarySearchFunc(m.changes, since, time.Time.Compare)
	for ; i < len(m.changes); i++ {
		if m.changes[i].After(since) {
			return m.changes[i]
		}
	}
	return time.Time{}
}

// decide looks at everything once. It is level-triggered: it may be called at
// any time and as often as one likes, and misses nothing that lasts.
func (m *mover) decide(v view) decision {
	m.followLeader(v)
	m.followBad(v)
	m.followSettling(v)
	var d decision
	due := make(map[*picker.Call]time.Time)
	for i := range v.endpoints {
		m.endpoint(&v, &v.endpoints[i], due, &d)
	}
	m.due = due // forgets the calls that are gone
	maps.DeleteFunc(m.asked, func(_ string, q inquiry) bool { return v.now.Sub(q.seen) > m.askMost() })
	slices.SortStableFunc(d.ends, func(a, b ending) int { return cmp.Compare(rank(a.call.Class()), rank(b.call.Class())) })
	return d
}

// rank orders the classes: leases first, they expire; then watches; then the rest.
func rank(c picker.Class) int {
	switch c {
	case picker.ClassLease:
		return 0
	case picker.ClassWatch:
		return 1
	}
	return 2
}

// followLeader notes when a new leader took over from a known one. The first
// leader that is heard of took over from nobody.
func (m *mover) followLeader(v view) {
	if v.leader == 0 {
		return
	}
	m.followLower(v)
	if v.term <= m.term {
		return
	}
	if m.term != 0 {
		m.changes = append(m.changes, v.now)
		m.changes = slices.Delete(m.changes, 0, max(0, len(m.changes)-mostChanges))
	}
	m.term = v.term
}

// followLower takes over a lower term when it lasts. While members elect, one that is cut
// off may be the only one that names a leader, its last; but another cluster, or one that
// was restored from a backup, begins at low terms.
func (m *mover) followLower(v view) {
	switch {
	case v.term >= m.term:
		m.lower.since = time.Time{}
	case m.lower.since.IsZero():
		m.lower.term, m.lower.since = v.term, v.now
	case v.now.Sub(m.lower.since) >= 2*m.election:
		m.term, m.lower.since = m.lower.term, time.Time{} // what it has led to since is news
	}
}

// followBad notes since when each endpoint has been one to avoid.
func (m *mover) followBad(v view) {
	bad := make(map[string]time.Time)
	for _, e := range v.endpoints {
		since, already := m.bad[e.address]
		switch {
		case !avoided(e.grade):
		case already:
			bad[e.address] = since
		default:
			bad[e.address] = e.since
		}
	}
	m.bad = bad
}

func (m *mover) endpoint(v *view, e *endpointView, due map[*picker.Call]time.Time, d *decision) {
	better := hasBetter(v.endpoints, e)
	overdue := false
	for _, c := range byLife(e.calls) {
		reason, since := m.leave(v, e, c, better, due)
		if reason != "" {
			d.ends = append(d.ends, m.ending(v, e, c, reason, since))
			continue
		}
		if at, ok := due[c.call]; ok {
			d.lookAgain(at.Sub(v.now))
		}
		switch c.class {
		case picker.ClassOther:
			continue
		case picker.ClassRead, picker.ClassMutation:
			d.watch = true
			overdue = overdue || (c.class == picker.ClassRead || proposes(c)) && v.now.Sub(c.picked) >= m.overdue
		case picker.ClassLease:
			d.watch = d.watch || !c.lease.unanswered.IsZero()
		}
		d.watch = d.watch || avoided(e.grade)
	}
	if overdue && (avoided(e.grade) || m.inquire(e.address, v.now)) {
		d.prove = append(d.prove, e.address)
	}
}

// inquiry is how often a proof is asked for while calls on an endpoint in use are overdue.
type inquiry struct {
	last  time.Time
	every time.Duration // to the next one
	seen  time.Time     // when a call was last overdue
}

// askMost is the longest time between two proofs that overdue calls ask for.
func (m *mover) askMost() time.Duration { return 4 * m.overdue }

// inquire reports whether it is time to ask for another proof. The member proves itself
// each time, or it would be suspect: what is slow is the cluster, or the call. In a slow
// cluster some call of each client is always overdue, and proofs at full pace would make it
// slower.
func (m *mover) inquire(address string, now time.Time) bool {
	q, asked := m.asked[address]
	q.seen = now
	due := !asked || now.Sub(q.last) >= q.every
	switch {
	case !asked:
		q.last, q.every = now, m.overdue/2
	case due:
		q.last, q.every = now, min(2*q.every, m.askMost())
	}
	if m.asked == nil {
		m.asked = make(map[string]inquiry)
	}
	m.asked[address] = q
	return due
}

// byLife puts the lease streams with the least life left first.
func byLife(calls []callView) []callView {
	leases := func(c callView) bool { return c.class == picker.ClassLease }
	if !slices.ContainsFunc(calls, leases) {
		return calls
	}
	sorted := slices.Clone(calls)
	slices.SortStableFunc(sorted, func(a, b callView) int { return cmp.Compare(a.lease.remaining, b.lease.remaining) })
	return sorted
}

func (m *mover) ending(v *view, e *endpointView, c callView, reason string, since time.Time) ending {
	out := ending{call: c.call, cause: &MovedError{
		Endpoint: e.address, Member: e.member, Reason: reason, Since: since, After: v.now.Sub(since),
		Method: c.method, Mutation: c.class == picker.ClassMutation,
	}}
	if reason == ReasonKeepalive {
		// The member may be the only one that answers no keepalives, and the one
		// with the fewest streams: left to the picker, this one would come back.
		out.to = m.elsewhere(v.endpoints, e)
	}
	return out
}

// elsewhere is a connected endpoint other than e, any of the best grade; "": none.
func (m *mover) elsewhere(all []endpointView, e *endpointView) string {
	var best []*endpointView
	for i := range all {
		o := &all[i]
		switch {
		case o.address == e.address || !o.ready:
		case len(best) == 0 || o.grade == best[0].grade:
			best = append(best, o)
		case o.grade.Better(best[0].grade):
			best = []*endpointView{o}
		}
	}
	if len(best) == 0 {
		return ""
	}
	return best[int(m.rand()*float64(len(best)))].address
}

// leave is the reason why a call has to go now, and since when that holds;
// "": it stays.
func (m *mover) leave(v *view, e *endpointView, c callView, better bool, due map[*picker.Call]time.Time) (string, time.Time) {
	if c.class == picker.ClassOther {
		return "", time.Time{}
	}
	switch {
	case !better:
	case c.class == picker.ClassRead && avoided(e.grade):
		return e.reason, m.bad[e.address]
	case e.grade != prober.Unhealthy && e.grade != prober.Parked:
	case m.settles(v.now, e) && !m.lost(v.now, e, c):
	case c.class == picker.ClassMutation && e.left && v.now.Sub(e.since) < 2*m.election,
		c.class == picker.ClassMutation && e.reason == prober.ReasonDraining && v.now.Sub(m.bad[e.address]) < 2*m.election:
		// Nothing is wrong with the member as far as is known: it will answer.
	case c.class == picker.ClassLease || c.class == picker.ClassMutation:
		return e.reason, m.bad[e.address]
	case m.isDue(v.now, c.call, due):
		return e.reason, m.bad[e.address]
	}
	if c.class == picker.ClassLease && m.keepaliveOverdue(v, e, c.lease) {
		return ReasonKeepalive, c.lease.unanswered
	}
	if proposes(c) {
		if at := m.changed(c.picked); !at.IsZero() && v.now.Sub(at) >= 2*m.election {
			return ReasonLeaderLost, at
		}
	}
	return "", time.Time{}
}

// keepaliveOverdue reports whether a lease stream has to be opened again: at once
// when its keepalive may have been forwarded to a leader that was lost since;
// else after some time, more where answers are slow and each time in a row. While
// every endpoint is to be avoided, and none less than this one, none is known to answer
// sooner: a stream that is opened again then just loses the answer that is on its way.
func (m *mover) keepaliveOverdue(v *view, e *endpointView, l leaseInfo) bool {
	if l.unanswered.IsZero() {
		return false
	}
	if at := m.changed(l.unanswered); !at.IsZero() && v.now.Sub(at) >= m.keepalive/4 {
		return true
	}
	usable := slices.ContainsFunc(v.endpoints, func(o endpointView) bool {
		return o.ready && (!avoided(o.grade) || o.grade.Better(e.grade))
	})
	return usable && v.now.Sub(l.unanswered) >= max(m.keepalive, 2*l.slow)<<l.tries
}

// proposes reports whether a call becomes a raft proposal at once. The calls of
// the lock and election services are mutations that wait on purpose, for hours
// if need be, and outlast leaders.
func proposes(c callView) bool {
	return c.class == picker.ClassMutation && strings.HasPrefix(c.method, etcdMethods)
}

// isDue gives each stream its own moment within the spread, once.
func (m *mover) isDue(now time.Time, c *picker.Call, due map[*picker.Call]time.Time) bool {
	at, ok := m.due[c]
	if !ok {
		at = now.Add(time.Duration(m.rand() * float64(m.spread)))
	}
	due[c] = at
	return !at.After(now)
}

// avoided reports whether new calls are kept off a grade.
func avoided(g prober.Grade) bool {
	return g == prober.Suspect || g == prober.Unhealthy || g == prober.Parked
}

// hasBetter reports whether a call on e would go to a better endpoint: one that
// is connected and not itself avoided.
func hasBetter(all []endpointView, e *endpointView) bool {
	return slices.ContainsFunc(all, func(o endpointView) bool {
		return o.address != e.address && o.ready && !avoided(o.grade) && o.grade.Better(e.grade)
	})
}

func (d *decision) lookAgain(in time.Duration) {
	in = max(in, time.Millisecond)
	if d.wait == 0 || in < d.wait {
		d.wait = in
	}
}
