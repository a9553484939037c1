package suites

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// stale is how long a sample is believed when no later one follows.
const stale = time.Second

// truth is what the members really were, as the sampler saw them.
type truth map[string][]realetcd.Sample // by member, in order of time

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

// at is the newest sample of a member that is not after a moment; false if there is none
// that can still be believed.
func (t truth) at(member string, when time.Time) (realetcd.Sample, bool) {
	ss := t[member]
	i, exact := slices.BinarySearchFunc(ss, when, func(s realetcd.Sample, w time.Time) int { return s.At.Compare(w) })
	for exact && i+1 < len(ss) && ss[i+1].At.Equal(when) {
		i++
	}
	if !exact {
		i--
	}
	if i < 0 || when.Sub(ss[i].At) > stale {
		return realetcd.Sample{}, false
	}
	return ss[i], true
}

// goodAt says that a member was seen serving at a moment.
func (t truth) goodAt(member string, when time.Time) bool {
	s, ok := t.at(member, when)
	return ok && good(s.State)
}

// goodThrough says that a member was seen serving at every moment between two.
func (t truth) goodThrough(member string, from, to time.Time) bool {
	if !t.goodAt(member, from) || !t.goodAt(member, to) {
		return false
	}
	for _, s := range t[member] {
		if !s.At.Before(from) && !s.At.After(to) && !good(s.State) {
			return false
		}
	}
	return true
}

// moments are the times of all samples between two moments, in order.
func (t truth) moments(from, to time.Time) []time.Time {
	var ms []time.Time
	for _, ss := range t {
		for _, s := range ss {
			if !s.At.Before(from) && !s.At.After(to) {
				ms = append(ms, s.At)
			}
		}
	}
	slices.SortFunc(ms, time.Time.Compare)
	return ms
}

// worse returns for how long without a break, between two moments, a member did not serve
// while another one did.
func (t truth) worse(member string, from, to time.Time) time.Duration {
	var longest time.Duration
	var since time.Time
	for _, m := range t.moments(from, to) {
		if t.goodAt(member, m) || !t.anyGood(m, member) {
			since = time.Time{}
			continue
		}
		if since.IsZero() {
			since = m
		}
		longest = max(longest, m.Sub(since))
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

// election is how long after a hurt began the members that are well still had not all
// lost nor found a leader: until the last moment at which none of them served. 0: they
// served all the time.
func (t truth) election(h Hurt, hurts []Hurt) time.Duration {
	end := h.From.Add(electionMost)
	if !h.To.IsZero() && h.To.Before(end) {
		end = h.To
	}
	var last time.Duration
	for _, m := range t.moments(h.From, end) {
		if !t.anyGood(m, hurtNames(hurts, m, m)...) {
			last = t.next(m).Sub(h.From)
		}
	}
	return last
}

// next is the time of the first sample after a moment.
func (t truth) next(when time.Time) time.Time {
	next := when
	for _, ss := range t {
		i, _ := slices.BinarySearchFunc(ss, when, func(s realetcd.Sample, w time.Time) int {
			return cmp.Or(s.At.Compare(w), -1) // after all that are equal
		})
		if i < len(ss) && (next.Equal(when) || ss[i].At.Before(next)) {
			next = ss[i].At
		}
	}
	return next
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
