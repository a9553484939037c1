package scenario

import (
	"fmt"
	"time"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// stuckAfter is the wait that makes a control stuck: more than any election.
const stuckAfter = 2500 * time.Millisecond

// stillMost is how long a cluster may be without a leader before what its clients
// lose is its own doing: a lease of 5 s, less the third that may have passed since
// its last keepalive.
const stillMost = 5 * time.Second * 2 / 3

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
	Void          string                  // why the scenario shows nothing; "" if it does
}

// OK says whether the scenario shows what it should.
func (o Outcome) OK() bool { return o.Void == "" && len(o.Violations) == 0 }

// judge compares with the history up to revision upTo, for which the watches were
// waited: a write that was given up may still be applied after that.
func (o *Outcome) judge(sc Scenario, ours workload.Record, h workload.History, upTo int64, arrived map[string]int) {
	o.ControlStuck, _ = o.Control.Stuck(stuckAfter + o.Elected)
	if sc.Control == Stuck && o.ControlStuck == "" {
		o.Void = fmt.Sprintf("the official client was not stuck: lag %v, longest Get %v, no lease lost", o.Control.Lag, o.Control.GetMax)
	}
	if o.Still > stillMost {
		o.Void = fmt.Sprintf("the cluster itself stood still for %v: no client could have kept its leases", shown(o.Still))
	}
	o.consistent(ours, h, upTo, arrived)
	o.served(sc)
	o.left(sc)
}

// consistent checks what must hold whatever happens.
func (o *Outcome) consistent(ours workload.Record, h workload.History, upTo int64, arrived map[string]int) {
	want := workload.Between(h.Events, ours.StartRev, upTo)
	for _, w := range ours.Watches {
		o.Violations = append(o.Violations, workload.CheckWatch(w.Name, workload.Between(w.Events, ours.StartRev, upTo), want)...)
		if w.Closed != nil {
			o.violate("watch %s: %v", w.Name, w.Closed)
		}
	}
	for _, l := range ours.Leases {
		o.Violations = append(o.Violations, workload.CheckLease(l)...)
	}
	o.Violations = append(o.Violations, workload.CheckOnce(ours.Puts, h.Applied, arrived)...)
	o.Violations = append(o.Violations, workload.CheckReads(ours.Gets, ours.Puts)...)
}

// served checks what the user of our client must not have noticed.
func (o *Outcome) served(sc Scenario) {
	if o.Ours.GetsFailed > 0 {
		o.violate("%d of %d Gets failed; a read can always be sent again: %v", o.Ours.GetsFailed, o.Ours.Gets, o.Ours.Failures)
	}
	if o.Ours.PutsFailed > 0 {
		o.violate("%d Puts failed with an error that does not say that their outcome is unknown: %v", o.Ours.PutsFailed, o.Ours.Failures)
	}
	if sc.Control == Unharmed {
		o.unmoved()
	}
}

// unmoved checks that no stream left a member that was good. A keepalive that an
// election leaves unanswered may reopen its lease stream. Single calls may be sent
// again or given up: the leader was lost, whatever the members are.
func (o *Outcome) unmoved() {
	overdue := 0
	for kind, n := range o.Moves {
		switch {
		case kind.Class == "read" || kind.Class == "mutation":
		case kind.Class == "lease" && kind.Reason == client.ReasonKeepalive:
			overdue += n
		default:
			o.violate("%d moves of %s for %s; want none: no member was bad", n, kind.Class, kind.Reason)
		}
	}
	if o.Ours.WatchesReopened > 0 {
		o.violate("%d watch streams were opened again; want none: no member was bad", o.Ours.WatchesReopened)
	}
	if o.Ours.LeasesReopened > overdue {
		o.violate("%d lease streams were opened again, of which only %d for an overdue keepalive", o.Ours.LeasesReopened, overdue)
	}
}

// left checks how soon the member was left and, where wanted, used again.
func (o *Outcome) left(sc Scenario) {
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
			o.violate("%s after %s; want at most %v (%v after the election)", b.what, shown(b.got), limit.Round(time.Millisecond), b.max)
		}
	}
	if sc.Returns && (o.Ours.CallsBack == 0 || o.Ours.StreamsBack == 0) {
		o.violate("after the heal %d calls and %d streams went to the member; want both: it is good again", o.Ours.CallsBack, o.Ours.StreamsBack)
	}
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
