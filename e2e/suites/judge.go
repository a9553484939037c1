//go:build linux

package suites

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// returns is how long a member must have been good, at the latest, when calls go to it
// again. One whose process was ended has to be connected to again, and connection
// attempts back off.
var returns = map[Effect]time.Duration{Isolates: 2 * time.Second, Silences: 2 * time.Second, Ends: 6 * time.Second}

// lateMost is how late the machine may let the harness wake up before a missed bound of
// time says nothing about anybody but the machine.
const lateMost = 100 * time.Millisecond

// Verdict is what the judge says of a scenario.
type Verdict struct {
	Status       report.Status
	Reason       string   // unless passed
	Violations   []string // of ours
	Notes        []string
	Illustration []byte // HTML of a history of ours without an order; nil: there is none
	// Luck says of a void scenario that neither client is the reason: the machine was
	// late, or the cluster took long to find a leader. Played again it may tell.
	Luck bool
}

// Judge decides. It changes nothing.
func (e *Evidence) Judge() (v Verdict) {
	defer func() {
		if r := recover(); r != nil {
			v.Status, v.Reason = report.Broken, fmt.Sprintf("a checker crashed: %v\n%s", r, debug.Stack())
		}
	}()
	ours := e.consistent("ours", e.Ours)
	v.Illustration = ours.illustration
	v.Violations = slices.Concat(ours.violations, e.tidy(e.Ours), e.Crashed)
	v.Violations = append(v.Violations, e.claimed(e.Scenario.Judge)...)
	timing := slices.Concat(e.served(), e.left(), e.unmoved(), e.claimed(e.Scenario.Timing))
	control := e.consistent("control", e.Control)
	v.remark(e, control)
	if len(v.Violations) == 0 && len(timing) > 0 && e.Lateness.Worst > lateMost {
		v.Luck = true
		v.Status, v.Reason = report.Void, fmt.Sprintf("the machine was late by up to %s: it tells nothing about who was in time", shown(e.Lateness.Worst))
		for _, line := range timing {
			v.note("in doubt: %s", line)
		}
		return v
	}
	v.Violations = append(v.Violations, timing...)
	v.Status, v.Reason = e.status(v.Violations, ours)
	v.Luck = v.Status == report.Void && (e.Lateness.Worst > lateMost || e.still() > e.stillMost())
	return v
}

// blind says what was not seen, without which the judge would pass anything.
func (e *Evidence) blind() string {
	good := false
	seen := make(map[string]bool)
	for _, s := range e.Samples {
		seen[s.Member] = true
		good = good || s.State == realetcd.Quorum || s.State == realetcd.Leader
	}
	switch unseen := slices.IndexFunc(e.Members, func(m MemberFacts) bool { return !seen[m.Name] }); {
	case len(e.Members) == 0:
		return "no member is known"
	case unseen >= 0:
		return "nobody knows what member " + e.Members[unseen].Name + " was: it was never sampled"
	case !good:
		return "no member was ever seen with a quorum"
	case e.Scenario.Control == Stuck && len(e.Hurts) == 0:
		return "nothing was inflicted on any member"
	case len(e.Reference) == 0 || len(e.History.Events) == 0:
		return "nothing was written that watches could have missed"
	}
	return ""
}

// claimed asks what only the scenario claims.
func (e *Evidence) claimed(claims func(*Evidence) []string) []string {
	if claims == nil {
		return nil
	}
	return claims(e)
}

// status is decided by the worst that happened.
func (e *Evidence) status(violations []string, ours consistency) (report.Status, string) {
	control, still := e.measured(e.Control), e.still()
	switch {
	case len(violations) > 0:
		return report.Failed, ""
	case e.Died["control"] != "":
		return report.Broken, "the control's application died: " + e.Died["control"]
	case ours.undecided != "":
		return report.Broken, ours.undecided
	case e.blind() != "":
		return report.Broken, e.blind()
	case still > e.stillMost() && e.Scenario.Control == Stuck:
		return report.Void, fmt.Sprintf("the cluster itself stood still for %v: no client could have kept its leases", shown(still))
	case e.Scenario.Control == Stuck && e.stuck(control) == "":
		return report.Void, fmt.Sprintf("the official client was not stuck: lag %v, longest Get %v, no lease lost", shown(control.Lag), shown(control.GetMax))
	default:
		return report.Passed, ""
	}
}

// stillMost is how long a cluster may be without a leader before what its clients lose is
// its own doing: the time to live of a lease, less the third that may have passed since
// its last keepalive.
func (e *Evidence) stillMost() time.Duration { return e.leaseTTL() * 2 / 3 }

// still is the longest time in which no write went through at all. Nobody's silence
// is shorter than the cluster's.
func (e *Evidence) still() time.Duration {
	return min(workload.Silence(e.Reference, e.Ours.Load.Began, e.Ours.Load.Ended), e.measured(e.Ours).Silence, e.measured(e.Control).Silence)
}

