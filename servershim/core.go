package servershim

import (
	"errors"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
)

// core is all that the shim knows, without a clock, a goroutine or I/O. The loop
// in Run owns it and calls, at every wake: wake, then result for all that has come
// in, then settle, then start for the calls that are due, then decide, then next.
type core struct {
	cfg   Config
	began time.Time // when the shim started

	tick     time.Time // when the next proof is due
	proofs   proofs
	window   window
	late     lateness
	gate     gate
	reads    sample
	observes sample

	term     uint64                 // as observed when the newest good proof came
	led      bool                   // it led then, or nobody told who did
	seen     membership.Observation // newest; keeps its last values while nothing new comes
	learner  bool                   // the newest word on it, from a refusal or an observation
	refusal  error                  // of the newest failed proof, while newer than the newest good one
	target   uint64                 // index to have applied before opening; zero: not fixed yet
	behind   bool                   // not there yet
	draining bool
}

// call is one thing for the loop to start.
type call struct {
	kind callKind
	id   int // of a proof
}

type callKind int

const (
	callProve callKind = iota + 1
	callRead
	callObserve
)

// outcome is what became of a call.
type outcome struct {
	call
	end  time.Time // measured where the call was made
	err  error
	seen membership.Observation // of an observation
}

// proofOutcome says how a proof ended, for the metrics.
type proofOutcome string

const (
	proofCompleted proofOutcome = "completed" // in time to hold quorum
	proofLate      proofOutcome = "late"      // completed, but it began too long ago
	proofTimedOut  proofOutcome = "timeout"
	proofFailed    proofOutcome = "failed"
)

// slowEvery is how many intervals pass between two local reads, and between two
// observations while all is well. localFresh is how many deadlines an answer to a
// local call shows that etcd is there.
const (
	slowEvery  = 5
	localFresh = 2
)

func newCore(cfg Config, now time.Time) *core {
	return &core{
		cfg:      cfg,
		began:    now,
		tick:     now,
		window:   window{floor: cfg.WindowFloor, ceiling: cfg.ElectionTimeout, slack: 2 * cfg.Interval},
		late:     lateness{tolerance: cfg.Interval / 4, ceiling: cfg.ElectionTimeout},
		gate:     gate{rounds: cfg.GoodRounds, first: cfg.ElectionTimeout, calm: cfg.HoldDownMax},
		reads:    sample{deadline: cfg.ElectionTimeout, interval: cfg.Interval},
		observes: sample{deadline: cfg.ElectionTimeout, interval: cfg.Interval},
	}
}

// deadline bounds one call. A proof that takes longer than the ceiling holds no
// quorum; half as much again lets one through that etcd's own retry after 500 ms
// delayed, so that the window can learn of it.
func (c *core) deadline(kind callKind) time.Duration {
	if kind == callProve {
		return c.cfg.ElectionTimeout * 3 / 2
	}
	return c.reads.deadline
}

// wake takes in that the loop woke though it had meant to at due, and what has
// changed by time alone. It reports whether the loop was late.
func (c *core) wake(due, now time.Time) bool {
	late := c.late.wake(due, now, c.proofs.newest)
	if late {
		c.proofs.taint()
		c.reads.late(now)
		c.observes.late(now)
	}
	return late
}

// start opens the calls that are due.
func (c *core) start(now time.Time) []call {
	var calls []call
	if !now.Before(c.tick) {
		// Ticks that were slept through are not made up for.
		c.tick = now.Add(c.cfg.Interval)
		if id, ok := c.proofs.start(now); ok {
			calls = append(calls, call{callProve, id})
		}
	}
	if c.reads.start(now, c.localEvery(c.reads.works(now))) {
		calls = append(calls, call{kind: callRead})
	}
	if c.observes.start(now, c.localEvery(c.gate.open)) {
		calls = append(calls, call{kind: callObserve})
	}
	return calls
}

func (c *core) localEvery(well bool) time.Duration {
	if well {
		return slowEvery * c.cfg.Interval
	}
	return c.cfg.Interval
}

// result takes in what became of a call. The string is empty except for a proof.
func (c *core) result(now time.Time, o outcome) (proofOutcome, time.Duration) {
	switch o.kind {
	case callProve:
		return c.proved(now, o)
	case callRead:
		c.reads.finish(now, o.err)
	case callObserve:
		c.observes.finish(now, o.err)
		if o.err == nil {
			c.observed(o.seen)
		}
	}
	return "", 0
}

