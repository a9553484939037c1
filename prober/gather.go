package prober

import (
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
)

// do is what a gatherer wants done.
type do int

const (
	doCheck     do = iota // ask etcd's own port whether it knows a leader
	doProve               // one linearizable read
	doObserve             // read what etcd says of itself
	doRedial              // replace the connection to etcd's port
	doSeekShim            // follow the shim's port, on a new connection
	doSeekEtcd            // follow our services on etcd's port
	doLeaveShim           // end that
	doLeaveEtcd           // end that
	doNudge               // poll the reports now
)

// order is one thing to do; id is given back with the outcome.
type order struct {
	do      do
	id      int           // of the call, or number of the session
	timeout time.Duration // end of the call
}

// call is one in flight.
type call struct {
	do     do
	began  time.Time
	due    time.Time // when its absence means something
	missed bool      // it did
	sample bool      // its length says something about the round trip
}

// outcome is what became of a call.
type outcome struct {
	result result
	answer answer                 // of a check
	self   membership.Observation // of an observation
}

type result int

const (
	resultSilent   result = iota // cut off at its end
	resultBroken                 // refused, or the connection broke: nobody answered
	resultAnswered               // check, observation: answered; proof: completed
	resultFailed                 // proof: answered, but without consensus
	resultNoLeader               // proof: answered "no leader"
	resultNothing                // nothing was learned
	resultRefused                // proof: turned away before it was tried, for want of resources
)

// gather schedules the questions to one endpoint and files the answers. Pure: now and
// randomness come in, orders go out. Its probe's loop is the only caller.
type gather struct {
	t     times
	rnd   func() float64 // [0,1)
	ev    evidence
	shim  seek
	etcd  seek
	calls map[int]*call
	seq   int

	hasShim  bool
	checkAt  time.Time // next one
	selfAt   time.Time
	proving  time.Time     // when the newest proof began
	asked    bool          // a proof was asked for
	pressing bool          // for a comparison, which ends soon: leisure would condemn the last to prove itself
	compared time.Time     // when a comparison was last asked for
	slept    time.Duration // that calls were excused for since the last answer
	outed    time.Time     // since when somebody holds the endpoint condemned; zero: nobody does
	failedIn time.Duration // deadline of the proof whose failure the newest stretch of them began with

	dialed   time.Time     // when the connection to etcd's port was made
	live     bool          // it has answered
	redials  int           // in a row
	checkRTT roundTrip     // of checks
	proofRTT roundTrip     // of proofs
	expire   time.Duration // silence after which a report no longer stands
}

func newGather(t times, hasShim bool, rnd func() float64) *gather {
	g := &gather{t: t, rnd: rnd, hasShim: hasShim, calls: make(map[int]*call), shim: newSeek(t), etcd: newSeek(t)}
	g.expire = 3 * t.poll
	g.ev.shim.sought = !hasShim
	return g
}

// tick returns what is to be done now.
func (g *gather) tick(now time.Time) []order {
	if g.dialed.IsZero() {
		g.dialed = now
	}
	var out []order
	out = g.overdue(now, out)
	out = g.redial(now, out)
	out = g.search(now, out)
	if !now.Before(g.checkAt) {
		out = g.check(now, out)
	}
	out = g.prove(now, out)
	if !now.Before(g.selfAt) && g.live && g.flying(doObserve) == 0 {
		g.selfAt = now.Add(g.observeEvery())
		out = g.begin(now, doObserve, now.Add(g.t.hard), out)
	}
	return out
}

// woke is told how long after its time the loop woke, before the outcomes of calls that were
// cut off meanwhile are filed. It gives calls in flight the time that the loop slept: what was
// not seen while we slept is no evidence against anyone. A machine that is slow for good is no excuse for a
// member that hangs: without an answer in between, sleep is forgiven up to the end of a
// call, though one sleep always in full.
func (g *gather) woke(late time.Duration) {
	if late <= g.t.late || len(g.calls) == 0 || g.slept >= g.t.hard {
		return
	}
	g.slept += late + g.t.timeout
	for _, c := range g.calls {
		c.due = c.due.Add(late + g.t.timeout)
	}
}

