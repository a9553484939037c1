package prober

import (
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
)

// judge compares the endpoints of one prober. Pure: conditions and now come in, a ruling
// goes out. The prober's loop owns it.
type judge struct {
	t         times
	standings map[string]*standing
	cluster   membership.ID // the one that most endpoints are of; zero: none yet
	common    time.Time     // since when some endpoint has been Healthy; zero: none is
	leader    membership.ID
	leading   time.Time // when it was first named
	leadTerm  uint64
	told      uint64    // the term that members tell
	elected   time.Time // when another was told
}

// standing is what a judge remembers of one endpoint.
type standing struct {
	grade  Grade
	reason string
	since  time.Time

	ejected  time.Time // when it was condemned; zero: it is not
	returned time.Time // when it last came back
	flaps    int       // condemnations by our own evidence that still count
	// unproved is set while the endpoint is condemned because proofs of our own failed. A shim
	// that saw nothing of it then does not bring the endpoint back: proofs do.
	unproved bool

	// otherGood is since when another endpoint has been good without a break; zero: none is.
	otherGood time.Time
	// shared is set while the endpoint is bad and, at some moment of that, no path to any other
	// endpoint was known to live: we ourselves may be what is cut off.
	shared bool

	behind time.Time // since when a report says that it catches up; zero: it does not
	asked  time.Time // when the report was last asked before a verdict

	compared time.Time // when the others were last asked for a comparison

	cleared  time.Time // when the last one was disproved
	noLeader time.Time // a user's call was answered "no leader"; zero: it was disproved

	excused time.Time     // it is not condemned before this: our own loop was late
	slept   time.Duration // that it was excused for since it was last not bad

	claim claim // the newest
}

// sight is what a judge is shown of one endpoint.
type sight struct {
	address string
	c       *condition
}

// ruling is a judge's output.
type ruling struct {
	verdicts []Verdict
	wake     time.Time        // when to judge again even if nobody tells; zero: not before then
	compare  bool             // ask all endpoints for evidence that can be compared
	ask      []string         // endpoints whose reports are to be asked, before they are believed
	awaited  []string         // endpoints of which any word or proof may decide: judge again when it is there
	prove    []string         // endpoints whose return depends on proofs, and that make none by themselves
	before   map[string]Grade // grades that changed, with what they were
}

func newJudge(t times) *judge { return &judge{t: t, standings: make(map[string]*standing)} }

// noLeader notes that a member answered a user's call with "no leader".
func (j *judge) noLeader(address string, now time.Time) {
	if st := j.standings[address]; st != nil {
		st.noLeader = now
	}
}

// excuse is told when the loop woke late, and by how much: holds that ended meanwhile end
// later. A machine that is slow for good is no excuse for a member that stays bad: one sleep
// is forgiven in full, further ones up to a bound.
func (j *judge) excuse(now time.Time, late time.Duration) {
	for _, st := range j.standings {
		if st.slept < j.t.first {
			st.excused = now.Add(j.t.hold)
			st.slept += late
		}
	}
}

// rule grades all endpoints.
func (j *judge) rule(now time.Time, sights []sight) ruling {
	r := ruling{verdicts: make([]Verdict, 0, len(sights)), before: make(map[string]Grade)}
	j.known(sights, now)
	sights = j.overlay(sights, now, &r)
	j.majority(sights)
	j.elections(sights, now)
	rest := make([]sight, 0, len(sights))
	for i, s := range sights {
		rest = others(rest, sights, i)
		j.compared(j.standings[s.address], s.c, rest)
	}
	for i, s := range sights {
		st := j.standings[s.address]
		rest = others(rest, sights, i)
		grade, reason := j.grade(st, s, rest, now, &r)
		if grade != st.grade {
			r.before[s.address] = st.grade
			st.grade, st.since = grade, now
		}
		st.reason = reason
		r.verdicts = append(r.verdicts, verdict(st, s, now))
	}
	j.aggregate(sights, now)
	return r
}

