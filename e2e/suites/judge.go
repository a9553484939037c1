//go:build linux

package suites

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

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
	if e.Scenario.Judge != nil {
		v.Violations = append(v.Violations, e.Scenario.Judge(e)...)
	}
	if ours.excused > 0 {
		v.note("%d mutations came twice because a server that stopped had not processed them, and gRPC sent them again", ours.excused)
	}
	v.remark(e, e.consistent("control", e.Control))
	doubts, missed := v.weigh(e, e.timing())
	v.Status, v.Reason = e.status(v.Violations, ours)
	if v.Status == report.Passed && missed != "" {
		v.Status, v.Reason = report.Void, missed
	}
	if v.Status == report.Passed && doubts {
		v.Status, v.Reason = report.Void, fmt.Sprintf("the machine was late by up to %s when something was due: it tells nothing about who was in time", shown(e.Lateness.Worst))
	}
	v.Luck = v.Status == report.Void && (doubts || e.stalledMeanwhile() || e.still() > e.stillMost())
	return v
}

// timing is what was not in time, what moved that should have stayed, and what was missing.
func (e *Evidence) timing() findings {
	all := slices.Concat(e.served(), e.waited(), e.left(), e.returned(), e.unmoved())
	if e.Scenario.Timing != nil {
		all = append(all, e.Scenario.Timing(e)...)
	}
	for _, f := range e.remarked(notShown) {
		all.miss("%s", f.text)
	}
	return all
}

// weigh takes findings for violations, but for those that the machine may be the reason
// of, and what was missing: these it notes. Of the latter it returns the first.
func (v *Verdict) weigh(e *Evidence, fs findings) (doubts bool, missed string) {
	for _, f := range fs {
		switch {
		case f.missed:
			missed = cmp.Or(missed, f.text)
			v.note(notShown+"%s", f.text)
		case e.excused(f):
			doubts = true
			v.note("in doubt: %s", f.text)
		default:
			v.Violations = append(v.Violations, f.text)
		}
	}
	return doubts, missed
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
	case len(e.Uncounted) > 0:
		return strings.Join(e.Uncounted[:min(3, len(e.Uncounted))], "; ")
	case e.miscounted() != "":
		return e.miscounted()
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
	case e.Scenario.Control == Suffers && e.harm(e.Control) == "":
		return report.Void, fmt.Sprintf("the official client suffered nothing: no call failed or waited for longer than %v, nothing was lost", harmedAfter)
	case e.unfelt() != "":
		return report.Void, e.unfelt()
	default:
		return report.Passed, ""
	}
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
	if e.Scenario.Control.NoHarm() && e.harm(e.Control) == "" {
		v.note("the official client suffered nothing: this is marked as a no-harm scenario")
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
		v.note("%s; the member was slow", g.text)
	}
}

func (v *Verdict) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

func (e *Evidence) clock(at time.Time) string { return shown(at.Sub(e.Began)) }