// overdue notes the calls whose deadline has passed.
func (g *gather) overdue(now time.Time, out []order) []order {
	for _, c := range g.calls {
		if c.missed || now.Before(c.due) {
			continue
		}
		c.missed = true
		switch c.do {
		case doCheck:
			if g.missedCheck(c.began, now) {
				g.checkAt = now
				out = append(out, order{do: doNudge})
			}
		case doProve:
			g.failedProof(c, now, false)
		}
	}
	return out
}

// missedCheck files a check without an answer; it reports whether it is the first.
func (g *gather) missedCheck(began, now time.Time) bool {
	k := &g.ev.check
	if !k.failing.IsZero() || began.Before(k.answered) {
		return false
	}
	k.failing, k.missed = began, now
	g.tried()
	return true
}

// tried ends a stretch of refusals: something else is known again.
func (g *gather) tried() { g.ev.proof.refused, g.ev.proof.waived = time.Time{}, time.Time{} }

// refusedProof files a proof that was turned away. That proves nothing of a quorum; but an
// endpoint that turns away all proofs, while its path lives and nothing else is known against
// it, must be able to return. It waits for as long as any does, and is then what it
// would be had it never been condemned. For others it is no witness.
func (g *gather) refusedProof(c *call, now time.Time) {
	p := &g.ev.proof
	if p.refused.IsZero() {
		p.refused = now
	}
	if now.Sub(p.refused) >= g.t.holdDownMax {
		g.unsuspect()
		p.waived = c.began
	}
}

func (g *gather) failedProof(c *call, now time.Time, noLeader bool) {
	p := &g.ev.proof
	if c.began.Before(p.completed) {
		return
	}
	p.run, p.noLeader = 0, noLeader
	if p.failing.IsZero() {
		p.failing, p.missed = c.began, now
		g.failedIn = c.due.Sub(c.began)
	}
}

// unsuspect ends what failed proofs said. The deadline that they failed in is kept for as long
// as the endpoint is condemned: it takes several proofs to return.
func (g *gather) unsuspect() {
	p := &g.ev.proof
	p.failing, p.missed, p.noLeader = time.Time{}, time.Time{}, false
	if g.outed.IsZero() {
		g.failedIn = 0
	}
}

// redial replaces a connection on which something is awaited and nothing has come for
// long: after a silent cut TCP would wait for its own, ever longer, retransmission.
func (g *gather) redial(now time.Time, out []order) []order {
	if !g.stuck(now) {
		return out
	}
	g.redials++
	return append(g.reconnect(now, out), order{do: doRedial})
}

func (g *gather) reconnect(now time.Time, out []order) []order {
	g.dialed, g.live = now, false
	clear(g.calls)
	if g.etcd.running { // it lives on that connection
		out = append(out, order{do: doLeaveEtcd})
		g.etcd.running = false
		g.etcd.next = now
	}
	g.checkAt = now
	return out
}

func (g *gather) stuck(now time.Time) bool {
	return !g.ev.check.failing.IsZero() && !now.Before(g.redialAt()) && g.flying(doCheck) > 0
}

// redialAt is when the connection will have been silent for too long.
func (g *gather) redialAt() time.Time {
	quiet := g.dialed
	if g.ev.check.failing.After(quiet) {
		quiet = g.ev.check.failing
	}
	return quiet.Add(min(g.t.silent<<min(g.redials, 8), g.t.redialMax))
}

// search starts and ends the searches for reports.
func (g *gather) search(now time.Time, out []order) []order {
	if g.hasShim {
		out = g.searchAt(now, &g.shim, &g.ev.shim, doSeekShim, doLeaveShim, out)
	}
	return g.searchAt(now, &g.etcd, &g.ev.inproc, doSeekEtcd, doLeaveEtcd, out)
}

func (g *gather) searchAt(now time.Time, s *seek, r *reporter, start, stop do, out []order) []order {
	switch {
	case s.running && r.news.Status == healthsvc.StatusAbsent, s.spent(now, g.t, r.news):
		s.stop(now, g.rnd(), g.t)
		r.news.Status = healthsvc.StatusUnknown // nobody follows it: its last word no longer stands
		r.sought = true
		out = append(out, order{do: stop})
	case !s.running && !now.Before(s.next):
		s.start(now)
		out = append(out, order{do: start, id: s.session})
	case s.running && now.Sub(s.began) >= g.t.seekFirst:
		r.sought = true
	}
	return out
}