// known makes standings for new endpoints and forgets those that are gone.
func (j *judge) known(sights []sight, now time.Time) {
	present := make(map[string]bool, len(sights))
	for _, s := range sights {
		present[s.address] = true
		if j.standings[s.address] == nil {
			j.standings[s.address] = &standing{since: now}
		}
	}
	for a := range j.standings {
		if !present[a] {
			delete(j.standings, a)
		}
	}
}

// overlay puts what users' calls were told above the conditions, until a proof that
// began later disproves it. That changes no condition, so it is awaited.
func (j *judge) overlay(sights []sight, now time.Time, r *ruling) []sight {
	out := make([]sight, len(sights))
	for i, s := range sights {
		out[i] = s
		st := j.standings[s.address]
		switch {
		case st.noLeader.IsZero():
		case s.c.state == stateGood && (s.c.proven.After(st.noLeader) || s.c.waived.After(st.noLeader)):
			st.noLeader, st.cleared = time.Time{}, now
		case s.c.state == stateGood, s.c.state == stateNothing:
			c := *s.c
			c.state, c.kind, c.reason, c.own = stateBad, kindQuorum, ReasonNoLeader, true
			c.from, c.since = st.noLeader, st.noLeader
			out[i].c = &c
			r.awaited = append(r.awaited, s.address)
		}
	}
	return out
}

// majority finds the cluster that most endpoints are of, by what etcd says of itself. One
// endpoint alone is no majority. A tie changes nothing: the incumbent stays, and without one
// nobody is parked.
func (j *judge) majority(sights []sight) {
	count := make(map[membership.ID]int)
	for _, s := range sights {
		if s.c.itself != 0 {
			count[s.c.itself]++
		}
	}
	best, most, tied := membership.ID(0), 0, false
	for id, n := range count {
		switch {
		case n > most:
			best, most, tied = id, n, false
		case n == most:
			tied = true
		}
	}
	switch {
	case most > 1 && !tied:
		j.cluster = best
	case count[j.cluster] < most: // the incumbent lost, and nobody won
		j.cluster = 0
	}
}

// foreign reports whether a sight is of another cluster than most.
func (j *judge) foreign(s sight) bool {
	return j.cluster != 0 && s.c.itself != 0 && s.c.itself != j.cluster
}

// witness reports whether an endpoint is one to compare with, and to go to.
func (j *judge) witness(s sight) bool {
	return s.c.state == stateGood && !j.foreign(s) && j.standings[s.address].ejected.IsZero()
}

// compared keeps account of how the other endpoints did, seen from one of them.
func (j *judge) compared(st *standing, c *condition, rest []sight) {
	since, paths := time.Time{}, false
	for _, o := range rest {
		if good := later(o.c.since, j.standings[o.address].cleared); j.witness(o) && (since.IsZero() || good.Before(since)) {
			since = good
		}
		paths = paths || o.c.state != stateNothing && !(o.c.state == stateBad && o.c.kind == kindPath)
	}
	switch {
	case since.IsZero():
		st.otherGood = time.Time{}
	case st.otherGood.IsZero():
		st.otherGood = since
	}
	if c.state != stateBad {
		st.shared, st.slept = false, 0
	} else if !paths {
		st.shared = true
	}
}

// grade is the one place that decides a grade.
func (j *judge) grade(st *standing, s sight, rest []sight, now time.Time, r *ruling) (Grade, string) {
	c := s.c
	st.lags(c, now)
	switch {
	case c.state == stateParked:
		return Parked, c.reason
	case j.foreign(s):
		return Parked, ReasonOtherCluster
	case len(rest) == 0:
		j.release(st, now, r) // a lone endpoint is never condemned: there is nothing to compare with
	}
	switch c.state {
	case stateBad:
		if st.ejected.IsZero() {
			if len(rest) == 0 || !j.condemned(st, s, rest, now, r) {
				return Suspect, c.reason
			}
			j.eject(st, c, now)
		}
		if c.reason == ReasonSettling {
			return Unhealthy, j.returning(st, s, now, r)
		}
		return Unhealthy, c.reason
	case stateGood:
		if !st.ejected.IsZero() && !j.mayReturn(st, s, rest, now, r) {
			return Unhealthy, j.returning(st, s, now, r)
		}
		j.release(st, now, r)
		return Healthy, c.reason
	default:
		if !st.ejected.IsZero() {
			return Unhealthy, c.reason
		}
		return Unknown, c.reason
	}
}

