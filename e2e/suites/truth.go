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

// goodFor is for how long a member had served without a break at a moment.
func (t truth) goodFor(member string, when time.Time) time.Duration {
	var d time.Duration
	for _, s := range slices.Backward(t[member]) {
		switch {
		case s.At.After(when):
		case good(s.State):
			d = when.Sub(s.At)
		default:
			return d
		}
	}
	return d
}

// stretches parts the time between two moments where anything changed: what held at the
// begin of one holds until the next.
func (t truth) stretches(from, to time.Time) []time.Time {
	begins := []time.Time{from}
	for _, ss := range t {
		for _, s := range ss {
			if s.At.After(from) && s.At.Before(to) {
				begins = append(begins, s.At)
			}
		}
	}
	slices.SortFunc(begins, time.Time.Compare)
	return append(begins, to)
}

// worse returns for how long without a break, between two moments, a member did not serve
// while another one did.
func (t truth) worse(member string, from, to time.Time) time.Duration {
	var longest, d time.Duration
	bounds := t.stretches(from, to)
	for i, begin := range bounds[:len(bounds)-1] {
		if t.goodAt(member, begin) || !t.anyGood(begin, member) {
			d = 0
			continue
		}
		d += bounds[i+1].Sub(begin)
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

// electionMost is how long after a fault a lack of any good member counts as the election
// that the fault caused.
const electionMost = 5 * time.Second

// election is how long after a hurt began the members that are well had not all lost and
// found a leader: until the last moment at which none of them served. 0: they served all
// the time.
func (t truth) election(h Hurt, hurts []Hurt) time.Duration {
	end := h.From.Add(electionMost)
	if !h.To.IsZero() && h.To.Before(end) {
		end = h.To
	}
	var last time.Duration
	bounds := t.stretches(h.From, end)
	for i, begin := range bounds[:len(bounds)-1] {
		if !t.anyGood(begin, hurtNames(hurts, begin, begin)...) {
			last = bounds[i+1].Sub(h.From)
		}
	}
	return last
}

// unserved is for how long altogether, between two moments, no member served that was well.
func (t truth) unserved(hurts []Hurt, from, to time.Time) time.Duration {
	var d time.Duration
	bounds := t.stretches(from, to)
	for i, begin := range bounds[:len(bounds)-1] {
		if !t.anyGood(begin, hurtNames(hurts, begin, begin)...) {
			d += bounds[i+1].Sub(begin)
		}
	}
	return d
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