// reported reports whether somebody's report stands.
func (g *gather) reported(now time.Time) bool {
	return g.ev.shim.speaks(now, g.expire) && !foreign(g.ev.shim.news.Identity, g.ev.self) ||
		g.ev.inproc.speaks(now, g.expire)
}

func (g *gather) check(now time.Time, out []order) []order {
	if n := g.flying(doCheck); n < maxChecks {
		due := g.checkRTT.deadline(g.t.timeout, g.t.hard)
		if !g.live {
			due = max(due, g.t.first)
		}
		out = g.begin(now, doCheck, now.Add(due), out)
	}
	g.checkAt = now.Add(g.checkEvery(now))
	return out
}

const (
	// maxChecks and maxProofs bound the calls in flight to one endpoint that does not answer.
	maxChecks = 4
	maxProofs = 12
	// patience is after how many quick proofs one that still fails is retried at leisure.
	patience = 20
)

func (g *gather) checkEvery(now time.Time) time.Duration {
	switch k := g.ev.check; {
	case !k.failing.IsZero() && now.Sub(k.missed) < g.t.first:
		return g.t.recheck
	case !k.failing.IsZero():
		return g.t.poll
	case g.reported(now):
		// Jittered downwards only, so that a miss is never noticed later than promised.
		d := max(g.t.poll, hint(g.ev.shim.news), hint(g.ev.inproc.news))
		return d - time.Duration(g.rnd()*float64(d)/10)
	default:
		return g.t.stockPoll - time.Duration(g.rnd()*float64(g.t.stockPoll)/10)
	}
}

// hint is how often a server wishes to be polled, within reason: it stretches how long
// its silence goes unnoticed.
func hint(n healthsvc.News) time.Duration { return min(n.Poll, 10*time.Second) }

// prove starts a proof when one is due: asked for, by the clock while no report stands, and
// in quick succession while one has failed or a return depends on them. Not while the path
// is dead: nothing would be learned.
func (g *gather) prove(now time.Time, out []order) []order {
	if at, ok := g.proofDue(now); !ok || now.Before(at) {
		return out
	}
	g.asked, g.pressing = false, false
	g.proving = now
	if g.flying(doProve) >= maxProofs {
		return out
	}
	return g.begin(now, doProve, now.Add(g.proofDeadline(now)), out)
}

// proofDeadline follows the round trips of proofs. Before there are any it follows those that
// the shim measured; with neither, how far the members are from each other is not known yet.
// A condemned endpoint returns by being as quick as it was when it failed.
func (g *gather) proofDeadline(now time.Time) time.Duration {
	switch {
	case g.condemned(now) && g.failedIn > 0:
		return g.failedIn
	case g.proofRTT.mean > 0:
		return g.proofRTT.deadline(g.t.proofTimeout, g.t.hard)
	case g.reported(now):
		known := max(g.ev.shim.news.ShimRTT, g.ev.inproc.news.ShimRTT)
		return min(max(g.t.proofTimeout, g.checkRTT.deadline(0, g.t.hard)+4*known), g.t.hard)
	default:
		return max(g.t.proofTimeout, g.t.first)
	}
}

func (g *gather) proofDue(now time.Time) (time.Time, bool) {
	if !g.live || !g.ev.check.failing.IsZero() {
		return time.Time{}, false
	}
	reported := g.reported(now)
	switch p := g.ev.proof; {
	case !p.failing.IsZero() && !g.pressing && g.proving.Sub(p.missed) > patience*g.t.proofRetry:
		return g.proving.Add(g.t.proofEvery), true
	case !p.failing.IsZero(), !g.outed.IsZero() && !reported && p.refused.IsZero(), g.ev.check.answer == answerNoLeader:
		return g.proving.Add(g.t.proofRetry), true
	case g.asked && !g.outed.IsZero() && !g.pressing:
		// Its return depends on proofs, and each of them has another one asked for.
		return g.proving.Add(g.t.proofRetry), true
	case g.asked:
		return g.proving.Add(g.t.demand), true
	case !reported && g.ev.check.answer != answerLearner:
		return g.proving.Add(g.t.proofEvery), true
	}
	return time.Time{}, false
}