// returning is the reason of a condemned endpoint that is about to return. A client leaves there
// what is there while it settles.
func (j *judge) returning(st *standing, s sight, now time.Time, r *ruling) string {
	if j.settles(st, s, now, r) {
		return ReasonSettling
	}
	r.awaited = append(r.awaited, s.address) // the next word may tell of a proof again
	return ReasonUnproved
}

// settles reports whether proofs complete at an endpoint that is about to be good, whatever a
// shim goes on saying. How old the newest is depends on how often the shim is asked, too: a word
// that told of a young one stands for as long as a proof does, and then the shim is asked.
func (j *judge) settles(st *standing, s sight, now time.Time, r *ruling) bool {
	until := s.c.proven.Add(j.t.first)
	if s.c.said.Before(until) {
		until = later(until, s.c.said.Add(j.t.first))
	}
	if now.Before(until) {
		r.awaited = append(r.awaited, s.address)
		r.wake = soonest(r.wake, until)
		return true
	}
	return j.outdated(st, s, until, now, r)
}

// condemned reports whether bad evidence has lasted in comparison: for Hold, counted from
// when both it and another's goodness stood, and with a witness whose evidence is younger
// than the cause.
func (j *judge) condemned(st *standing, s sight, rest []sight, now time.Time, r *ruling) bool {
	c := s.c
	if st.otherGood.IsZero() {
		return false
	}
	if c.reason == ReasonSettling && j.settles(st, s, now, r) {
		// One that settles proves its quorum all the while, and takes back nothing that it
		// carries by waiting: only a relapse, which is the same stretch, condemns it; or that
		// it proves nothing more, whatever the shim goes on saying.
		return false
	}
	fresh := false
	for _, o := range rest {
		fresh = fresh || j.witness(o) && j.quick(o.c, c, now) && j.ahead(o.c, c) && shown(o.c, c.kind).After(c.from)
	}
	common := st.otherGood.After(c.since)
	if !fresh || common && (c.kind == kindPath && st.shared || c.kind == kindQuorum && !c.heard.After(st.otherGood)) {
		j.compare(st, c, now, r)
	}
	due := later(later(c.since, st.otherGood).Add(j.hold(st, c, rest)), st.excused)
	if c.proof.After(c.from) && deniesQuorum(c.reason) {
		due = later(due, c.proof.Add(j.t.hold)) // it was there for us, the report is about to follow
	}
	if !st.behind.IsZero() {
		due = later(due, st.behind.Add(j.t.hold))
	}
	due = later(due, j.reread(c))
	if now.Before(due) {
		r.wake = soonest(r.wake, due)
		return false
	}
	return fresh && !j.outdated(st, s, due, now, r)
}

// compare has all endpoints asked, at every look at first. A comparison that decides nothing
// for long, because all are about equally late, must not make them later. Without a report
// the proofs that it costs are what the endpoint comes back by.
func (j *judge) compare(st *standing, c *condition, now time.Time, r *ruling) {
	every := j.t.look
	if !c.own && now.Sub(later(c.since, st.otherGood)) > j.t.hold+j.t.first {
		every = j.t.poll
		if next := st.compared.Add(every); now.Before(next) {
			r.wake = soonest(r.wake, next)
			return
		}
	}
	st.compared, r.compare = now, true
	r.wake = soonest(r.wake, now.Add(every))
}