// remark notes what is no violation of ours.
func (v *Verdict) remark(e *Evidence, control consistency) {
	const most = 5
	for i, line := range control.violations {
		if i == most {
			v.note("control: and %d more", len(control.violations)-most)
			break
		}
		v.note("control: %s", line)
	}
	if control.undecided != "" {
		v.note("control: %s", control.undecided)
	}
	for _, l := range e.revoked(e.Ours.Load.Leases) {
		gone, left := workload.RevokedEarly(l)
		v.note("lease %s was revoked by a server at %s with %s left: a leader that had stood still went on", l.Name, e.clock(gone), shown(left))
	}
	if d := e.election(); d > 0 {
		v.note("no well member served for %s after the fault", shown(d))
	}
	if still := e.still(); still > e.stillMost() {
		v.note("no write went through for %s", shown(still))
	}
	for _, g := range e.grouped(e.doubtfulMoves()) {
		v.note("%s; the member was slow", g)
	}
}

func (v *Verdict) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

// served says what the user of our client must not have noticed: calls that failed for
// certain although another member would have served them. A caller with less patience than
// the budget has given up before it could be helped.
func (e *Evidence) served() []string {
	var bad lines
	t := truthOf(e.Samples)
	n, failed := make(map[string]int), make(map[string][]call)
	for _, c := range calls(e.Ours, e.Ours.Load.Began) {
		n[c.class]++
		tooSoon := c.gaveUp && c.took() < patience+e.Scenario.Budget.Calls
		if c.failed && !c.handover && !tooSoon && t.servable(e.Hurts, c.from, c.to) {
			failed[c.class] = append(failed[c.class], c)
		}
	}
	for _, class := range sorted(failed) {
		first := failed[class][0]
		bad.add("%d of %d %ss failed while another member served, the first from %s to %s; errors: %s", len(failed[class]), n[class], class,
			e.clock(first.from), e.clock(first.to), errorsOf(failed[class]))
	}
	return bad
}

// patience is how long a caller must have waited, besides the budget of calls, before it
// could say that it was not helped.
const patience = 500 * time.Millisecond

// errorsOf are those of failed calls, with how often each was seen.
func errorsOf(failed []call) string {
	n := make(map[string]int)
	for _, c := range failed {
		n[c.err]++
	}
	var text lines
	for _, err := range sorted(n) {
		text.add("%d times %q", n[err], err)
	}
	return text.join(", ", 3)
}

// left checks how soon each member that suffered was left and, where it came back, used
// again.
func (e *Evidence) left() []string {
	var bad lines
	t := truthOf(e.Samples)
	for _, h := range e.Hurts {
		if !h.left() || !e.elsewhere(h) {
			continue
		}
		f, election := e.leaving(e.Ours, h), t.election(h, e.Hurts)
		for _, b := range []struct {
			what     string
			got, max time.Duration
		}{
			{"the last new call went to " + h.Member, f.LastCall, e.Scenario.Budget.Calls},
			{"the last read on " + h.Member + " ended", f.LastRead, e.Scenario.Budget.Calls},
			{"the last stream left " + h.Member, f.LastStream, e.Scenario.Budget.Streams},
		} {
			if limit := b.max + election; b.max > 0 && b.got > limit+grain(election) {
				bad.add("%s %s after %s; want at most %s (%s after the election)", b.what, shown(b.got), h.What, shown(limit), shown(b.max))
			}
		}
	}
	if lag := e.measured(e.Ours).Lag; e.Scenario.Budget.Lag > 0 && lag > e.Scenario.Budget.Lag+e.election() {
		bad.add("the watches fell behind by %s; want at most %s", shown(lag), shown(e.Scenario.Budget.Lag+e.election()))
	}
	return append(bad, e.returned()...)
}

// grain is how much later than the sampler saw it an election may have ended: a question
// that was asked before is answered after.
func grain(election time.Duration) time.Duration {
	if election == 0 {
		return 0
	}
	return sampleEvery
}

// returned checks that members which suffered are used again once they are good.
func (e *Evidence) returned() []string {
	var bad lines
	t := truthOf(e.Samples)
	calls, streams := 0, 0
	due, hurt := false, false
	for _, h := range e.Hurts {
		if h.left() {
			c, s := e.back(e.Ours, h)
			calls, streams, hurt = calls+c, streams+s, true
			due = due || t.goodFor(h.Member, e.Ended) >= returns[h.Effect]
		}
	}
	if e.Heal.IsZero() || !hurt {
		return nil
	}
	if calls == 0 && (due || e.Scenario.Returns) {
		bad.add("no call went to the member in %s after the heal; want some: it is good again", shown(e.Ended.Sub(e.Heal)))
	}
	if streams == 0 && e.Scenario.Returns {
		bad.add("no stream went to the member in %s after the heal; want some: it is good again", shown(e.Ended.Sub(e.Heal)))
	}
	return bad
}

