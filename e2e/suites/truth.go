//go:build linux

package suites

import (
	"slices"
	"sort"
	"time"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// truth is what the members really were, as the sampler saw them: by member, in order of
// time, a sample where anything has changed. In between a member was as the sample before
// says.
type truth map[string][]realetcd.Sample

func truthOf(samples []realetcd.Sample) truth {
	t := make(truth)
	for _, s := range samples {
		t[s.Member] = append(t[s.Member], s)
	}
	for _, ss := range t {
		slices.SortStableFunc(ss, func(a, b realetcd.Sample) int { return a.At.Compare(b.At) })
	}
	return t
}

// good says that a member in this state serves whatever it is asked.
func good(s realetcd.State) bool { return s == realetcd.Quorum || s == realetcd.Leader }

// at is what a member was at a moment; false before it was first seen.
func (t truth) at(member string, when time.Time) (realetcd.Sample, bool) {
	ss := t[member]
	after := sort.Search(len(ss), func(i int) bool { return ss[i].At.After(when) })
	if after == 0 {
		return realetcd.Sample{}, false
	}
	return ss[after-1], true
}

// goodAt says that a member was seen serving at a moment.
func (t truth) goodAt(member string, when time.Time) bool {
	s, ok := t.at(member, when)
	return ok && good(s.State)
}

// goodThrough says that a member was seen serving at every moment between two.
func (t truth) goodThrough(member string, from, to time.Time) bool {
	if !t.goodAt(member, from) {
		return false
	}
	for _, s := range t[member] {
		if s.At.After(from) && !s.At.After(to) && !good(s.State) {
			return false
		}
	}
	return true
}

// since is from when on, without a break until a moment, what a member was fits; zero where
// it does not at that moment.
func (t truth) since(member string, when time.Time, fits func(realetcd.Sample) bool) (from time.Time) {
	for _, s := range slices.Backward(t[member]) {
		switch {
		case s.At.After(when):
		case fits(s):
			from = s.At
		default:
			return from
		}
	}
	return from
}

// span is a stretch of time.
type span struct{ from, to time.Time }

// stretches parts the time between two moments where a member changed or a hurt began or
// ended: what held at the begin of one holds until its end.
func (t truth) stretches(hurts []Hurt, from, to time.Time) []span {
	begins := []time.Time{from, to}
	add := func(at time.Time) {
		if at.After(from) && at.Before(to) {
			begins = append(begins, at)
		}
	}
	for _, ss := range t {
		for _, s := range ss {
			add(s.At)
		}
	}
	for _, h := range hurts {
		add(h.From)
		add(h.To.Add(1)) // at To itself it still hurts
	}
	slices.SortFunc(begins, time.Time.Compare)
	parts := make([]span, 0, len(begins))
	for i, at := range begins[:len(begins)-1] {
		parts = append(parts, span{at, begins[i+1]})
	}
	return parts
}

// unserved are the stretches between two moments in which no member served that was well.
func (t truth) unserved(hurts []Hurt, from, to time.Time) []span {
	return slices.DeleteFunc(t.stretches(hurts, from, to), func(s span) bool {
		return t.anyGood(s.from, hurtNames(hurts, s.from, s.from)...)
	})
}

// worse returns for how long without a break, between two moments, a member did not serve
// while another one did.
func (t truth) worse(member string, from, to time.Time) time.Duration {
	var longest, d time.Duration
	for _, s := range t.stretches(nil, from, to) {
		if t.goodAt(member, s.from) || !t.anyGood(s.from, member) {
			d = 0
			continue
		}
		d += s.to.Sub(s.from)
		longest = max(longest, d)
	}
	return longest
}

// anyGood says that a member other than some served at a moment.
func (t truth) anyGood(when time.Time, but ...string) bool {
	for member := range t {
		if !slices.Contains(but, member) && t.goodAt(member, when) {
			return true
		}
	}
	return false
}

// during says whether a hurt lasted at some moment between two.
func (h Hurt) during(from, to time.Time) bool {
	return !h.From.After(to) && (h.To.IsZero() || !h.To.Before(from))
}

// hurtNames lists the members that are hurt, other than sparingly, at some moment between two.
func hurtNames(hurts []Hurt, from, to time.Time) []string {
	var names []string
	for _, h := range hurts {
		if h.Effect != Spares && h.during(from, to) {
			names = append(names, h.Member)
		}
	}
	return names
}

// flicker is the longest time for which a member may seem to serve in the midst of an
// election, or go on to seem so when one has begun: two looks of the sampler, and what an
// answer takes that does not come.
const flicker = 500 * time.Millisecond

// due is by when something must be over that a hurt bounds: within that time of the hurt
// or, where all members that are well lost their leader before, of the end of that.
func (t truth) due(h Hurt, hurts []Hurt, within time.Duration) time.Time {
	const longest = time.Minute // of what is looked at
	end, served := h.From.Add(longest), h.From
	if !h.To.IsZero() && h.To.Before(end) {
		end = h.To
	}
	for _, s := range t.unserved(hurts, h.From, end) {
		if s.from.Sub(served) > max(within, flicker) {
			break
		}
		served = s.to
	}
	return served.Add(within)
}

// election is how long after a hurt began the members that are well had not all lost and
// found a leader. 0: they served all the time.
func (t truth) election(h Hurt, hurts []Hurt) time.Duration {
	return t.due(h, hurts, 0).Sub(h.From)
}

// elections are the moments at which a member was first seen to serve in a new term.
func (t truth) elections() []time.Time {
	var all []realetcd.Sample
	for _, ss := range t {
		all = append(all, ss...)
	}
	slices.SortStableFunc(all, func(a, b realetcd.Sample) int { return a.At.Compare(b.At) })
	var when []time.Time
	var term uint64
	for _, s := range all {
		if !good(s.State) || s.Term <= term {
			continue
		}
		if term > 0 {
			when = append(when, s.At)
		}
		term = s.Term
	}
	return when
}

// moment is enough time for a member that serves to answer any call.
const moment = time.Second

// servable says that a call between two moments could have been answered: some member
// served for the last second of it, or all of it, and nothing was wrong with the member
// or with the way to it.
func (t truth) servable(hurts []Hurt, from, to time.Time) bool {
	if to.Sub(from) > moment {
		from = to.Add(-moment)
	}
	return t.servedThrough(hurts, from, to)
}

// servedThrough says likewise of some member and the whole time.
func (t truth) servedThrough(hurts []Hurt, from, to time.Time) bool {
	bad := hurtNames(hurts, from, to)
	for member := range t {
		if !slices.Contains(bad, member) && t.goodThrough(member, from, to) {
			return true
		}
	}
	return false
}
