package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// contest is a number of sessions that want the same places, in virtual time, on a
// store that keeps its promises. Leases end now and then, noticed or not; answers get
// lost; some give up.
type contest struct {
	places, members, rounds int
	trouble                 float64 // part of the rounds
}

// bound is what hand-over takes at most in a contest: a lease and some latencies.
const bound = 200 * time.Millisecond

func (c contest) play(rng *rand.Rand) ([]Section, Truth) {
	s := newStore(rng)
	var all []*Section
	for p := range c.places {
		for m := range c.members {
			h := &contender{store: s, contest: c, place: fmt.Sprintf("lock/%d", p), name: fmt.Sprintf("p%d-m%d", p, m)}
			h.file = func(sec *Section) { all = append(all, sec) }
			s.after(s.some(time.Millisecond), h.ask)
		}
	}
	s.run()
	var sections []Section
	for _, sec := range all {
		sections = append(sections, *sec)
	}
	return sections, s.truth
}

type contender struct {
	*store
	contest contest
	place   string
	name    string
	session int // number of
	round   int
	wrote   int
	file    func(*Section)
}

const hop = 2 * time.Millisecond // the longest way of a message

func (h *contender) holder() string { return fmt.Sprintf("%s-s%d", h.name, h.session) }

func (h *contender) trouble() bool { return h.rng.Float64() < h.contest.trouble }

// ask begins a round.
func (h *contender) ask() {
	if h.round == h.contest.rounds {
		return
	}
	h.round++
	sec := &Section{Mutex: h.place, Holder: h.holder(), Key: h.place + "/" + h.holder(), Asked: h.now}
	h.file(sec)
	h.after(h.some(hop), func() {
		sec.Fence = h.commit([]string{sec.Key}, func(int) string { return "waiting" })
		h.wait(sec)
	})
}

// stands tells whether a key is the one of this round.
func (h *contender) stands(sec *Section) bool { return h.held[sec.Key].create == sec.Fence }

// first tells whether no key of the place is older.
func (h *contender) first(sec *Section) bool {
	for k, e := range h.held {
		if strings.HasPrefix(k, h.place+"/") && e.create < sec.Fence {
			return false
		}
	}
	return true
}

// wait looks again and again.
func (h *contender) wait(sec *Section) {
	if h.rng.Float64() < h.contest.trouble/50 { // gives up; its key goes some time later
		sec.Left, sec.Error = h.now, "deadline exceeded"
		key := sec.Key
		sec.Key, sec.Fence = "", 0
		h.renew()
		h.after(h.some(20*hop), func() { h.commit([]string{key}, func(int) string { return "" }) })
		return
	}
	if !h.first(sec) {
		h.after(h.some(hop), func() { h.wait(sec) })
		return
	}
	sec.Seen = h.revision
	h.after(h.some(hop), func() {
		sec.Entered = h.now
		if h.trouble() {
			h.expire(sec)
		}
		h.stay(sec, 1+h.rng.IntN(3))
	})
}

// expire lets the lease end soon, whether or not the holder learns of it while inside.
func (h *contender) expire(sec *Section) {
	h.after(h.some(5*hop), func() {
		if !h.stands(sec) {
			return // it has unlocked
		}
		h.commit([]string{sec.Key}, func(int) string { return "" })
		h.after(h.some(5*hop), func() {
			if sec.Left == 0 {
				sec.Lost = true
			}
		})
	})
}

// stay writes, then leaves.
func (h *contender) stay(sec *Section, writes int) {
	if writes == 0 || sec.Lost {
		h.leave(sec)
		return
	}
	h.wrote++
	value, i := fmt.Sprintf("%s-%d", sec.Holder, h.wrote), len(sec.Writes)
	sec.Writes = append(sec.Writes, Write{Key: "guarded/" + h.place, Value: value, Outcome: Unknown})
	lost := h.trouble()
	apply := func() {
		w := &sec.Writes[i]
		if !h.stands(sec) {
			if !lost {
				w.Outcome = Refused
			}
			return
		}
		revision := h.commit([]string{w.Key}, func(int) string { return value })
		if !lost {
			w.Outcome, w.Revision = Done, revision
		}
	}
	if !lost || h.rng.IntN(2) == 0 {
		h.after(h.some(hop), apply)
	}
	h.after(hop+h.some(hop), func() { h.stay(sec, writes-1) })
}