// observeEvery is rare while a report says that all is well, and of the right member.
func (g *gather) observeEvery() time.Duration {
	d := g.t.observeSoon
	shim, etcd := g.ev.shim.news, g.ev.inproc.news
	serving := shim.Status == healthsvc.StatusServing && !foreign(shim.Identity, g.ev.self) || etcd.Status == healthsvc.StatusServing
	if serving && !g.ev.self.Learner && !g.ev.self.Removed {
		d = g.t.observe
	}
	return d - time.Duration(g.rnd()*float64(d)/10)
}

func (g *gather) begin(now time.Time, what do, due time.Time, out []order) []order {
	g.seq++
	g.calls[g.seq] = &call{do: what, began: now, due: due, sample: g.live}
	return append(out, order{do: what, id: g.seq, timeout: g.t.hard})
}

func (g *gather) flying(what do) (n int) {
	for _, c := range g.calls {
		if c.do == what {
			n++
		}
	}
	return n
}

// done files the outcome of a call.
func (g *gather) done(id int, o outcome, now time.Time) {
	c := g.calls[id]
	if c == nil { // of a connection since replaced
		return
	}
	delete(g.calls, id)
	if o.result == resultAnswered {
		g.slept = 0
	}
	if c.do == doProve && o.result != resultRefused && o.result != resultNothing {
		g.tried()
	}
	if o.result == resultSilent && (c.missed || now.Before(c.due)) {
		return // counted already, or cut off while we slept
	}
	switch c.do {
	case doCheck:
		g.checked(c, o, now)
	case doProve:
		g.proved(c, o, now)
	case doObserve:
		if o.result == resultAnswered && o.self.At.After(g.ev.self.At) {
			g.ev.self = o.self
		}
	}
}

func (g *gather) checked(c *call, o outcome, now time.Time) {
	k := &g.ev.check
	switch o.result {
	case resultAnswered:
	case resultBroken:
		g.live = false
		if g.missedCheck(c.began, now) {
			g.checkAt = now
		}
		return
	default:
		g.missedCheck(c.began, now)
		return
	}
	if c.sample {
		g.checkRTT.sample(now.Sub(c.began))
		k.rtt = g.checkRTT.mean
	}
	if !g.live {
		g.live, g.redials = true, 0
		g.selfAt = now
	}
	if !k.failing.IsZero() {
		g.excuseProofs(k.answered)
		k.failing, k.missed = time.Time{}, time.Time{}
		g.checkAt = earlier(g.checkAt, now.Add(g.t.recheck))
		g.shim.soon(now)
		g.etcd.soon(now)
	}
	if !c.began.Before(k.answered) {
		k.answered, k.answer = c.began, o.answer
	}
	if o.answer != answerOK {
		g.tried()
	}
}

// excuseProofs takes back what failed proofs said, now that the path is known to have been dead
// at some time since it last answered: they may never have arrived. The next one tells.
func (g *gather) excuseProofs(alive time.Time) {
	if g.ev.proof.failing.After(alive) {
		g.unsuspect()
		g.asked = true
	}
}

func (g *gather) proved(c *call, o outcome, now time.Time) {
	p := &g.ev.proof
	switch o.result {
	case resultAnswered:
	case resultFailed, resultNoLeader, resultSilent:
		g.failedProof(c, now, o.result == resultNoLeader)
		return
	case resultRefused:
		g.refusedProof(c, now)
		return
	default:
		return
	}
	took := now.Sub(c.began)
	// A slow answer moves the deadline of an endpoint in use: the distance may have grown. It
	// does not move that of a condemned one, which would come back for being slow long enough.
	if !c.missed || !g.condemned(now) {
		g.proofRTT.sample(took)
	}
	switch {
	case !c.missed:
		p.run++
	case c.began.After(p.completed):
		p.run = 0
	}
	if !c.missed || took <= g.slowest() {
		g.unsuspect()
	}
	if c.began.After(p.completed) {
		p.completed, p.took = c.began, took
	}
}

