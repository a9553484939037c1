package servershim

import "time"

// window is how old the newest proof may be before quorum counts as lost. It
// follows the round trip of proofs as TCP's retransmission timer does (RFC 6298),
// so that a cluster across regions is not called dead and one on a LAN is judged
// fast. Like TCP it measures one round trip at a time: proofs overlap, and those
// that one stall held up together would otherwise count as many.
//
// A member that stalls again and again would teach the window that stalls are the
// distance, and be called well for it. So a member that was lost returns by
// the window that it was lost by, or by what its quickest proof of late asks for,
// if that is more: when the distance has grown, all of them take longer.
type window struct {
	floor, ceiling time.Duration
	slack          time.Duration // two intervals: the wait for the next proof, and one that was lost

	srtt, rttvar time.Duration // zero until the first sample
	sampled      time.Time     // when the last sampled proof completed
	begun        int           // samples of the beginning that were taken

	lost     time.Duration // length when the member was lost; zero: it is in use, or an election moved its leader
	quickest least
}

// sample takes in a proof that began and completed then. A tainted one, whose
// duration holds some of the loop's own lateness, is taken only when there was no
// better for as long as the ceiling: a machine that is slow for good needs a wide
// window.
func (w *window) sample(begin, end time.Time, tainted bool) {
	first := w.sampled.IsZero()
	if !first && (begin.Before(w.sampled) || tainted && end.Sub(w.sampled) < w.ceiling) {
		return
	}
	rtt := max(end.Sub(begin), 0)
	if w.begun < beginning {
		w.begun++
	}
	if first || w.begun < beginning && rtt < w.srtt {
		w.srtt, w.rttvar = rtt, rtt/2
	} else {
		w.rttvar += ((w.srtt - rtt).Abs() - w.rttvar) / 4
		w.srtt += (rtt - w.srtt) / 8
	}
	w.sampled = end
	w.quickest.sample(end, rtt, quickestOver*w.ceiling)
}

// beginning is for how many samples a quicker one is a new first one. The first proof may have
// waited for etcd to start, or for a leader, and would be remembered for seconds.
const beginning = 5

// quickestOver is for how many ceilings the quickest proof counts, at least; twice that
// at most. A disk that stands still for up to a ceiling lets some through in between.
const quickestOver = 2

// length is between floor and ceiling.
func (w *window) length() time.Duration {
	length := w.clamp(w.srtt + 4*w.rttvar + w.slack)
	if w.lost == 0 {
		return length
	}
	return min(length, max(w.lost, w.clamp(2*w.quickest.value()+w.slack)))
}

func (w *window) clamp(d time.Duration) time.Duration { return min(max(d, w.floor), w.ceiling) }

// lose holds the window to what it is now, until use or moved.
func (w *window) lose() { w.lost = w.length() }

// use lets it follow all round trips again: the member is back.
func (w *window) use() { w.lost = 0 }

// moved lets it as well: the leader may be another now, and farther away.
func (w *window) moved() { w.lost = 0 }

// least is the least of the samples of late, in two spans of time: that of the newest
// sample, and the one before it.
type least struct {
	began     time.Time // when the newer span began
	now, past time.Duration
}

func (l *least) sample(at time.Time, d, span time.Duration) {
	switch age := at.Sub(l.began); {
	case l.began.IsZero() || age >= 2*span:
		l.began, l.now, l.past = at, d, d
	case age >= span:
		l.began, l.now, l.past = l.began.Add(span), d, l.now
	default:
		l.now = min(l.now, d)
	}
}

func (l *least) value() time.Duration { return min(l.now, l.past) }
