package history

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// The recipes of concurrency, mutex and election, are one queue: each session puts a
// key below a common prefix, and whose key has the lowest create revision (its fence)
// holds the place until the key is gone. The key goes when its session gives it back
// or when the session's lease ends.

// tenure is the life of one key in a queue, in revisions of the store.
type tenure struct {
	key     string
	created int64
	deleted int64 // math.MaxInt64: it stands
}

// stay is one session's hold of a place, or its attempt, as it believed.
type stay struct {
	who      string // the session
	key      string // "" if it never held the place
	fence    int64
	asked    time.Duration
	began    time.Duration // 0: it never held the place
	ended    time.Duration // when it began to give the place back or, if it never held it, gave up; 0: not noted
	released bool          // it was told that the place is given back
	lost     bool          // its session ended while it held the place; ended: when it learnt
}

// by is a moment at which a revision was there for certain; false where nobody noted one.
func (t Truth) by(revision int64) (time.Duration, bool) {
	i, _ := slices.BinarySearchFunc(t.Moments, revision, func(m Moment, r int64) int { return cmp.Compare(m.Revision, r) })
	if i == len(t.Moments) {
		return 0, false
	}
	return t.Moments[i].At, true
}

// paused is for how long the machine stood still between two moments.
func (t Truth) paused(from, to time.Duration) (sum time.Duration) {
	for _, p := range t.Pauses {
		begin, end := max(from, p.From), min(to, p.To)
		if sum += max(0, end-begin); end > begin {
			from = end
		}
	}
	return sum
}

// stood is for how long nobody could have taken a place between two moments: what stands still
// with the machine is the cluster too, and counts once.
func (t Truth) stood(from, to time.Duration) time.Duration { return max(t.Still, t.paused(from, to)) }

// queue is one mutex or election with all that is known of it.
type queue struct {
	title   string           // "mutex x"
	stays   []*stay          // by fence; those that never held the place come first
	tenures []tenure         // by creation
	last    []int            // last[i]: of tenures[:i+1] the one that was deleted last
	newest  map[string]int64 // by key: when it was last created
	held    string           // the word for "held the place" in lines: entered, was elected
	by      func(revision int64) (time.Duration, bool)
	stood   func(from, to time.Duration) time.Duration
}

// tenuresOf finds the lives of all keys of a queue: the keys right below prefix.
func tenuresOf(truth Truth, prefix string) []tenure {
	var all []tenure
	alive := make(map[string]int)
	for _, c := range truth.Changes {
		rest, ours := strings.CutPrefix(c.Key, prefix+"/")
		if !ours || strings.Contains(rest, "/") {
			continue
		}
		i, lives := alive[c.Key]
		switch {
		case c.Deleted && lives:
			all[i].deleted = c.Revision
			delete(alive, c.Key)
		case !c.Deleted && (!lives || c.Version == 1): // the end of the one before may be missing
			alive[c.Key] = len(all)
			all = append(all, tenure{c.Key, c.Create, math.MaxInt64})
		}
	}
	slices.SortStableFunc(all, func(a, b tenure) int { return cmp.Compare(a.created, b.created) })
	return all
}

func newQueue(title, held, prefix string, stays []*stay, truth Truth) *queue {
	q := &queue{title: title, held: held, stays: stays, tenures: tenuresOf(truth, prefix), newest: make(map[string]int64), by: truth.by, stood: truth.stood}
	for _, s := range stays {
		if s.began == 0 {
			s.key, s.fence = "", 0
		}
	}
	slices.SortStableFunc(q.stays, func(a, b *stay) int {
		return cmp.Or(cmp.Compare(a.fence, b.fence), cmp.Compare(a.began, b.began))
	})
	for i, t := range q.tenures {
		longest := i
		if i > 0 && q.tenures[q.last[i-1]].deleted > t.deleted {
			longest = q.last[i-1]
		}
		q.last = append(q.last, longest)
		q.newest[t.key] = t.created
	}
	return q
}

// find is where the tenure of a fence stands, or would.
func (q *queue) find(fence int64) (int, bool) {
	return slices.BinarySearchFunc(q.tenures, fence, func(t tenure, fence int64) int { return cmp.Compare(t.created, fence) })
}

// own is the tenure behind a stay.
func (q *queue) own(s *stay) (tenure, bool) {
	i, found := q.find(s.fence)
	if !found || q.tenures[i].key != s.key {
		return tenure{}, false
	}
	return q.tenures[i], true
}

// ahead is, of the keys that stood before a fence, the one that was gone last.
func (q *queue) ahead(fence int64) (tenure, bool) {
	i, _ := q.find(fence)
	if i == 0 {
		return tenure{}, false
	}
	return q.tenures[q.last[i-1]], true
}

// holder is the stay behind a tenure; nil if none is on record.
func (q *queue) holder(t tenure) *stay {
	i, found := slices.BinarySearchFunc(q.stays, t.created, func(s *stay, fence int64) int { return cmp.Compare(s.fence, fence) })
	if !found || q.stays[i].key != t.key {
		return nil
	}
	return q.stays[i]
}

