//go:build linux

package suites

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// brokenClaim begins the remark of a step that found something wrong, lateClaim that of
// one that found something not done in time, notShown that of one that found missing what the
// scenario needs to show anything. Steps say so in remarks and not in errors: an error means
// that the scenario could not be played.
const (
	brokenClaim = "violated: "
	lateClaim   = "not in time: "
	notShown    = "not shown: "
)

// claim remarks on what does not hold.
func (st *Stage) claim(holds bool, format string, args ...any) {
	if !holds {
		st.Note(brokenClaim+format, args...)
	}
}

// claimTiming remarks on what does not hold, and might on a machine that is not late.
func (st *Stage) claimTiming(holds bool, format string, args ...any) {
	if !holds {
		st.Note(lateClaim+format, args...)
	}
}

// premise remarks on what the scenario needs, else it shows nothing.
func (st *Stage) premise(holds bool, format string, args ...any) {
	if !holds {
		st.Note(notShown+format, args...)
	}
}

// brokenClaims and lateClaims are the violations that steps have remarked on.
func brokenClaims(e *Evidence) []string { return e.remarked(brokenClaim).texts() }
func lateClaims(e *Evidence) findings   { return e.remarked(lateClaim) }

func (e *Evidence) remarked(prefix string) (all findings) {
	for _, m := range e.Marks {
		if text, ok := strings.CutPrefix(m.Text, prefix); ok {
			all.add([]when{happened(e.Began.Add(m.At))}, "%s", text)
		}
	}
	return all
}

// claims joins judges.
func claims(judges ...func(*Evidence) findings) func(*Evidence) findings {
	return func(e *Evidence) (all findings) {
		for _, judge := range judges {
			all = append(all, judge(e)...)
		}
		return all
	}
}

// Grades of our client that no call may go to. The words are client.Health's.
const (
	gradeUnhealthy = "unhealthy"
	gradeParked    = "parked"
)

// ejection is a time in which our client used a member for nothing.
type ejection struct {
	From, To time.Time // To is zero where it lasted to the end
	Reason   string
}

// ejections are the times in which our client had given a member up. Suspicion that
// passed is none: it moves no stream.
func ejections(grades []app.Grade, endpoint string) []ejection {
	var all []ejection
	out := false
	for _, g := range grades {
		switch {
		case g.Endpoint != endpoint || g.Grade == "suspect":
		case !out && (g.Grade == gradeUnhealthy || g.Grade == gradeParked):
			out = true
			all = append(all, ejection{From: g.At, Reason: g.Reason})
		case out && g.Grade != gradeUnhealthy && g.Grade != gradeParked:
			out = false
			all[len(all)-1].To = g.At
		}
	}
	return all
}

// leftOnce demands one ejection of the target and, after the heal, one readmission.
func leftOnce(e *Evidence) (bad findings) {
	all := ejections(e.Ours.Grades, e.endpoint(e.Target))
	switch {
	case len(all) == 0:
		bad.add(nil, "the target was given up 0 times; want once")
	case len(all) > 1:
		bad.add(begins(all[1:]), "the target was given up %d times; want once, without going up and down: %s", len(all), e.spans(all))
	case all[0].To.IsZero():
		bad.add(nil, "the target was not taken back; want it back after the heal: %s", e.spans(all))
	case !e.Heal.IsZero() && all[0].To.Before(e.Heal):
		bad.add([]when{happened(all[0].To)}, "the target was taken back %v before the heal; want it out until it works: %s", e.Heal.Sub(all[0].To), e.spans(all))
	}
	return bad
}

// begins are when a member was given up.
func begins(all []ejection) (whens []when) {
	for _, out := range all {
		whens = append(whens, happened(out.From))
	}
	return whens
}

// nobodyLeft demands that no member is ever given up.
func nobodyLeft(e *Evidence) (bad findings) {
	for _, m := range e.Members {
		if all := ejections(e.Ours.Grades, m.Endpoint); len(all) > 0 {
			bad.add(begins(all), "%s was given up, in favour of one that is no better: %s", m.Name, e.spans(all))
		}
	}
	return bad
}

// shown prints ejections in time from the begin of the timeline.
func (e *Evidence) spans(all []ejection) string {
	var parts []string
	for _, out := range all {
		to := "the end"
		if !out.To.IsZero() {
			to = e.clock(out.To)
		}
		parts = append(parts, fmt.Sprintf("%s to %s (%s)", e.clock(out.From), to, out.Reason))
	}
	return strings.Join(parts, ", ")
}

