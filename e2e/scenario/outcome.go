package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// stuckAfter is the wait that makes a control stuck: more than any election.
const stuckAfter = 2500 * time.Millisecond

const leaseTTL = 5 * time.Second

// stillMost is how long a cluster may be without a leader before what its clients
// lose is its own doing: a lease's time, less the third that may have passed since
// its last keepalive.
const stillMost = leaseTTL * 2 / 3

// near is how long before the fault what the machine took may matter: proofs that took long
// then make a shim more patient.
const near = time.Second

// How late the machine may have been before what comes out in time or not says nothing
// about our client: at once, where streams move for evidence that is late, and altogether,
// in the time of a call or of a lease. A bound that is missed by no more than the machine
// took until then is in doubt too.
const (
	lateMost  = 100 * time.Millisecond
	takenMost = 500 * time.Millisecond
)

// Outcome is what a scenario has shown.
type Outcome struct {
	Scenario      string
	Shim          string
	Ours, Control workload.Figures
	Still         time.Duration           // the longest time in which no write went through at all
	Elected       time.Duration           // from the fault until another member led; 0: the leader stayed
	Moves         map[client.MoveKind]int // what our client says that it moved
	Lateness      Lateness                // of the machine
	ControlStuck  string                  // how the control got stuck; "" if it did not
	Violations    []string                // what our client did wrong
	Doubts        []string                // what it did late, and the machine or the cluster explains
	Void          string                  // why the scenario shows nothing; "" if it does
}

// OK says whether the scenario shows what it should.
func (o Outcome) OK() bool { return o.Void == "" && len(o.Violations) == 0 }

// Luck says of a scenario that shows nothing that neither client is the reason: our
// client was late as the machine was, or the cluster took long to find a leader. Played
// again it may tell.
func (o Outcome) Luck() bool {
	return o.Void != "" && len(o.Violations) == 0 && (len(o.Doubts) > 0 || o.Still > stillMost)
}

// Unlucky says why what came of a play ([Run]) is bad luck: played again it may tell. A
// start fails because of an election in a single call, or a machine that is slow while
// everything starts at once; not where the official client starts all the same.
func Unlucky(out Outcome, err error) (why string, is bool) {
	if errors.Is(err, ErrNotStarted) {
		return err.Error(), !errors.Is(err, workload.ErrOursAlone)
	}
	return out.Void, err == nil && out.Luck()
}

// evidence is what a scenario is judged by, besides its figures.
type evidence struct {
	marks
	ours    workload.Record
	history workload.History
	upTo    int64 // the revision for which the watches were waited: a write that was given up may be applied later
	arrived map[string]int
	machine lags
	stood   spans    // the times in which no write went through, where Still is too long
	moved   []string // what moved before anything was done to a member
}

// judge tells what our client did wrong from what it may merely have done late, on a
// machine that was late itself or in a cluster that stood still. The second leaves the
// scenario void.
func (o *Outcome) judge(sc Scenario, e evidence) {
	o.Lateness = e.machine.summary()
	o.ControlStuck, _ = o.Control.Stuck(stuckAfter + o.Elected)
	o.consistent(e)
	o.kept(e)
	o.served(sc, e)
	o.left(sc, e)
	switch {
	case o.Still > stillMost:
		o.Void = fmt.Sprintf("the cluster itself stood still for %v: no client could have kept its leases", shown(o.Still))
	case len(o.Doubts) > 0:
		o.Void = fmt.Sprintf("the machine was late by up to %v: it tells nothing about who was in time", shown(o.Lateness.Worst))
	case sc.Control == Stuck && o.ControlStuck == "":
		o.Void = fmt.Sprintf("the official client was not stuck: lag %v, longest Get %v, no lease lost", o.Control.Lag, o.Control.GetMax)
	}
}

// consistent checks what must hold whatever happens.
func (o *Outcome) consistent(e evidence) {
	want := workload.Between(e.history.Events, e.ours.StartRev, e.upTo)
	for _, w := range e.ours.Watches {
		o.Violations = append(o.Violations, workload.CheckWatch(w.Name, workload.Between(w.Events, e.ours.StartRev, e.upTo), want)...)
		if w.Closed != nil {
			o.violate("watch %s: %v", w.Name, w.Closed)
		}
	}
	o.Violations = append(o.Violations, workload.CheckOnce(e.ours.Puts, e.history.Applied, e.arrived)...)
	o.Violations = append(o.Violations, workload.CheckReads(e.ours.Gets, e.ours.Puts)...)
}

// kept checks that no lease was lost.
func (o *Outcome) kept(e evidence) {
	for _, l := range e.ours.Leases {
		lost := l.LostAt()
		inDoubt := o.Still > stillMost || e.machine.between(lost.Add(-leaseTTL), lost) > takenMost
		for _, line := range workload.CheckLease(l) {
			o.miss(inDoubt, "%s", line)
		}
	}
}