// sound says which records cannot be judged, or name keys that the store never
// created, and takes them out.
func (q *queue) sound(bad *findings) {
	q.stays = slices.DeleteFunc(q.stays, func(s *stay) bool {
		if s.began == 0 {
			return false
		}
		if s.key == "" || s.fence <= 0 || s.began < s.asked || s.ended != 0 && s.ended < s.began {
			bad.add("%s: the record of %s cannot be judged: key %q, fence %d, asked at %s, began at %s, ended at %s", q.title, s.who, s.key, s.fence, at(s.asked), at(s.began), at(s.ended))
			return true
		}
		if _, ok := q.own(s); !ok {
			bad.add("%s: %s %s with key %q and fence %d, but the store created no such key at that revision", q.title, s.who, q.held, s.key, s.fence)
			return true
		}
		return false
	})
	for i, s := range q.stays {
		if i > 0 && s.began != 0 && q.stays[i-1].fence == s.fence && q.stays[i-1].who != s.who {
			bad.add("%s: %s and %s %s with the same fence %d", q.title, q.stays[i-1].who, s.who, q.held, s.fence)
		}
	}
}

// turn says who held the place while a key before its own stood in the store. limit
// is a revision at which a stay is known to have held the place already.
func (q *queue) turn(bad *findings, limit func(*stay) int64) {
	for _, s := range q.stays {
		t, some := q.ahead(s.fence)
		if s.began == 0 || !some || t.deleted <= limit(s) {
			continue
		}
		if t.deleted == math.MaxInt64 {
			bad.add("%s: %s %s with fence %d, though key %q with fence %d%s was never deleted", q.title, s.who, q.held, s.fence, t.key, t.created, q.of(t))
			continue
		}
		bad.add("%s: %s, with fence %d, %s by revision %d, though key %q with fence %d%s stood until revision %d", q.title, s.who, s.fence, q.held, limit(s), t.key, t.created, q.of(t), t.deleted)
	}
}

// of names the holder of a tenure, if it is on record.
func (q *queue) of(t tenure) string {
	if s := q.holder(t); s != nil {
		return " of " + s.who
	}
	return ""
}

// exclusive says whose stays overlap by the clock.
//
// A stay lasts in its holder's belief from began until ended, when it starts to give
// the place back. The next one can begin earlier only if the holder's key was gone
// before, by the end of its lease; a holder cannot know that at once (it may have been
// stopped, or cut off), which is why it must fence what it does. So clocks convict only
// where that is ruled out: where the same session created a key again after this one
// was gone, its lease was alive, nobody but the holder can have removed the key, and
// it had not yet begun to. Everything else is judged by the store's order alone.
func (q *queue) exclusive(bad *findings) {
	var first *stay // of those with a lower fence, the one that ended last
	for _, s := range q.stays {
		if s.began == 0 {
			continue
		}
		if first != nil && s.began < first.until() && first.who != s.who {
			bad.add("%s: %s (fence %d) %s at %s, while %s (fence %d) held it from %s to %s and its session lived on",
				q.title, s.who, s.fence, q.held, at(s.began), first.who, first.fence, at(first.began), until(first))
		}
		if !s.lost && q.livedOn(s) && (first == nil || s.until() > first.until()) {
			first = s
		}
	}
}

// until is when a holder ceased to believe that it holds the place.
func (s *stay) until() time.Duration {
	if s.ended == 0 {
		return math.MaxInt64
	}
	return s.ended
}

func until(s *stay) string {
	if s.ended == 0 {
		return "the end"
	}
	return at(s.ended)
}

// livedOn tells whether a stay's session was alive after the stay's key was gone.
func (q *queue) livedOn(s *stay) bool {
	own, ok := q.own(s)
	return ok && q.newest[s.key] > own.deleted
}

// handOver says who waited for a free place longer than bound. How long it was free is
// known where somebody noted when the key that was gone last went, where that key had a
// holder that gave it back, or learnt that its session had ended, and where no key stood
// before; elsewhere it is not judged, nor where bound is 0. What stood still meanwhile does not count.
func (q *queue) handOver(bad *findings, bound time.Duration) {
	if bound <= 0 {
		return
	}
	for _, s := range q.stays {
		since, known := q.freeSince(s)
		if !known {
			continue
		}
		if most := bound + q.stood(since, s.began); s.began != 0 && s.began-since > most {
			bad.add("%s: %s (fence %d) %s at %s, %s after the place was free for it at %s; want at most %s", q.title, s.who, s.fence, q.held, at(s.began), at(s.began-since), at(since), most)
		}
		if most := bound + q.stood(since, s.ended); s.began == 0 && s.ended-since > most {
			bad.add("%s: %s asked at %s and gave up at %s, though nobody held the place from %s on; want it handed over in %s", q.title, s.who, at(s.asked), at(s.ended), at(since), most)
		}
	}
}

func (q *queue) freeSince(s *stay) (time.Duration, bool) {
	if s.began == 0 {
		return q.idleBefore(s)
	}
	t, some := q.ahead(s.fence)
	if !some || t.deleted < s.fence {
		return s.asked, true
	}
	if gone, noted := q.by(t.deleted); noted { // whatever its holder was told
		return max(s.asked, gone), true
	}
	before := q.holder(t)
	if before == nil || before.ended == 0 || !before.released && !before.lost {
		return 0, false
	}
	return max(s.asked, before.ended), true
}

// idleBefore is since when nobody held the place before an attempt was given up.
func (q *queue) idleBefore(s *stay) (time.Duration, bool) {
	since := s.asked
	for _, o := range q.stays {
		if o.began == 0 || o.began >= s.ended {
			continue
		}
		if o.ended == 0 || o.ended > s.ended || !o.released && !o.lost {
			return 0, false
		}
		since = max(since, o.ended)
	}
	return since, s.ended != 0
}
