package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// watched is what a correct watch delivers of a truth, in answers of random size, with
// progress notices in between.
func watched(rng *rand.Rand, s Stream, truth Truth) Stream {
	var mine []transaction
	last := make(map[string]string)
	for _, t := range transactions(truth.Changes) {
		var some []Change
		for _, c := range t.changes {
			if before := last[c.Key]; s.PrevKV && before != "" {
				c.Previous = &before
			} else {
				c.Previous = nil
			}
			last[c.Key] = c.Value
			inside := c.Key == s.Key || s.End != "" && c.Key >= s.Key && (s.End == "\x00" || c.Key < s.End)
			if inside && (c.Deleted && s.Deletes || !c.Deleted && s.Puts) && c.Revision >= s.From {
				some = append(some, c)
			}
		}
		if len(some) > 0 {
			mine = append(mine, transaction{t.revision, some})
		}
	}
	for len(mine) > 0 {
		n := 1 + rng.IntN(min(3, len(mine)))
		r := Response{Revision: mine[n-1].revision}
		for _, t := range mine[:n] {
			r.Changes = append(r.Changes, t.changes...)
		}
		mine = mine[n:]
		next := truth.Upto + 1
		if len(mine) > 0 {
			next = mine[0].revision
		}
		if r.Revision += rng.Int64N(next - r.Revision); s.Progress && rng.IntN(3) == 0 {
			s.Responses = append(s.Responses, r, Response{Revision: next - 1})
			continue
		}
		s.Responses = append(s.Responses, r)
	}
	s.Upto = truth.Upto
	return s
}

func anyStream(rng *rand.Rand, truth Truth) Stream {
	s := Stream{Name: "w", From: 2 + rng.Int64N(truth.Upto/4), Puts: true, Deletes: true, PrevKV: rng.IntN(2) == 0, Fragment: rng.IntN(2) == 0, Progress: rng.IntN(2) == 0}
	switch rng.IntN(3) {
	case 0:
		s.Key, s.End = "g0/", "g00"
	case 1:
		s.Key, s.End = "\x00", "\x00"
	default:
		s.Key = "g0/k0"
	}
	switch rng.IntN(4) {
	case 0:
		s.Puts = false
	case 1:
		s.Deletes = false
	}
	return s
}

func TestStreamOfACorrectStoreIsClean(t *testing.T) {
	rng := dice(t)
	for range 200 {
		_, truth := crowd{groups: 2, callers: 3, ops: 30, keys: 3, unknown: 0.1}.play(rng)
		s := watched(rng, anyStream(rng, truth), truth)
		if bad := CheckStream(s, truth); len(bad) > 0 {
			t.Fatalf("%+v: %q, want a correct watch passed", s, bad)
		}
	}
}