func (c *core) proved(now time.Time, o outcome) (proofOutcome, time.Duration) {
	p, ok := c.proofs.finish(o.id)
	if !ok {
		return "", 0
	}
	if o.err != nil {
		return c.refused(p, o.err), 0
	}
	c.learner = c.seen.Learner
	c.refusal = nil
	c.proofs.completed(p.begin)
	c.window.sample(p.begin, o.end, p.tainted)
	if now.Sub(p.begin)-c.late.forgiven(p.begin) > c.window.length() || p.begin.Before(c.late.void) {
		return proofLate, o.end.Sub(p.begin)
	}
	c.term, c.led = c.seen.Term, c.seen.Leader == 0 || c.seen.Leader == c.seen.Member
	if c.good(now) {
		c.gate.good(p.begin, o.end)
	}
	return proofCompleted, o.end.Sub(p.begin)
}

// refused takes in a proof that failed. It ends a streak if it began in it, that
// is, after the newest good one.
func (c *core) refused(p proof, err error) proofOutcome {
	if errors.Is(err, membership.ErrLearner) {
		c.learner = true
	}
	if !p.tainted && p.begin.After(c.proofs.newest) {
		c.refusal = err
		c.gate.streak = 0
	}
	if timedOut(err) {
		return proofTimedOut
	}
	return proofFailed
}

// observed takes in what the member says of itself.
func (c *core) observed(o membership.Observation) {
	c.seen = o
	if o.Member != 0 || o.Learner {
		c.learner = o.Learner
	}
	if c.gate.excuse(o.Term) {
		c.window.moved()
	}
	c.catchUp(o)
}

// catchUp decides whether the member has applied what was committed when its
// proofs began to complete again. A completed proof says already that the member
// had applied all that was committed when it began; this guards the rest, that is
// what it learnt of since. Without an index (etcd tells none without credentials)
// the proof has to do.
func (c *core) catchUp(o membership.Observation) {
	if c.gate.open || c.gate.streak == 0 || o.At.Before(c.gate.since) {
		return
	}
	if c.target == 0 {
		c.target = o.RaftIndex
	}
	c.behind = o.AppliedIndex < c.target
}

// catchingUp holds only while the member goes on telling its indexes.
func (c *core) catchingUp(now time.Time) bool { return c.behind && c.observes.works(now) }

// held reports whether a proof begun within the window has completed.
func (c *core) held(now time.Time) bool {
	return !c.proofs.newest.IsZero() && !c.proofs.newest.Before(c.late.void) && !now.After(c.heldUntil())
}

func (c *core) heldUntil() time.Time {
	return c.proofs.newest.Add(c.window.length() + c.late.forgiven(c.proofs.newest))
}

// unsure reports whether a long pause has just voided what was known, and a fresh
// proof has not had its time yet.
func (c *core) unsure(now time.Time) bool {
	void := c.late.void
	return !void.IsZero() && c.proofs.newest.Before(void) && now.Sub(void) <= c.window.length()
}

func (c *core) voter() bool {
	known := c.seen.Member != 0 || !c.proofs.newest.IsZero()
	return known && !c.learner && !c.seen.Removed
}

// good reports whether all is well apart from the gate.
func (c *core) good(now time.Time) bool {
	return c.held(now) && c.voter() && c.reads.works(now)
}

// settle moves the gate. A pause that only put all in doubt leaves it as it is.
func (c *core) settle(now time.Time) {
	switch {
	case c.good(now):
		if !c.gate.open && c.gate.ready(now) && !c.catchingUp(now) {
			c.gate.pass(now)
			c.window.use()
		}
	case c.unsure(now):
	default:
		if c.gate.open {
			// For the reason, and for who leads now.
			c.observes.next, c.reads.next = now, now
		}
		if c.gate.bad(now, c.term, c.voter(), c.led) {
			c.window.lose()
		}
		c.target, c.behind = 0, false
	}
}

// next is when the loop has to wake again.
func (c *core) next(now time.Time) time.Time {
	next := c.tick
	if c.held(now) {
		if lost := c.heldUntil().Add(1); lost.Before(next) {
			next = lost
		}
	}
	return next
}

// leads reports whether the member says that it leads, and goes on to say so: proofs
// complete on an ex-leader too, whose last word may be old.
func (c *core) leads(now time.Time) bool {
	return c.seen.Leader != 0 && c.seen.Leader == c.seen.Member && c.observes.works(now)
}

// decide says what to publish.
func (c *core) decide(now time.Time, poll time.Duration) healthsvc.Report {
	held := c.held(now)
	r := healthsvc.Report{
		Identity: healthsvc.Identity{
			Cluster: uint64(c.seen.Cluster), Member: uint64(c.seen.Member),
			Leader: uint64(c.seen.Leader), Term: c.seen.Term, Start: c.began,
		},
		Quorum:    held,
		Leads:     held && c.leads(now),
		Read:      c.reads.works(now),
		Write:     held && len(c.seen.Alarms) == 0,
		Voter:     c.voter(),
		LastProof: c.proofs.newest,
		RoundTrip: c.window.srtt,
		Poll:      poll,
	}
	r.Reason = c.reason(now)
	r.Serving = r.Reason == ""
	if r.Serving {
		r.Reason = alarmReason(c.seen.Alarms)
	}
	return r
}