func (h *contender) leave(sec *Section) {
	sec.Left = h.now
	unknown := h.trouble()
	sec.Unlocked = Done
	if unknown {
		sec.Unlocked = Unknown
	}
	d := h.some(hop)
	if unknown && h.rng.IntN(2) == 0 {
		d *= 20 // the lease ends
	}
	h.after(d, func() {
		lives := h.stands(sec) // a lease that has ended is noticed at the next round at the latest
		if lives {
			h.commit([]string{sec.Key}, func(int) string { return "" })
		}
		if lives && !unknown && !sec.Lost {
			h.after(h.some(hop), h.ask)
			return
		}
		h.renew()
	})
}

// renew takes a new session.
func (h *contender) renew() {
	h.session++
	h.after(h.some(5*hop), h.ask)
}

func TestContestOnACorrectStoreIsClean(t *testing.T) {
	rng := dice(t)
	overlaps := 0
	for range 60 {
		c := contest{places: 2, members: 4, rounds: 8, trouble: 0.15 * float64(rng.IntN(3))}
		sections, truth := c.play(rng)
		if bad := CheckLocks(sections, truth, bound); len(bad) > 0 {
			t.Fatalf("%+v: %q, want a correct mutex passed", c, bad)
		}
		if bad := CheckElections(reignsOf(sections), truth, bound); len(bad) > 0 {
			t.Fatalf("%+v: %q, want a correct election passed", c, bad)
		}
		overlaps += overlapping(sections)
	}
	if overlaps == 0 {
		t.Error("no stays overlapped: the test does not show that ends of leases are told from broken locks")
	}
}

func overlapping(sections []Section) int {
	n := 0
	for _, a := range sections {
		for _, b := range sections {
			if a.Mutex == b.Mutex && a.Entered != 0 && a.Fence < b.Fence && b.Entered < a.Left {
				n++
			}
		}
	}
	return n
}

// reignsOf tells the same as an election.
func reignsOf(sections []Section) []Reign {
	var all []Reign
	for _, s := range sections {
		r := Reign{Election: s.Mutex, Leader: s.Holder, Key: s.Key, Fence: s.Fence, Asked: s.Asked, Elected: s.Entered, Resigned: s.Left, Error: s.Error}
		if s.Unlocked == Unknown {
			r.Error = "deadline exceeded"
		}
		if s.Lost {
			r.Lost, r.LostAt, r.Resigned = true, s.Left, 0
		}
		all = append(all, r)
	}
	return all
}

// stays is a small history to spoil: a holds the mutex twice with b in between, all in
// order. a's session lives on after its first stay.
func stays() ([]Section, Truth) {
	ms := time.Millisecond
	sections := []Section{
		{Mutex: "lock", Holder: "a", Key: "lock/a", Fence: 10, Asked: 1 * ms, Entered: 2 * ms, Seen: 10, Left: 20 * ms, Unlocked: Done,
			Writes: []Write{{Key: "v", Value: "a1", Outcome: Done, Revision: 12}}},
		{Mutex: "lock", Holder: "b", Key: "lock/b", Fence: 11, Asked: 5 * ms, Entered: 30 * ms, Seen: 14, Left: 40 * ms, Unlocked: Done,
			Writes: []Write{{Key: "v", Value: "b1", Outcome: Done, Revision: 16}}},
		{Mutex: "lock", Holder: "a", Key: "lock/a", Fence: 15, Asked: 32 * ms, Entered: 50 * ms, Seen: 18, Left: 60 * ms, Unlocked: Done,
			Writes: []Write{{Key: "v", Value: "a2", Outcome: Unknown}}},
	}
	put := func(revision int64, key, value string) Change {
		return Change{Revision: revision, Key: key, Value: value, Create: revision, Version: 1}
	}
	gone := func(revision int64, key string) Change { return Change{Revision: revision, Key: key, Deleted: true} }
	truth := Truth{From: 1, Upto: 25, Changes: []Change{
		put(10, "lock/a", ""), put(11, "lock/b", ""), put(12, "v", "a1"), gone(14, "lock/a"),
		put(15, "lock/a", ""), put(16, "v", "b1"), gone(18, "lock/b"), put(19, "v", "a2"), gone(20, "lock/a"),
	}}
	return sections, truth
}