// served checks what the user of our client must not have noticed.
func (o *Outcome) served(sc Scenario, e evidence) {
	if o.Ours.GetsFailed > 0 {
		o.miss(e.hindered(e.ours.Gets), "%d of %d Gets failed; a read can always be sent again: %v", o.Ours.GetsFailed, o.Ours.Gets, o.Ours.Failures)
	}
	// While a leader hands over, its raft drops what it is asked: no other member would
	// have served that.
	if failed := o.Ours.PutsFailed - o.Ours.PutsDropped; failed > 0 {
		o.miss(e.hindered(e.ours.Puts), "%d Puts failed with an error that does not say that their outcome is unknown: %v", failed, o.Ours.Failures)
	}
	for _, line := range e.moved {
		o.miss(o.Lateness.Worst > lateMost || e.stood.between(time.Time{}, e.cut) > 0, "%s", line)
	}
	if sc.Control == Unharmed {
		o.unmoved(e)
	}
}

// taken is the time between two moments in which no client could have done anything: the
// machine took it, or the cluster stood still for too long.
func (e evidence) taken(from, to time.Time) time.Duration {
	return e.machine.between(from, to) + e.stood.between(from, to)
}

// hindered says that every call that failed for certain had too much of its time taken.
func (e evidence) hindered(ops []workload.Op) (all bool) {
	for _, op := range ops {
		if op.Err == nil || op.ID != "" && excused(op.Err) {
			continue
		}
		if e.taken(op.Began, op.Ended) <= takenMost {
			return false
		}
		all = true
	}
	return all
}

// excused says of the error of a mutation that it is none that our client should have
// spared its user.
func excused(err error) bool {
	return outcomeUnknown(err) || errors.Is(err, context.DeadlineExceeded) || workload.ProposalDropped(err.Error())
}

// unmoved checks that no stream left a member that was good. A keepalive that an
// election leaves unanswered may reopen its lease stream. Single calls may be sent
// again or given up: the leader was lost, whatever the members are.
func (o *Outcome) unmoved(e evidence) {
	late := o.Lateness.Worst > lateMost || len(e.stood) > 0
	overdue := 0
	for kind, n := range o.Moves {
		switch {
		case kind.Class == "read" || kind.Class == "mutation":
		case kind.Class == "lease" && kind.Reason == client.ReasonKeepalive:
			overdue += n
		default:
			o.miss(late, "%d moves of %s for %s; want none: no member was bad", n, kind.Class, kind.Reason)
		}
	}
	if o.Ours.WatchesReopened > 0 {
		o.miss(late, "%d watch streams were opened again; want none: no member was bad", o.Ours.WatchesReopened)
	}
	if o.Ours.LeasesReopened > overdue {
		o.miss(late, "%d lease streams were opened again, of which only %d for an overdue keepalive", o.Ours.LeasesReopened, overdue)
	}
}

// left checks how soon the member was left and, where wanted, used again.
func (o *Outcome) left(sc Scenario, e evidence) {
	for _, b := range []struct {
		what     string
		got, max time.Duration
	}{
		{"the last new call went to the member", o.Ours.LastCall, sc.Budget.Calls},
		{"the last read on the member ended", o.Ours.LastRead, sc.Budget.Calls},
		{"the last stream left the member", o.Ours.LastStream, sc.Budget.Streams},
		{"the watches fell behind", o.Ours.Lag, sc.Budget.Lag},
	} {
		if limit := b.max + o.Elected; b.max > 0 && b.got > limit {
			until := e.heal // Never: for as long as the fault lasted
			if b.got != workload.Never {
				until = e.cut.Add(b.got)
			}
			taken := e.machine.long().between(e.cut.Add(-near), e.cut) + e.taken(e.cut, until)
			inDoubt := until.Sub(e.cut.Add(limit)) <= taken
			o.miss(inDoubt, "%s after %s; want at most %v (%v after the election)", b.what, shown(b.got), limit.Round(time.Millisecond), b.max)
		}
	}
	if sc.Returns && (o.Ours.CallsBack == 0 || o.Ours.StreamsBack == 0) {
		o.miss(o.Lateness.Worst > lateMost || e.stood.between(e.heal, e.ours.Ended) > 0, "after the heal %d calls and %d streams went to the member; want both: it is good again", o.Ours.CallsBack, o.Ours.StreamsBack)
	}
}

// miss files something that was not in time.
func (o *Outcome) miss(inDoubt bool, format string, args ...any) {
	if inDoubt {
		o.Doubts = append(o.Doubts, fmt.Sprintf(format, args...))
		return
	}
	o.violate(format, args...)
}

func (o *Outcome) violate(format string, args ...any) {
	o.Violations = append(o.Violations, fmt.Sprintf(format, args...))
}

// shown prints a duration for people.
func shown(d time.Duration) string {
	if d == workload.Never {
		return "never"
	}
	return d.Round(time.Millisecond).String()
}