// outdated reports whether a report has to be asked once more before it condemns its
// member. One that goes from bad to settling pushes nothing, for it does not serve either
// way; and what held up its member for a moment may have held up the whole host. It is
// asked once, and not waited for longer than for a check. Its answer has us judge again.
func (j *judge) outdated(st *standing, s sight, due, now time.Time, r *ruling) bool {
	c := s.c
	if c.own || c.source == SourceStock || !c.said.Before(due) {
		return false
	}
	if st.asked.Before(due) {
		st.asked = now
		r.ask = append(r.ask, s.address)
	}
	end := st.asked.Add(j.t.timeout)
	if !now.Before(end) {
		return false
	}
	r.awaited = append(r.awaited, s.address)
	r.wake = soonest(r.wake, end)
	return true
}

// lags keeps account of how long the member has been catching up. It proves its quorum
// then, and under load its applied index is behind for a moment at any time: what it
// was before does not count against it.
func (st *standing) lags(c *condition, now time.Time) {
	switch {
	case c.state != stateBad || c.reason != string(healthsvc.ReasonCatchingUp):
		st.behind = time.Time{}
	case st.behind.IsZero():
		st.behind = now
	}
}

// deniesQuorum reports whether a reason is one that a proof of our own contradicts: a member
// that drains or is behind may prove its quorum all the while.
func deniesQuorum(reason string) bool {
	switch reason {
	case string(healthsvc.ReasonNoQuorum), ReasonNoLeader, ReasonNotServing:
		return true
	}
	return false
}

// quick reports whether a witness that has no shim is quick enough to be one: it takes half as
// long at most as we end our proofs after, or as those of the bad member take that complete, or
// have been waited for. Members that are slow alike, a little more and a little less than some
// deadline, are no better than each other.
func (j *judge) quick(w, c *condition, now time.Time) bool {
	if c.kind != kindQuorum || w.source != SourceStock {
		return true
	}
	takes := j.t.hard
	switch {
	case c.reason != ReasonProofFailed:
	case c.late > 0 && now.Sub(c.proof) < 2*j.t.hard: // else they hang by now
		takes = c.late
	default:
		takes = min(takes, now.Sub(c.from))
	}
	return 2*w.took <= takes
}

// ahead reports whether a witness has proved its quorum for longer than a member whose shim
// finds none, and by a hold at least. Where the leader is starved all proofs come late, and the
// first to be late is hardly behind the others, who follow. One that is cut off proves nothing
// more, and is behind by its shim's window before its shim says so.
func (j *judge) ahead(w, c *condition) bool {
	if c.own || c.reason != string(healthsvc.ReasonNoQuorum) && c.reason != ReasonNoLeader {
		return true
	}
	return w.proven.Sub(c.proven) >= j.t.hold
}

// shown is since when a witness is known to be better off: its path, or its quorum.
func shown(w *condition, k kind) time.Time {
	if k == kindPath {
		return w.answered
	}
	return w.proven
}

// hold is how long bad evidence has to last. Longer after a disturbance that hit all: the
// first to be back must not draw everyone. Members that came through the same election are
// back within one read-index retry of each other; one that has not even seen the new term
// is cut off, and is not waited for.
func (j *judge) hold(st *standing, c *condition, rest []sight) time.Duration {
	switch {
	case !st.otherGood.After(c.since):
		return j.t.hold
	case c.kind == kindPath && st.shared:
		return j.t.hold + j.t.first + j.t.poll + j.t.timeout // a connection has to be made, and used
	case c.kind == kindPath, c.heard.After(st.otherGood) && j.behind(c, rest):
		return j.t.hold
	default:
		return j.t.hold + j.t.readRetry
	}
}

