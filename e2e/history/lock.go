package history

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// CheckLocks judges mutual exclusion of concurrency.Mutex. truth must cover the keys
// below each Mutex and the keys that are written inside. The rules:
//
//   - Who entered has a key that the store created at its fence.
//   - The store's order. When somebody is inside, as its Seen, its writes or the end of
//     its own key show, no key with a lower fence stands any more. Guarded writes stand
//     in the store only while their writer's key does, once, and their fences never
//     fall. This holds whatever became of sessions and calls, and is exact.
//   - The answers. An acknowledged write stands at its revision, a refused one nowhere;
//     after an acknowledged Unlock the key is gone.
//   - The clock. From Entered to Left nobody with a higher fence enters, if the holder's
//     session outlived its key: where it did not, the lease may have ended unnoticed,
//     and no clock can tell (see queue.exclusive).
//   - Hand-over. A free mutex with somebody waiting is taken within bound; 0: not judged.
func CheckLocks(sections []Section, truth Truth, bound time.Duration) []string {
	var bad findings
	byMutex := make(map[string][]*Section)
	for i := range sections {
		byMutex[sections[i].Mutex] = append(byMutex[sections[i].Mutex], &sections[i])
	}
	writes := writesIn(truth)
	for _, name := range slices.Sorted(maps.Keys(byMutex)) {
		m := newMutex(name, byMutex[name], truth)
		m.sound(&bad)
		m.checkWrites(writes, &bad)
		m.turn(&bad, m.inside)
		m.exclusive(&bad)
		m.checkUnlocks(&bad)
		m.handOver(&bad, bound)
	}
	checkFences(sections, truth, &bad)
	return bad.list()
}

// mutex is the queue of one mutex.
type mutex struct {
	*queue
	sections map[*stay]*Section
	seen     map[*stay]int64 // earliest revision at which it is known to have been inside
}

func newMutex(name string, sections []*Section, truth Truth) *mutex {
	m := &mutex{sections: make(map[*stay]*Section), seen: make(map[*stay]int64)}
	var stays []*stay
	for _, s := range sections {
		stay := &stay{who: s.Holder, key: s.Key, fence: s.Fence, asked: s.Asked, began: s.Entered, ended: s.Left, released: s.Unlocked == Done && !s.Lost, lost: s.Lost}
		stays = append(stays, stay)
		m.sections[stay] = s
	}
	m.queue = newQueue("mutex "+name, "entered", name, stays, truth)
	return m
}

// inside is the earliest revision at which a holder is known to have been inside. A
// mutex looks for its own key last: when that goes, the holder is inside or never
// will be.
func (m *mutex) inside(s *stay) int64 {
	first := int64(math.MaxInt64 - 1) // a key that still stands is later than that
	if own, ok := m.own(s); ok {
		first = min(first, own.deleted-1)
	}
	if seen := m.sections[s].Seen; seen > 0 {
		first = min(first, seen)
	}
	if wrote, ok := m.seen[s]; ok {
		first = min(first, wrote-1)
	}
	return first
}

// checkUnlocks says whose key stands after an acknowledged Unlock.
func (m *mutex) checkUnlocks(bad *findings) {
	for _, s := range m.stays {
		own, ok := m.own(s)
		if ok && m.sections[s].Unlocked == Done && own.deleted == math.MaxInt64 {
			bad.add("%s: Unlock of %s (fence %d) was acknowledged, and its key %q still stands", m.title, s.who, s.fence, s.key)
		}
	}
}

// guarded is a value in a key.
type guarded struct{ key, value string }

func writesIn(truth Truth) map[guarded][]int64 {
	all := make(map[guarded][]int64)
	for _, c := range truth.Changes {
		if !c.Deleted {
			all[guarded{c.Key, c.Value}] = append(all[guarded{c.Key, c.Value}], c.Revision)
		}
	}
	return all
}

// checkWrites compares the writes of holders with the store, and with the lives of
// their keys.
func (m *mutex) checkWrites(stored map[guarded][]int64, bad *findings) {
	for _, s := range m.stays {
		own, inQueue := m.own(s)
		for _, w := range m.sections[s].Writes {
			found := stored[guarded{w.Key, w.Value}]
			m.checkWrite(s, w, found, bad)
			if len(found) == 0 || !inQueue {
				continue
			}
			if first, ok := m.seen[s]; !ok || found[0] < first {
				m.seen[s] = found[0]
			}
			if found[0] <= own.created || found[0] > own.deleted {
				bad.add("%s: %s (fence %d) wrote %s at revision %d, but its key stood only %s", m.title, s.who, s.fence, shown(w.Value), found[0], span(own))
			}
		}
	}
}

// span shows the life of a key.
func span(t tenure) string {
	if t.deleted == math.MaxInt64 {
		return fmt.Sprintf("from revision %d on", t.created)
	}
	return fmt.Sprintf("from revision %d to %d", t.created, t.deleted)
}

func (m *mutex) checkWrite(s *stay, w Write, found []int64, bad *findings) {
	switch {
	case len(found) > 1:
		bad.add("%s: the write %s of %s stands at revisions %v: it was sent again", m.title, shown(w.Value), s.who, found)
	case len(found) == 0 && w.Outcome == Done:
		bad.add("%s: the write %s of %s was acknowledged at revision %d and is not in the store's history", m.title, shown(w.Value), s.who, w.Revision)
	case len(found) == 0:
	case w.Outcome == Refused:
		bad.add("%s: the write %s of %s was refused and stands in the store's history at revision %d", m.title, shown(w.Value), s.who, found[0])
	case w.Outcome == Done && w.Revision != found[0]:
		bad.add("%s: the write %s of %s was acknowledged at revision %d and stands at %d", m.title, shown(w.Value), s.who, w.Revision, found[0])
	}
}

// checkFences goes along each guarded key: fences never fall, and nobody else writes.
func checkFences(sections []Section, truth Truth, bad *findings) {
	writer := make(map[guarded]*Section)
	keys := make(map[string]bool)
	for i := range sections {
		for _, w := range sections[i].Writes {
			writer[guarded{w.Key, w.Value}] = &sections[i]
			keys[w.Key] = true
		}
	}
	highest := make(map[string]*Section)
	for _, c := range truth.Changes {
		if !keys[c.Key] {
			continue
		}
		s := writer[guarded{c.Key, c.Value}]
		switch before := highest[c.Key]; {
		case s == nil:
			bad.add("guarded key %q: revision %d left %s there, which no holder wrote", c.Key, c.Revision, shown(c.Value))
		case before != nil && s.Fence < before.Fence:
			bad.add("mutex %s: %s wrote %s with fence %d at revision %d, after %s had written with fence %d: two were inside",
				s.Mutex, s.Holder, shown(c.Value), s.Fence, c.Revision, before.Holder, before.Fence)
		case before == nil || s.Fence > before.Fence:
			highest[c.Key] = s
		}
	}
}