// unmoved checks that no stream left a member that was good. A keepalive that an election
// leaves unanswered may reopen its lease stream. Single calls may be sent again or given
// up: the leader was lost, whatever the members are.
func (e *Evidence) unmoved() []string {
	var bad lines
	if e.Scenario.Control != Unharmed {
		for _, g := range e.grouped(e.falseMoves(e.Ours)) {
			bad.add("false move: %s, and the member was good", g)
		}
		return bad
	}
	overdue := 0
	var others []app.Move
	for _, m := range e.Ours.Moves {
		switch {
		case !streamMove(m):
		case m.Reason == client.ReasonKeepalive:
			overdue++
		default:
			others = append(others, m)
		}
	}
	for _, g := range e.grouped(others) {
		bad.add("%s; want no move: no member was bad", g)
	}
	watches, leases := e.reopened(e.Ours)
	if watches > 0 {
		bad.add("%d watch streams were opened again; want none: no member was bad", watches)
	}
	if leases > overdue {
		bad.add("%d lease streams broke, of which only %d for an overdue keepalive", leases, overdue)
	}
	return bad
}

// grouped says in a line each what left which member for what, and when first and last.
func (e *Evidence) grouped(moves []app.Move) []string {
	type kind struct{ class, member, reason string }
	var kinds []kind
	times := make(map[kind][]time.Time)
	for _, m := range moves {
		k := kind{m.Class, e.member(m.Endpoint), m.Reason}
		if times[k] == nil {
			kinds = append(kinds, k)
		}
		times[k] = append(times[k], m.At)
	}
	var all lines
	for _, k := range kinds {
		first, last := times[k][0], times[k][len(times[k])-1]
		switch n := len(times[k]); n {
		case 1:
			all.add("a %s left %s for %s at %s", k.class, k.member, k.reason, e.clock(first))
		default:
			all.add("%d times a %s left %s for %s from %s to %s", n, k.class, k.member, k.reason, e.clock(first), e.clock(last))
		}
	}
	return all
}

// streamMove says that a move is that of a stream, not of a call.
func streamMove(m app.Move) bool {
	return m.Class == "watch" || m.Class == "lease" || m.Class == "stream"
}

const (
	// aftermath is how long after its fault a member may still be left for it.
	aftermath = time.Second
	// worseFor is how long a member must have been seen worse than another one before
	// leaving it is no false move.
	worseFor = 250 * time.Millisecond
)

// verdicts are the moves of streams that a verdict on the member stands behind.
func verdicts(moves []app.Move) []app.Move {
	var ms []app.Move
	for _, m := range moves {
		other := m.Reason == client.ReasonDrift || m.Reason == client.ReasonKeepalive || m.Reason == client.ReasonEndpointRemoved
		if streamMove(m) && !other {
			ms = append(ms, m)
		}
	}
	return ms
}

// falseMoves are moves of streams off members that were good: nothing had been done to the
// member, and the sampler saw it serve, or saw that nobody else did either.
func (e *Evidence) falseMoves(rec app.Record) []app.Move {
	var ms []app.Move
	t := truthOf(e.Samples)
	for _, m := range verdicts(rec.Moves) {
		if !e.suffered(m) && t.worse(e.member(m.Endpoint), m.At.Add(-2*aftermath), m.At) < worseFor {
			ms = append(ms, m)
		}
	}
	return ms
}

// doubtfulMoves are moves off members that merely were slow.
func (e *Evidence) doubtfulMoves() []app.Move {
	var ms []app.Move
	for _, m := range verdicts(e.Ours.Moves) {
		for _, h := range e.Hurts {
			if h.Member == e.member(m.Endpoint) && h.Effect == Slows && h.during(m.At.Add(-aftermath), m.At) {
				ms = append(ms, m)
				break
			}
		}
	}
	return ms
}

// suffered says that something was done to a member that a stream was moved off.
func (e *Evidence) suffered(m app.Move) bool {
	return slices.ContainsFunc(e.Hurts, func(h Hurt) bool {
		return h.Effect != Spares && h.Member == e.member(m.Endpoint) && h.during(m.At.Add(-aftermath), m.At)
	})
}

// tidy checks that an application left nothing behind.
func (e *Evidence) tidy(rec app.Record) []string {
	var bad lines
	l := rec.Leaks
	if l.Goroutines[1] > l.Goroutines[0] {
		bad.add("%d goroutines before the client was made and %d after it was closed:\n%s", l.Goroutines[0], l.Goroutines[1], l.Stacks)
	}
	if l.Descriptors[1] > l.Descriptors[0] {
		bad.add("%d open files before the client was made and %d after it was closed", l.Descriptors[0], l.Descriptors[1])
	}
	if len(l.Connections) > 0 {
		bad.add("connections are left after the client was closed: %v", l.Connections)
	}
	if n := e.Connected[rec.Name]; n > 0 {
		bad.add("members still hold %d connections of the application's host after it ended", n)
	}
	return bad
}

func (e *Evidence) clock(at time.Time) string { return shown(at.Sub(e.Began)) }
