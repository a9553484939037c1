package prober

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// seek decides when one place is searched for reports: while they come, always; where
// none ever came, ever more rarely. Owned by a gatherer.
type seek struct {
	running bool
	session int       // number of the running or last session; words of earlier ones are dropped
	began   time.Time // of the session
	word    time.Time // newest usable word, of any session
	next    time.Time // when to search again, while not running
	wait    *backoff.ExponentialBackOff
}

func newSeek(t times) seek {
	// Jitter is added by the gatherer, which is given its randomness.
	return seek{wait: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(t.seekMin), backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0),
		backoff.WithMaxInterval(t.seekMax), backoff.WithMaxElapsedTime(0))}
}

func (s *seek) start(now time.Time) {
	s.running, s.began = true, now
	s.session++
}

// stop ends the session; jitter is in [0,1). A place that spoke not long ago is searched
// again soon.
func (s *seek) stop(now time.Time, jitter float64, t times) {
	d := s.wait.NextBackOff()
	if s.lately(now, t) {
		d = min(d, t.seekMin)
	}
	s.running, s.next = false, now.Add(d-time.Duration(jitter*float64(d)/10))
}

func (s *seek) lately(now time.Time, t times) bool {
	return !s.word.IsZero() && now.Sub(s.word) < t.seekMax
}

// soon makes the next search an early one: something changed at the address.
func (s *seek) soon(now time.Time) {
	s.wait.Reset()
	if !s.running {
		s.next = now
	}
}

// spoken notes a usable word.
func (s *seek) spoken(now time.Time) {
	s.word = now
	s.wait.Reset()
}

// spent reports whether the running session has been without a word for so long that
// it is to be ended; the next is on a connection of its own.
func (s *seek) spent(now time.Time, t times, n healthsvc.News) bool {
	return s.running && !now.Before(s.end(t, n))
}

func (s *seek) end(t times, n healthsvc.News) time.Time {
	last := s.began
	if s.word.After(last) {
		last = s.word
	}
	switch {
	case n.Missed > 1 && s.lately(last, t):
		return last.Add(t.silent)
	default:
		return last.Add(max(t.seekFor, 3*hint(n)))
	}
}

// wake is when the gatherer has to look at it next.
func (s *seek) wake(r *reporter, t times) time.Time {
	switch {
	case !s.running:
		return s.next
	case !r.sought:
		return earlier(s.began.Add(t.seekFirst), s.end(t, r.news))
	default:
		return s.end(t, r.news)
	}
}
