//go:build linux

package realetcd

import (
	"sync"
	"time"
)

// sighting is what a member was found to be by a question that began at a moment.
type sighting struct {
	at           time.Time
	state        State
	leader, term uint64
}

// hearing is what a member's shim said, by a message that arrived at a moment.
type hearing struct {
	at   time.Time
	word string
}

// track is all that was found out about one member. The two are kept apart, because a question may
// take long, and what its shim says meanwhile belongs to the moment when it was said.
type track struct {
	member string

	mu    sync.Mutex
	seen  []sighting // changes only, in order of time
	heard []hearing  // likewise
	until time.Time  // the end of it; zero: it goes on
}

func (t *track) see(s sighting) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.seen); n > 0 {
		last := t.seen[n-1]
		if last.at = s.at; last == s {
			return
		}
	}
	t.seen = append(t.seen, s)
}

func (t *track) hear(word string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.heard); n > 0 && t.heard[n-1].word == word {
		return
	}
	t.heard = append(t.heard, hearing{time.Now(), word})
}

func (t *track) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = time.Now()
}

// samples puts both together: one for each change of either, and the last one again where the track
// ends. What was heard before the first sight counts from then on.
func (t *track) samples() []Sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Sample
	word, h := ShimAbsent, 0
	hearUntil := func(next time.Time) {
		for ; h < len(t.heard) && (next.IsZero() || !t.heard[h].at.After(next)); h++ {
			word = t.heard[h].word
			if n := len(all); n > 0 {
				changed := all[n-1]
				changed.At, changed.Shim = t.heard[h].at, word
				all = append(all, changed)
			}
		}
	}
	for _, s := range t.seen {
		hearUntil(s.at)
		all = append(all, Sample{s.at, t.member, s.state, s.leader, s.term, word})
	}
	hearUntil(time.Time{})
	if n := len(all); n > 0 && t.until.After(all[n-1].At) {
		last := all[n-1]
		last.At = t.until
		all = append(all, last)
	}
	return all
}
