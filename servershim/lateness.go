package servershim

import "time"

// lateness is the shim's suspicion of itself. A loop that woke late saw nothing
// meanwhile, so silence meanwhile is no evidence against the member.
//
// Time slept through therefore does not make the newest proof older, up to the
// ceiling in all for any one proof: on a machine that is slow for good a loss is
// still seen, at most a ceiling later.
//
// After one pause longer than the ceiling what was known is void: nothing is held
// until a proof begun after it completes. Nobody can say then that the member
// still has a quorum, and most likely it stood still as well.
type lateness struct {
	tolerance time.Duration // lateness up to this is ordinary
	ceiling   time.Duration // longest pause that is forgiven, and most for one proof

	pauses []pause   // oldest first, all of them after the newest proof began
	void   time.Time // proofs that began before are void; zero: none are
}

// pause is one time that the loop slept through.
type pause struct {
	from, to time.Time // when it had meant to be awake, and when it was
}

const maxPauses = 64

// wake takes in that the loop woke at now though it had meant to at due, and
// reports whether that was late. newest is the begin of the newest proof.
func (l *lateness) wake(due, now, newest time.Time) bool {
	if due.IsZero() || now.Sub(due) <= l.tolerance {
		return false
	}
	if now.Sub(due) > l.ceiling {
		l.void, l.pauses = now, nil
		return true
	}
	for len(l.pauses) > 0 && (len(l.pauses) >= maxPauses || !l.pauses[0].to.After(newest)) {
		l.pauses = l.pauses[1:]
	}
	l.pauses = append(l.pauses, pause{due, now})
	return true
}

// forgiven is how much of the time since then was slept through, at most the
// ceiling.
func (l *lateness) forgiven(since time.Time) time.Duration {
	var sum time.Duration
	for _, p := range l.pauses {
		from := p.from
		if since.After(from) {
			from = since
		}
		sum += max(p.to.Sub(from), 0)
	}
	return min(sum, l.ceiling)
}