func drop(t *Truth, i int) { t.Changes = slices.Delete(t.Changes, i, i+1) }

func TestCheckLocksCatchesPlantedViolations(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		spoil func(s []Section, t *Truth)
		want  string
	}{
		{"nothing", func([]Section, *Truth) {}, ""},
		{"two inside by the clock", func(s []Section, _ *Truth) { s[1].Entered = 19 * ms },
			`mutex lock: b (fence 11) entered at 19ms, while a (fence 10) held it from 2ms to 20ms and its session lived on`},
		{"two inside by the clock, but the session was lost", func(s []Section, _ *Truth) { s[1].Entered, s[0].Lost = 19*ms, true }, ""},
		{"two inside by the clock, but nothing tells that the session lived", func(s []Section, t *Truth) {
			s[1].Entered = 19 * ms
			s[2].Key, s[2].Holder, t.Changes[4].Key, t.Changes[8].Key = "lock/c", "c", "lock/c", "lock/c"
		}, ""},
		{"never left", func(s []Section, _ *Truth) { s[0].Left, s[0].Unlocked = 0, "" },
			`mutex lock: b (fence 11) entered at 30ms, while a (fence 10) held it from 2ms to the end and its session lived on`},
		{"entered before the key ahead was gone", func(s []Section, _ *Truth) { s[1].Seen = 13 },
			`mutex lock: b, with fence 11, entered by revision 13, though key "lock/a" with fence 10 of a stood until revision 14`},
		{"wrote before the key ahead was gone", func(s []Section, t *Truth) {
			s[1].Seen, s[1].Writes[0].Revision = 0, 13
			write := t.Changes[5]
			write.Revision = 13
			t.Changes = slices.Insert(slices.Delete(t.Changes, 5, 6), 3, write)
		}, `mutex lock: b, with fence 11, entered by revision 12, though key "lock/a" with fence 10 of a stood until revision 14`},
		{"entered though the key ahead never went", func(s []Section, t *Truth) { drop(t, 3) },
			`mutex lock: b entered with fence 11, though key "lock/a" with fence 10 of a was never deleted`},
		{"entered though a key ahead that is on no record never went", func(s []Section, t *Truth) {
			t.Changes = slices.Insert(t.Changes, 0, Change{Revision: 9, Key: "lock/x", Create: 9, Version: 1})
		}, `mutex lock: a entered with fence 10, though key "lock/x" with fence 9 was never deleted`},
		{"left before the key ahead was gone", func(s []Section, t *Truth) {
			s[1].Seen, s[1].Writes = 0, nil
			drop(t, 5)
			s[2].Holder, s[2].Key, t.Changes[4].Key, t.Changes[7].Key = "c", "lock/c", "lock/c", "lock/c"
			t.Changes[3].Key, t.Changes[5].Key = "lock/b", "lock/a"
		}, `mutex lock: b, with fence 11, entered by revision 13, though key "lock/a" with fence 10 of a stood until revision 18`},
		{"a write after its key was gone", func(s []Section, t *Truth) {
			t.Changes[7].Revision = 21
			t.Changes[7], t.Changes[8] = t.Changes[8], t.Changes[7]
		},
			`mutex lock: a (fence 15) wrote "a2" at revision 21, but its key stood only from revision 15 to 20`},
		{"fences fall", func(s []Section, t *Truth) {
			t.Changes[2].Revision = 17
			t.Changes = append(t.Changes[:2], t.Changes[3], t.Changes[4], t.Changes[5], Change{Revision: 17, Key: "v", Value: "a1"}, t.Changes[6], t.Changes[7], t.Changes[8])
		},
			`mutex lock: a wrote "a1" with fence 10 at revision 17, after b had written with fence 11: two were inside`},
		{"a write of nobody", func(s []Section, t *Truth) { t.Changes[5].Value = "x" }, `guarded key "v": revision 16 left "x" there, which no holder wrote`},
		{"an acknowledged write lost", func(s []Section, t *Truth) { drop(t, 5) }, `mutex lock: the write "b1" of b was acknowledged at revision 16 and is not in the store's history`},
		{"an acknowledged write elsewhere", func(s []Section, t *Truth) { s[1].Writes[0].Revision = 17 }, `mutex lock: the write "b1" of b was acknowledged at revision 17 and stands at 16`},
		{"a refused write happened", func(s []Section, t *Truth) { s[2].Writes[0].Outcome = Refused }, `mutex lock: the write "a2" of a was refused and stands in the store's history at revision 19`},
		{"a write sent again", func(s []Section, t *Truth) {
			t.Changes = slices.Insert(t.Changes, 3, Change{Revision: 13, Key: "v", Value: "a1", Create: 12, Version: 2})
		}, `mutex lock: the write "a1" of a stands at revisions [12 13]: it was sent again`},
		{"an unknown write that never happened", func(s []Section, t *Truth) { drop(t, 7) }, ""},
		{"a fence that the store does not know", func(s []Section, t *Truth) { s[0].Fence = 9 },
			`mutex lock: a entered with key "lock/a" and fence 9, but the store created no such key at that revision`},
		{"a record without a key", func(s []Section, t *Truth) { s[0].Key = "" }, `mutex lock: the record of a cannot be judged: key "", fence 10`},
		{"an Unlock that did nothing", func(s []Section, t *Truth) { drop(t, 8) }, `mutex lock: Unlock of a (fence 15) was acknowledged, and its key "lock/a" still stands`},
		{"a free mutex taken late", func(s []Section, _ *Truth) { s[2].Entered, s[2].Left = 300*ms, 310*ms },
			`mutex lock: a (fence 15) entered at 300ms, 260ms after the place was free for it at 40ms; want at most 200ms`},
		{"a free mutex taken late by a pause", func(s []Section, t *Truth) {
			s[2].Entered, s[2].Left = 300*ms, 310*ms
			t.Pauses = []Pause{{10 * ms, 70 * ms}, {100 * ms, 120 * ms}, {110 * ms, 130 * ms}}
		}, ""},
		{"a free mutex taken late by a store that stood still", func(s []Section, t *Truth) {
			s[2].Entered, s[2].Left = 300*ms, 310*ms
			t.Pauses, t.Still = []Pause{{100 * ms, 130 * ms}}, 60*ms
		}, ""},
		{"a free mutex taken late by more than either stood still", func(s []Section, t *Truth) {
			s[2].Entered, s[2].Left = 300*ms, 310*ms
			t.Pauses, t.Still = []Pause{{100 * ms, 158 * ms}}, 59*ms
		},
			`mutex lock: a (fence 15) entered at 300ms, 260ms after the place was free for it at 40ms; want at most 259ms`},
		{"a free mutex taken late by more than pauses, which overlap", func(s []Section, t *Truth) {
			s[2].Entered, s[2].Left = 300*ms, 310*ms
			t.Pauses = []Pause{{10 * ms, 70 * ms}, {100 * ms, 120 * ms}, {105 * ms, 115 * ms}, {110 * ms, 129 * ms}}
		},
			`mutex lock: a (fence 15) entered at 300ms, 260ms after the place was free for it at 40ms; want at most 259ms`},
		{"a free mutex taken late, with pauses before and after", func(s []Section, t *Truth) {
			s[2].Entered, s[2].Left = 300*ms, 310*ms
			t.Pauses = []Pause{{0, 40 * ms}, {300 * ms, 400 * ms}}
		},
			`mutex lock: a (fence 15) entered at 300ms, 260ms after the place was free for it at 40ms; want at most 200ms`},
		{"two inside by the clock, at a pause", func(s []Section, t *Truth) {
			s[1].Entered = 19 * ms
			t.Pauses = []Pause{{0, 400 * ms}}
		}, `mutex lock: b (fence 11) entered at 19ms, while a (fence 10) held it from 2ms to 20ms and its session lived on`},
		{"a free mutex taken late, freed nobody knows when", func(s []Section, _ *Truth) { s[2].Entered, s[2].Left, s[1].Unlocked = 300*ms, 310*ms, Unknown }, ""},
		{"a free mutex taken late, freed by a time that somebody noted", func(s []Section, t *Truth) {
			s[2].Entered, s[2].Left, s[1].Unlocked = 300*ms, 310*ms, Unknown
			t.Moments = []Moment{{9, 1 * ms}, {17, 39 * ms}, {18, 45 * ms}, {25, 400 * ms}}
		},
			`mutex lock: a (fence 15) entered at 300ms, 255ms after the place was free for it at 45ms; want at most 200ms`},
		{"a mutex that somebody noted as free late", func(s []Section, t *Truth) {
			s[2].Entered, s[2].Left, s[1].Unlocked = 300*ms, 310*ms, Unknown
			t.Moments = []Moment{{17, 39 * ms}, {19, 150 * ms}}
		}, ""},
		{"a free mutex taken late, freed after all that somebody noted", func(s []Section, t *Truth) {
			s[2].Entered, s[2].Left, s[1].Unlocked = 300*ms, 310*ms, Unknown
			t.Moments = []Moment{{9, 1 * ms}, {17, 39 * ms}}
		}, ""},
		{"a lost mutex taken late", func(s []Section, _ *Truth) {
			s[2].Entered, s[2].Left, s[1].Unlocked, s[1].Lost = 300*ms, 310*ms, Unknown, true
		},
			`mutex lock: a (fence 15) entered at 300ms, 260ms after the place was free for it at 40ms; want at most 200ms`},
		{"a mutex without anybody ahead taken late", func(s []Section, _ *Truth) {
			s[0].Asked, s[0].Entered, s[0].Left, s[1].Entered, s[1].Left, s[2].Entered, s[2].Left = 1*ms, 202*ms, 203*ms, 204*ms, 205*ms, 206*ms, 207*ms
		},
			`mutex lock: a (fence 10) entered at 202ms, 201ms after the place was free for it at 1ms; want at most 200ms`},
		{"a free mutex given up", func(s []Section, _ *Truth) {
			s[2] = Section{Mutex: "lock", Holder: "c", Asked: 35 * ms, Left: 300 * ms, Error: "deadline exceeded"}
		},
			`mutex lock: c asked at 35ms and gave up at 300ms, though nobody held the place from 40ms on; want it handed over in 200ms`},
		{"a held mutex given up", func(s []Section, _ *Truth) {
			s[1].Left = 290 * ms
			s[2] = Section{Mutex: "lock", Holder: "c", Asked: 35 * ms, Left: 300 * ms, Error: "deadline exceeded"}
		}, ""},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			sections, truth := stays()
			c.spoil(sections, &truth)
			if strings.HasSuffix(c.name, "given up") {
				truth.Changes = slices.DeleteFunc(truth.Changes, func(c Change) bool { return c.Revision >= 19 || c.Revision == 15 })
			}
			judge(t, CheckLocks(sections, truth, bound), c.want)
		})
	}
}

