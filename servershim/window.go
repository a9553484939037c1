package servershim

import "time"

// window is how old the newest proof may be before quorum counts as lost. It
// follows the round trip of proofs as TCP's retransmission timer does (RFC 6298),
// so that a cluster across regions is not called dead and one on a LAN is judged
// fast. Like TCP it measures one round trip at a time: proofs overlap, and those
// that one stall held up together would otherwise count as many.
type window struct {
	floor, ceiling time.Duration
	slack          time.Duration // two intervals: the wait for the next proof, and one that was lost

	srtt, rttvar time.Duration // zero until the first sample
	sampled      time.Time     // when the last sampled proof completed
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
	if first {
		w.srtt, w.rttvar = rtt, rtt/2
	} else {
		w.rttvar += ((w.srtt - rtt).Abs() - w.rttvar) / 4
		w.srtt += (rtt - w.srtt) / 8
	}
	w.sampled = end
}

// length is between floor and ceiling.
func (w *window) length() time.Duration {
	return min(max(w.srtt+4*w.rttvar+w.slack, w.floor), w.ceiling)
}
