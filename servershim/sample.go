package servershim

import "time"

// sample runs one kind of local call over and over, never two at a time. It
// bounds what a member that answers nothing costs, and nothing waits for it.
//
// One failure is no evidence: a connection that was reset fails a call on a member
// that is well. The call is repeated at the next interval; it counts when that one
// fails too, or when a call was silent for its whole deadline.
type sample struct {
	deadline time.Duration // of one call
	interval time.Duration // after which a failed call is repeated
	next     time.Time     // when the next one is due
	begin    time.Time     // of the one that is out; zero: none is
	tainted  bool          // the loop was late while it was out
	spared   bool          // a late loop was an excuse once since the last answer

	answered time.Time // begin of the newest that was answered; zero: none was
	err      error     // why the newest one failed; nil: it did not
	failed   bool      // and it counts
}

// start opens a call if one is due and none is out.
func (s *sample) start(now time.Time, every time.Duration) bool {
	if !s.begin.IsZero() || now.Before(s.next) {
		return false
	}
	s.begin, s.tainted = now, false
	s.next = now.Add(every)
	return true
}

// finish closes the call that is out. A failure while the loop was late says
// nothing at all; the call is repeated at once.
func (s *sample) finish(now time.Time, err error) {
	begin := s.begin
	s.begin = time.Time{}
	switch {
	case err == nil:
		s.answered, s.failed, s.err, s.spared = begin, false, nil, false
	case s.tainted:
		s.next = now
	default:
		out := now.Sub(begin)
		s.failed = s.failed || s.err != nil || out >= s.deadline
		s.err = err
		s.next = begin.Add(out.Truncate(s.interval) + s.interval)
	}
}

// late takes in that the loop woke late: the call that is out gets its time anew,
// once. A machine that is slow for good is no excuse for a call that hangs.
func (s *sample) late(now time.Time) {
	if s.begin.IsZero() || s.spared {
		return
	}
	s.tainted, s.spared = true, true
	s.begin = now
}

// works reports whether calls are answered: one was, no failure counts since, and
// none has been out for longer than it may.
func (s *sample) works(now time.Time) bool {
	overdue := !s.begin.IsZero() && now.Sub(s.begin) > s.deadline
	return !s.answered.IsZero() && !s.failed && !overdue
}