func TestCheckElectionsCatchesPlantedViolations(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		spoil func(r []Reign, t *Truth)
		want  string
	}{
		{"nothing", func([]Reign, *Truth) {}, ""},
		{"two lead by the clock", func(r []Reign, _ *Truth) { r[1].Elected = 19 * ms },
			`election lock: b (fence 11) was elected at 19ms, while a (fence 10) held it from 2ms to 20ms and its session lived on`},
		{"two lead by the clock, but the session was lost", func(r []Reign, _ *Truth) { r[1].Elected, r[0].Lost, r[0].LostAt = 19*ms, true, 20*ms }, ""},
		{"out of order", func(r []Reign, _ *Truth) { r[0].Elected, r[0].Resigned = 41*ms, 42*ms },
			`election lock: b (fence 11) was elected at 30ms, while a (fence 10) held it from 41ms to 42ms and its session lived on`},
		{"never resigned", func(r []Reign, _ *Truth) { r[0].Resigned = 0 }, `while a (fence 10) held it from 2ms to the end`},
		{"elected though the key ahead never went", func(r []Reign, t *Truth) { drop(t, 3) },
			`election lock: b was elected with fence 11, though key "lock/a" with fence 10 of a was never deleted`},
		{"a fence that the store does not know", func(r []Reign, _ *Truth) { r[1].Fence = 12 },
			`election lock: b was elected with key "lock/b" and fence 12, but the store created no such key at that revision`},
		{"a fence of two", func(r []Reign, _ *Truth) { r[2] = r[1]; r[2].Leader = "c" }, `election lock: b and c was elected with the same fence 11`},
		{"handed over late", func(r []Reign, _ *Truth) { r[2].Elected, r[2].Resigned = 300*ms, 310*ms },
			`election lock: a (fence 15) was elected at 300ms, 260ms after the place was free for it at 40ms; want at most 200ms`},
		{"handed over late by a pause", func(r []Reign, t *Truth) {
			r[2].Elected, r[2].Resigned, t.Pauses = 300*ms, 310*ms, []Pause{{40 * ms, 100 * ms}}
		}, ""},
		{"handed over late by more than a pause", func(r []Reign, t *Truth) {
			r[2].Elected, r[2].Resigned, t.Pauses = 300*ms, 310*ms, []Pause{{40 * ms, 99 * ms}}
		}, `260ms after the place was free for it at 40ms; want at most 259ms`},
		{"handed over late after a loss", func(r []Reign, _ *Truth) {
			r[2].Elected, r[2].Resigned, r[1].Lost, r[1].LostAt, r[1].Resigned = 300*ms, 310*ms, true, 45*ms, 0
		},
			`election lock: a (fence 15) was elected at 300ms, 255ms after the place was free for it at 45ms; want at most 200ms`},
		{"handed over late after a loss that nobody noted", func(r []Reign, _ *Truth) {
			r[2].Elected, r[2].Resigned, r[1].Lost, r[1].Resigned = 300*ms, 310*ms, true, 0
		}, ""},
		{"given up without a leader", func(r []Reign, _ *Truth) {
			r[2] = Reign{Election: "lock", Leader: "c", Asked: 35 * ms, Resigned: 300 * ms, Error: "deadline exceeded"}
		},
			`election lock: c asked at 35ms and gave up at 300ms, though nobody held the place from 40ms on; want it handed over in 200ms`},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			sections, truth := stays()
			reigns := reignsOf(sections)
			c.spoil(reigns, &truth)
			judge(t, CheckElections(reigns, truth, bound), c.want)
		})
	}
}