// slowest is the longest that a late proof may take and still end a suspicion. All members may
// be slow together, and proofs are ended at some point: one that is answered just before is no
// better than the others, and reads that were sent to it again and again would never end.
func (g *gather) slowest() time.Duration { return g.t.hard / 2 }

// condemned reports whether somebody holds the endpoint condemned, and has not done so for so
// long that the distance to it may have changed for good.
func (g *gather) condemned(now time.Time) bool {
	return !g.outed.IsZero() && now.Sub(g.outed) <= time.Minute
}

// told files what a follower told.
func (g *gather) told(shim bool, session int, n healthsvc.News, now time.Time) {
	s, r := &g.etcd, &g.ev.inproc
	if shim {
		s, r = &g.shim, &g.ev.shim
	}
	if !s.running || session != s.session || g.stale(r.news, n, now) {
		return
	}
	before, spoke := r.news, r.speaks(now, g.expire)
	r.news = n
	if n.Status == healthsvc.StatusUnknown && n.Missed == 0 {
		return
	}
	r.sought = true
	if n.Missed == 0 && (n.Status == healthsvc.StatusServing || n.Status == healthsvc.StatusNotServing) {
		s.spoken(now)
	}
	if n.Missed > before.Missed && spoke { // the silence of one who never spoke says nothing
		g.checkAt, g.asked = earlier(g.checkAt, now), true
	}
	if n.Status != before.Status || n.Identity.Member != before.Identity.Member {
		g.selfAt = earlier(g.selfAt, now)
	}
}

// stale reports whether news over a new connection are older than what is known: from an
// earlier start of the same member's shim, or from an older term of the same start. What
// is known stops being a measure once it has expired: a member restored from a backup
// starts from a low term again.
func (g *gather) stale(known, n healthsvc.News, now time.Time) bool {
	a, b := known.Identity, n.Identity
	if n.Heard.IsZero() || a.Member == 0 || a.Member != b.Member || !(reporter{news: known}).speaks(now, g.expire) {
		return false
	}
	if !a.Start.Equal(b.Start) {
		return !b.Start.IsZero() && b.Start.Before(a.Start)
	}
	return b.Term != 0 && b.Term < a.Term
}

// demand asks for a proof.
func (g *gather) demand() { g.asked = true }

// compare asks for everything that can be a comparison: others are in trouble.
func (g *gather) compare(now time.Time, out []order) []order {
	if now.Sub(g.compared) < g.t.demand {
		return out
	}
	g.compared = now
	g.checkAt = earlier(g.checkAt, now)
	if !g.reported(now) {
		g.asked, g.pressing = true, true
	}
	return append(out, order{do: doNudge})
}

// out says whether somebody holds the endpoint condemned. Its return may depend on proofs,
// which are counted from then on.
// Told again and again, it changes nothing.
func (g *gather) out(yes bool, now time.Time) {
	switch {
	case !yes && !g.outed.IsZero():
		g.outed, g.failedIn = time.Time{}, 0
	case !yes:
	case g.outed.IsZero():
		g.outed = now
		g.ev.proof.run = 0
		g.tried()
	}
}

// wake is when tick has to be called next.
func (g *gather) wake(now time.Time) time.Time {
	at := g.checkAt
	if g.live && g.flying(doObserve) == 0 {
		at = earlier(at, g.selfAt)
	}
	if due, ok := g.proofDue(now); ok {
		at = earlier(at, due)
	}
	for _, c := range g.calls {
		if !c.missed {
			at = earlier(at, c.due)
		}
	}
	if !g.ev.check.failing.IsZero() && g.flying(doCheck) > 0 {
		at = earlier(at, g.redialAt())
	}
	if g.hasShim {
		at = earlier(at, g.shim.wake(&g.ev.shim, g.t))
	}
	at = earlier(at, g.etcd.wake(&g.ev.inproc, g.t))
	if g.reported(now) { // reports expire even if no follower says so
		at = earlier(at, now.Add(g.expire))
	}
	return at
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