// samples are those of one member between two moments, the one that held at the first
// of them included. There is a sample where anything changed.
func (e *Evidence) samples(member string, from, to time.Time) []realetcd.Sample {
	var some []realetcd.Sample
	for _, s := range truthOf(e.Samples)[member] {
		switch {
		case !s.At.Before(to):
			return some
		case !s.At.After(from):
			s.At = from
			some = []realetcd.Sample{s}
		default:
			some = append(some, s)
		}
	}
	return some
}

func notServing(s realetcd.Sample) bool { return strings.HasPrefix(s.Shim, realetcd.ShimNotServing) }

// sampled is how much later than the thing itself a sample may show it.
const sampled = 250 * time.Millisecond

// shimSaysNo demands that the target's shim says NOT_SERVING soon after the fault, and
// does not take it back before the heal.
func shimSaysNo(within time.Duration) func(*Evidence) findings {
	return func(e *Evidence) (bad findings) {
		during := e.samples(e.Target, e.Cut, e.Heal)
		i := slices.IndexFunc(during, notServing)
		if i < 0 {
			bad.add(nil, "the shim of %s never said NOT_SERVING while the fault lasted", e.Target)
			return bad
		}
		if took := during[i].At.Sub(e.Cut); took > within+sampled {
			bad.add([]when{{e.Cut, e.Cut.Add(within), during[i].At}}, "the shim of %s said NOT_SERVING after %v; want at most %v", e.Target, took, within)
		}
		for _, s := range during[i:] {
			if s.Shim == realetcd.ShimServing {
				bad.add([]when{happened(s.At)}, "the shim of %s said SERVING again %v after the fault, which still lasted", e.Target, s.At.Sub(e.Cut))
				break
			}
		}
		return bad
	}
}

// othersServe demands that all members but the target stay SERVING while the fault lasts.
func othersServe(e *Evidence) (bad findings) {
	for _, m := range e.Members {
		if m.Name == e.Target {
			continue
		}
		for _, s := range e.samples(m.Name, e.Cut, e.Heal) {
			if notServing(s) {
				bad.add([]when{happened(s.At)}, "the shim of %s said %q %v after the fault; want SERVING throughout: it has a leader and a quorum", m.Name, s.Shim, s.At.Sub(e.Cut))
			}
		}
	}
	return bad
}

// What leaderNamedAllTheSame wants of the target: that it named itself for so long without a
// break, from when the others have had the time to elect another until well before the heal.
const (
	namedFor   = 2 * time.Second
	namedFrom  = 2 * time.Second // after the fault
	namedUntil = time.Second     // before the heal
)

// leaderNamedAllTheSame shows that a check for a leader is not enough: the target goes on
// naming the one of before the fault while its shim knows better. Where it does not, the
// scenario has not shown it.
func leaderNamedAllTheSame(e *Evidence) (bad findings) {
	before, _ := truthOf(e.Samples).at(e.Target, e.Cut.Add(-1))
	from, to := e.Cut.Add(namedFrom), e.Heal.Add(-namedUntil)
	got := longest(e.samples(e.Target, from, to), to, func(s realetcd.Sample) bool {
		return notServing(s) && s.Leader != 0 && s.Leader == before.Leader
	})
	if got < namedFor {
		bad.miss("between %s and %s %s named itself for %v while its shim said NOT_SERVING; want %v without a break: else this does not show that a check of leader != 0 is fooled",
			e.clock(from), e.clock(to), e.Target, shown(got), namedFor)
	}
	return bad
}

// longest is for how long without a break one member's samples fit. Each holds until the
// next, the last one to the end.
func longest(some []realetcd.Sample, end time.Time, fits func(realetcd.Sample) bool) (most time.Duration) {
	var since time.Time
	for i, s := range some {
		switch {
		case !fits(s):
			since = time.Time{}
			continue
		case since.IsZero():
			since = s.At
		}
		until := end
		if i+1 < len(some) {
			until = some[i+1].At
		}
		most = max(most, until.Sub(since))
	}
	return most
}