func TestHandOverIsNotJudgedWithoutABound(t *testing.T) {
	sections, truth := stays()
	sections[2].Entered, sections[2].Left = time.Hour, 2*time.Hour
	judge(t, CheckLocks(sections, truth, 0), "")
	judge(t, CheckElections(reignsOf(sections), truth, 0), "")
}

// A store whose mutex lets somebody in too early is always found, whatever else happens.
func TestAnySpoiltContestIsCaught(t *testing.T) {
	rng := dice(t)
	caught := make(map[string]int)
	for range 300 {
		sections, truth := contest{places: 1, members: 3, rounds: 5, trouble: 0.1}.play(rng)
		s := &sections[rng.IntN(len(sections))]
		if s.Entered == 0 {
			continue
		}
		what := []string{"forget the key", "forget its end", "shift a write", "let it in at once", "refuse a write", "another fence"}[rng.IntN(6)]
		switch what {
		case "forget the key":
			i := slices.IndexFunc(truth.Changes, func(c Change) bool { return c.Key == s.Key && c.Revision == s.Fence })
			drop(&truth, i)
		case "forget its end":
			last := !slices.ContainsFunc(sections, func(o Section) bool { return o.Fence > s.Fence })
			if last && s.Unlocked != Done {
				continue // then it may stand
			}
			i := slices.IndexFunc(truth.Changes, func(c Change) bool { return c.Key == s.Key && c.Revision > s.Fence })
			drop(&truth, i)
		case "shift a write":
			i := slices.IndexFunc(truth.Changes, func(c Change) bool { return len(s.Writes) > 0 && c.Value == s.Writes[0].Value })
			if i < 0 {
				continue
			}
			moved := truth.Changes[i]
			drop(&truth, i)
			truth.Upto++
			moved.Revision = truth.Upto
			truth.Changes = append(truth.Changes, moved)
		case "let it in at once":
			q := newQueue("", "", s.Mutex, nil, truth)
			if ahead, some := q.ahead(s.Fence); !some || ahead.deleted < s.Fence {
				continue
			}
			s.Seen = s.Fence
		case "refuse a write":
			if len(s.Writes) == 0 || s.Writes[0].Outcome != Done {
				continue
			}
			s.Writes[0].Outcome = Refused
		case "another fence":
			s.Fence++
		}
		if bad := CheckLocks(sections, truth, bound); len(bad) == 0 {
			t.Fatalf("%s of %+v: nothing was found\n%+v\n%+v", what, *s, sections, truth)
		}
		caught[what]++
	}
	if len(caught) < 6 {
		t.Errorf("caught %v, want all six ways tried", caught)
	}
}