// spoilers are what can go wrong with a watch. Each returns false where there is nothing
// in a stream that it can spoil.
var spoilers = map[string]func(*rand.Rand, *Stream) bool{
	"drop an answer": func(rng *rand.Rand, s *Stream) bool {
		i, ok := withChanges(rng, s, 1)
		if ok {
			s.Responses = slices.Delete(s.Responses, i, i+1)
		}
		return ok
	},
	"drop a change": func(rng *rand.Rand, s *Stream) bool {
		i, ok := withChanges(rng, s, 1)
		if ok {
			r := &s.Responses[i]
			j := rng.IntN(len(r.Changes))
			r.Changes = slices.Delete(slices.Clone(r.Changes), j, j+1)
			if len(r.Changes) == 0 {
				s.Responses = slices.Delete(s.Responses, i, i+1)
			}
		}
		return ok
	},
	"deliver an answer twice": func(rng *rand.Rand, s *Stream) bool {
		i, ok := withChanges(rng, s, 1)
		if ok {
			j := i + rng.IntN(len(s.Responses)-i)
			s.Responses = slices.Insert(s.Responses, j+1, s.Responses[i])
		}
		return ok
	},
	"swap two answers": func(rng *rand.Rand, s *Stream) bool {
		i, ok := withChanges(rng, s, 1)
		j, also := withChanges(rng, s, 1)
		if !ok || !also || i == j {
			return false
		}
		s.Responses[i], s.Responses[j] = s.Responses[j], s.Responses[i]
		return true
	},
	"split a transaction": func(rng *rand.Rand, s *Stream) bool {
		for i, r := range s.Responses {
			for j := 1; j < len(r.Changes); j++ {
				if r.Changes[j].Revision == r.Changes[j-1].Revision {
					first, second := r, r
					first.Changes, second.Changes = r.Changes[:j], r.Changes[j:]
					s.Responses = slices.Replace(s.Responses, i, i+1, first, second)
					return true
				}
			}
		}
		return false
	},
	"turn a transaction round": func(rng *rand.Rand, s *Stream) bool {
		for i, r := range s.Responses {
			if len(r.Changes) > 1 {
				s.Responses[i].Changes = slices.Clone(r.Changes)
				slices.Reverse(s.Responses[i].Changes)
				return true
			}
		}
		return false
	},
	"promise too much": func(rng *rand.Rand, s *Stream) bool {
		i, ok := withChanges(rng, s, 1)
		if ok {
			s.Progress = true
			s.Responses = slices.Insert(s.Responses, i, Response{Revision: s.Responses[i].Changes[0].Revision})
		}
		return ok
	},
	"change a value": func(rng *rand.Rand, s *Stream) bool {
		return withChange(rng, s, func(c *Change) { c.Value += "?" })
	},
	"change where it was created": func(rng *rand.Rand, s *Stream) bool {
		return withChange(rng, s, func(c *Change) { c.Create-- })
	},
	"change the version": func(rng *rand.Rand, s *Stream) bool {
		return withChange(rng, s, func(c *Change) { c.Version++ })
	},
	"change the value before": func(rng *rand.Rand, s *Stream) bool {
		wrong := "?"
		return withChange(rng, s, func(c *Change) { c.Previous = &wrong })
	},
	"change the key": func(rng *rand.Rand, s *Stream) bool {
		return withChange(rng, s, func(c *Change) { c.Key += "!" })
	},
	"change the kind": func(rng *rand.Rand, s *Stream) bool {
		return withChange(rng, s, func(c *Change) { c.Deleted = !c.Deleted })
	},
	"change the revision": func(rng *rand.Rand, s *Stream) bool {
		return withChange(rng, s, func(c *Change) { c.Revision++ })
	},
	"age an answer": func(rng *rand.Rand, s *Stream) bool {
		i, ok := withChanges(rng, s, 1)
		if ok {
			s.Responses[i].Revision = s.Responses[i].Changes[0].Revision - 1
		}
		return ok
	},
	"close it": func(rng *rand.Rand, s *Stream) bool {
		s.Closed = "no leader"
		return true
	},
}

// withChanges picks an answer that has at least n changes.
func withChanges(rng *rand.Rand, s *Stream, n int) (int, bool) {
	var some []int
	for i, r := range s.Responses {
		if len(r.Changes) >= n {
			some = append(some, i)
		}
	}
	if len(some) == 0 {
		return 0, false
	}
	return some[rng.IntN(len(some))], true
}

func withChange(rng *rand.Rand, s *Stream, do func(*Change)) bool {
	i, ok := withChanges(rng, s, 1)
	if ok {
		s.Responses[i].Changes = slices.Clone(s.Responses[i].Changes)
		do(&s.Responses[i].Changes[rng.IntN(len(s.Responses[i].Changes))])
	}
	return ok
}

func TestAnySpoiltStreamIsCaught(t *testing.T) {
	rng := dice(t)
	for what, spoil := range spoilers {
		caught := 0
		for range 30 {
			_, truth := crowd{groups: 2, callers: 3, ops: 15, keys: 3, unknown: 0.1}.play(rng)
			s := watched(rng, anyStream(rng, truth), truth)
			if !spoil(rng, &s) {
				continue
			}
			bad := CheckStream(s, truth)
			if len(bad) == 0 {
				t.Fatalf("%s: nothing was found in %+v\ntruth %+v", what, s, truth)
			}
			caught++
		}
		if caught < 5 {
			t.Errorf("%s: only %d of 30 streams could be spoilt", what, caught)
		}
	}
}