// elections notes when the term changed that the members are at: one that two of them tell,
// for one may be wrong.
func (j *judge) elections(sights []sight, now time.Time) {
	var first, term uint64 // the highest, the highest but one
	for _, s := range sights {
		if !j.foreign(s) {
			first, term = max(first, s.c.term), max(term, min(first, s.c.term))
		}
	}
	if len(sights) < 3 {
		term = first
	}
	if term == 0 || term == j.told {
		return
	}
	if j.told != 0 {
		j.elected = now
	}
	j.told = term
}

// reread is until when a member may be without a proof for no other reason than that its
// leader changed: zero where it did not. A read-index request that is on its way then is
// dropped, those behind it wait, and etcd sends it again only after readRetry. The time
// counts from the begin of the newest proof; a hold more is for the next one to begin, to
// be lost, and to be told of.
func (j *judge) reread(c *condition) time.Time {
	began := c.proven
	switch {
	case c.kind != kindQuorum:
		return time.Time{}
	case c.own:
		began = c.from // of the proof that failed
	case !deniesQuorum(c.reason):
		return time.Time{} // no proof will end that
	}
	if j.elected.Before(began.Add(-j.t.hold)) {
		return time.Time{}
	}
	return began.Add(j.t.readRetry + j.t.hold)
}

// behind reports whether a witness is at a higher term.
func (j *judge) behind(c *condition, rest []sight) bool {
	for _, o := range rest {
		if j.witness(o) && o.c.term > c.term {
			return true
		}
	}
	return false
}

func (j *judge) eject(st *standing, c *condition, now time.Time) {
	st.ejected = now
	st.unproved = c.own && c.kind == kindQuorum
	if !c.own {
		return // a shim damps its own flapping
	}
	if !st.returned.IsZero() && now.Sub(st.returned) > j.t.forget {
		st.flaps = 0
	}
	st.flaps++
}

func (j *judge) release(st *standing, now time.Time, r *ruling) {
	if !st.ejected.IsZero() {
		st.ejected, st.returned = time.Time{}, now
		r.wake = now // others were compared before it was one to compare with
	}
}

// mayReturn reports whether a condemned endpoint whose evidence is good is readmitted.
// A shim's SERVING suffices, since it has waited itself; without one, or where it did not see
// what we saw, proofs have to complete, or all to be turned away for long. One that
// flaps waits longer each time, unless it is needed.
func (j *judge) mayReturn(st *standing, s sight, rest []sight, now time.Time, r *ruling) bool {
	reported := s.c.source != SourceStock
	waived := s.c.waived.After(st.ejected)
	proved := reported && !st.unproved || s.c.run >= j.t.rounds && s.c.proof.After(st.ejected) || waived
	needed := true
	for _, o := range rest {
		needed = needed && !j.witness(o)
	}
	if needed {
		return reported || waived || s.c.proof.After(st.ejected)
	}
	if reported && !proved {
		r.prove = append(r.prove, s.address)
		r.wake = soonest(r.wake, now.Add(j.t.proofRetry))
	}
	due := later(s.c.since, st.ejected).Add(j.holdDown(st.flaps))
	if proved && now.Before(due) {
		r.wake = soonest(r.wake, due)
	}
	return proved && !now.Before(due)
}

// holdDown is how long an endpoint must have been good to return: not at all the first
// time, then doubling.
func (j *judge) holdDown(flaps int) time.Duration {
	if flaps < 2 {
		return 0
	}
	return min(j.t.holdDown<<min(flaps-2, 16), j.t.holdDownMax)
}

// aggregate finds what holds for all endpoints together.
func (j *judge) aggregate(sights []sight, now time.Time) {
	healthy := false
	for _, s := range sights {
		healthy = healthy || j.standings[s.address].grade == Healthy
	}
	switch {
	case !healthy:
		j.common = time.Time{}
	case j.common.IsZero():
		j.common = now
	}
	j.claims(sights)
	j.lead(sights, now)
}

// others writes all sights but one over rest.
func others(rest, sights []sight, i int) []sight {
	return append(append(rest[:0], sights[:i]...), sights[i+1:]...)
}

func soonest(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return earlier(a, b)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