// leftOnceBad demands that nothing of ours is on the target any more this long after it was
// first seen to serve no longer: for members that go on for a while after they were told
// to go.
func leftOnceBad(within time.Duration) func(*Evidence) findings {
	return func(e *Evidence) (bad findings) {
		during := e.samples(e.Target, e.Cut, e.Ended)
		i := slices.IndexFunc(during, func(s realetcd.Sample) bool { return !good(s.State) })
		if i < 0 {
			bad.miss("%s never stopped serving: there was nothing to leave", e.Target)
			return bad
		}
		latest := during[i].At.Add(within + sampled)
		for _, a := range e.Ours.Attempts {
			until := a.Ended
			if until.IsZero() {
				until = e.Ended
			}
			if a.Address == e.endpoint(e.Target) && until.After(latest) {
				bad.add([]when{{during[i].At, latest, until}}, "%s on %s from %s to %s; want nothing there after %s, it was %s from %s on",
					a.Method, e.Target, e.clock(a.Began), e.clock(until), e.clock(latest), during[i].State, e.clock(during[i].At))
				break
			}
		}
		return bad
	}
}

// learnerUnused demands that no call and no stream went to the learner before it had
// its vote.
func learnerUnused(e *Evidence) []string {
	endpoint, promoted := "", time.Time{}
	for _, m := range e.Marks {
		if text, ok := strings.CutPrefix(m.Text, learnerJoined); ok {
			endpoint = text
		}
		if strings.HasPrefix(m.Text, learnerPromoted) {
			promoted = e.Began.Add(m.At)
		}
	}
	early := slices.ContainsFunc(e.Ours.Attempts, func(a workload.Attempt) bool { return a.Address == endpoint && a.Began.Before(promoted) })
	later := slices.ContainsFunc(e.Ours.Attempts, func(a workload.Attempt) bool { return a.Address == endpoint && !a.Began.Before(promoted) })
	switch {
	case early:
		return []string{"calls went to the learner before it had its vote; want none: it refuses them"}
	case !later:
		return []string{"no call went to the learner after it got its vote; want it used like the others"}
	}
	return nil
}

// Remarks between which noStreamMoved looks.
const (
	quotaUsedUp = "the quota is used up"
	quotaFreed  = "compact and defragment"
)

// noStreamMoved demands that no stream of ours was moved for a verdict while the quota was
// used up: there was nowhere better to go.
func noStreamMoved(e *Evidence) (bad findings) {
	full := slices.IndexFunc(e.Marks, func(m report.Mark) bool { return m.Text == quotaUsedUp })
	freed := slices.IndexFunc(e.Marks, func(m report.Mark) bool { return m.Text == quotaFreed })
	if full < 0 || freed < 0 {
		bad.miss("the quota was not used up and freed again")
		return bad
	}
	for _, m := range verdicts(e.Ours.Moves) {
		if d := m.At.Sub(e.Began); d < e.Marks[full].At || d > e.Marks[freed].At {
			continue
		}
		bad.add([]when{happened(m.At)}, "a %s left %s for %s at %s; want no move: the others are no better", m.Class, e.member(m.Endpoint), m.Reason, e.clock(m.At))
	}
	return bad
}

// share is the least part of an even share of the streams that a member must have back.
const share = 0.5

// streamsSpread demands that at the end every member carries its share of our watch
// streams, and that each of them is open once.
func streamsSpread(e *Evidence) (bad findings) {
	before, after := e.watching(e.Ours.Load.Began.Add(time.Second)), e.watching(e.Ended)
	all, by := 0, make(map[string]int)
	for _, addresses := range after {
		for _, address := range addresses {
			by[address]++
			all++
		}
	}
	for _, name := range sorted(before) {
		if n := len(after[name]); n != 1 {
			bad.add(nil, "watch stream %s is open %d times in the end; want it once", name, n)
		}
	}
	for _, m := range e.Members {
		if even := float64(all) / float64(len(e.Members)); float64(by[m.Endpoint]) < share*even {
			bad.add(nil, "%s carries %d of %d watch streams in the end; want at least %.0f: its share comes back within the rebalance time", m.Name, by[m.Endpoint], all, share*even)
		}
	}
	return bad
}

// watching lists where each watch stream of ours that has a name is open at a moment. The
// others are those of recipes, which come and go.
func (e *Evidence) watching(at time.Time) map[string][]string {
	open := make(map[string][]string)
	for _, a := range e.Ours.Attempts {
		if a.Method == workload.MethodWatch && a.Watch != "" && !a.Began.After(at) && (a.Ended.IsZero() || a.Ended.After(at)) {
			open[a.Watch] = append(open[a.Watch], a.Address)
		}
	}
	return open
}