// watch is a small watch to spoil, with previous values and a notice, of the truth that
// plant makes.
func watch() Stream {
	a, b, d := "a/0", "b/0", "d/0"
	return Stream{Name: "w", Key: "k", End: "m", From: 4, Puts: true, Deletes: true, PrevKV: true, Progress: true, Upto: 12, Responses: []Response{
		{Revision: 5, Changes: []Change{{Revision: 5, Key: "k", Value: a, Create: 5, Version: 1}}},
		{Revision: 6, Changes: []Change{
			{Revision: 6, Key: "k", Value: b, Create: 5, Version: 2, Previous: &a},
			{Revision: 6, Key: "l", Value: "b/1", Create: 6, Version: 1},
		}},
		{Revision: 7},
		{Revision: 10, Changes: []Change{
			{Revision: 8, Key: "k", Value: d, Create: 5, Version: 3, Previous: &b},
			{Revision: 9, Key: "k", Deleted: true, Previous: &d},
		}},
	}}
}

func TestCheckStreamCatchesPlantedViolations(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Stream, *Truth)
		want  string
	}{
		{"nothing", func(*Stream, *Truth) {}, ""},
		{"an event lost", func(s *Stream, _ *Truth) { s.Responses = s.Responses[1:] }, `watch w never got revision 5 ("k" = "a/0")`},
		{"the end missing", func(s *Stream, _ *Truth) { s.Responses = s.Responses[:3] }, `watch w never got revision 9 (delete "k")`},
		{"the end missing, beyond what it had time for", func(s *Stream, _ *Truth) { s.Responses, s.Upto = s.Responses[:3], 7 }, ""},
		{"a gap before the last, beyond what it had time for", func(s *Stream, _ *Truth) { s.Responses, s.Upto = slices.Delete(s.Responses, 1, 2), 5 },
			`watch w never got revision 6 ("k" = "b/0", "l" = "b/1")`},
		{"an event twice", func(s *Stream, _ *Truth) { s.Responses = slices.Insert(s.Responses, 1, s.Responses[0]) }, `watch w got revision 5 ("k" = "a/0") 2 times`},
		{"out of order", func(s *Stream, _ *Truth) { s.Responses[0], s.Responses[1] = s.Responses[1], s.Responses[0] },
			`watch w got revision 5 ("k" = "a/0") after 6: out of order`},
		{"a transaction split", func(s *Stream, _ *Truth) {
			first, second := s.Responses[1], s.Responses[1]
			first.Changes, second.Changes = first.Changes[:1], second.Changes[1:]
			s.Responses = slices.Replace(s.Responses, 1, 2, first, second)
		}, `watch w got revision 6 split over 2 answers: a transaction is no longer whole`},
		{"a transaction split in fragments that nobody joined", func(s *Stream, _ *Truth) {
			s.Fragment = true
			first, second := s.Responses[1], s.Responses[1]
			first.Changes, second.Changes = first.Changes[:1], second.Changes[1:]
			s.Responses = slices.Replace(s.Responses, 1, 2, first, second)
		}, `watch w got revision 6 split over 2 answers`},
		{"half of a transaction", func(s *Stream, _ *Truth) { s.Responses[1].Changes = s.Responses[1].Changes[:1] }, `watch w got revision 6 without its put of "l"`},
		{"a transaction turned round", func(s *Stream, _ *Truth) { slices.Reverse(s.Responses[1].Changes) }, `watch w got in revision 6 a put of "l" where a put of "k" stands`},
		{"more than happened", func(s *Stream, _ *Truth) {
			s.Responses[0].Changes = append(s.Responses[0].Changes, Change{Revision: 5, Key: "l", Value: "?", Create: 5, Version: 1})
		}, `watch w got in revision 5 one more put of "l" than happened`},
		{"a notice ahead of an event", func(s *Stream, _ *Truth) { s.Responses[2].Revision = 8 },
			`watch w got revision 8 ("k" = "d/0") after a progress notice had promised everything up to 8`},
		{"a notice that nobody asked for", func(s *Stream, _ *Truth) { s.Progress = false }, `watch w got a progress notice at revision 7 that it had not asked for`},
		{"an answer older than its events", func(s *Stream, _ *Truth) { s.Responses[3].Revision = 8 }, `watch w got revision 9 in an answer of revision 8, which is older`},
		{"a put through a filter", func(s *Stream, _ *Truth) { s.Puts = false }, `watch w got revision 5, a put of "k", which its filter leaves out`},
		{"a delete through a filter", func(s *Stream, _ *Truth) { s.Deletes = false }, `watch w got revision 9, a delete of "k", which its filter leaves out`},
		{"a key beside the range", func(s *Stream, _ *Truth) { s.End = "" }, `watch w got revision 6 of key "l", outside its range "k" to ""`},
		{"no value before", func(s *Stream, _ *Truth) { s.Responses[3].Changes[1].Previous = nil }, `watch w got revision 9 of "k" without the value before, "d/0"`},
		{"no value before, as it was compacted", func(s *Stream, t *Truth) { s.Responses[3].Changes[1].Previous, t.Compacted = nil, 9 }, ""},
		{"no value before, as an older one was compacted", func(s *Stream, t *Truth) { s.Responses[3].Changes[1].Previous, t.Compacted = nil, 8 },
			`watch w got revision 9 of "k" without the value before, "d/0"`},
		{"a wrong value before", func(s *Stream, _ *Truth) { s.Responses[3].Changes[1].Previous = s.Responses[1].Changes[0].Previous },
			`watch w got revision 9 of "k" with "a/0" as the value before, want "d/0"`},
		{"a value before a creation", func(s *Stream, _ *Truth) { s.Responses[0].Changes[0].Previous = s.Responses[1].Changes[0].Previous },
			`watch w got revision 5 of "k" with "a/0" as the value before, want nothing`},
		{"a value before that nobody asked for", func(s *Stream, _ *Truth) { s.PrevKV = false }, `watch w got revision 6 of "k" with the value before, "a/0", for which it had not asked`},
		{"a wrong value", func(s *Stream, _ *Truth) { s.Responses[0].Changes[0].Value = "?" },
			`watch w got revision 5 of "k" with value "?", created at 5, version 1; want "a/0", 5, 1`},
		{"a revision that never happened", func(s *Stream, _ *Truth) {
			s.Responses[2].Changes = []Change{{Revision: 7, Key: "k", Value: "?", Create: 5, Version: 3}}
		}, `watch w got revision 7 ("k" = "?"), which never happened`},
		{"a revision that is too new", func(s *Stream, _ *Truth) {
			s.Responses = append(s.Responses, Response{Revision: 13, Changes: []Change{{Revision: 13, Key: "k", Value: "?", Create: 13, Version: 1}}})
		}, `watch w got revision 13 ("k" = "?"), beyond the store's history that is known, which ends at 12`},
		{"a revision before the first", func(s *Stream, _ *Truth) { s.From = 6 }, `watch w got revision 5 ("k" = "a/0"), before 6, which it was asked to start with`},
		{"closed", func(s *Stream, _ *Truth) { s.Closed = "no leader" }, `watch w was closed under its user: no leader`},
		{"a truth that begins too late", func(s *Stream, t *Truth) { t.From = 4 }, `watch w was asked for revisions 4 to 12, of which the store's history that is known has only 5 to 12`},
		{"no certain start", func(s *Stream, _ *Truth) { s.From, s.Responses = 0, s.Responses[1:] }, ""},
		{"everything through a filter, nothing wanted", func(s *Stream, _ *Truth) {
			s.Puts, s.Responses = false, []Response{{Revision: 9, Changes: s.Responses[3].Changes[1:]}}
		}, ""},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			_, truth := plant()
			s := watch()
			c.spoil(&s, &truth)
			judge(t, CheckStream(s, truth), c.want)
		})
	}
}

func TestViolationsAreCountedBeyondTen(t *testing.T) {
	_, truth := crowd{groups: 1, callers: 3, ops: 40, keys: 2}.play(dice(t))
	s := Stream{Name: "w", Key: "g0/", End: "g00", From: 2, Puts: true, Deletes: true, Upto: truth.Upto}
	want := 0
	for _, tr := range transactions(truth.Changes) {
		if strings.HasPrefix(tr.changes[0].Key, "g0/") {
			want++
		}
	}
	bad := CheckStream(s, truth)
	if last := fmt.Sprintf("and %d more violations of this check", want-9); len(bad) != 10 || bad[9] != last {
		t.Errorf("%d lines, the last %q; want ten, the last %q", len(bad), bad[len(bad)-1], last)
	}
}
