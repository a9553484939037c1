package prober

import "time"

// roundTrip estimates how long an answer takes, by smoothed mean and mean deviation
// as TCP does.
type roundTrip struct {
	mean, deviation time.Duration
}

// sample takes one in. A mean of zero is none, so that nothing counts as less than 1 ns.
func (r *roundTrip) sample(d time.Duration) {
	d = max(d, 1)
	if r.mean == 0 {
		r.mean, r.deviation = d, d/2
		return
	}
	off := r.mean - d
	if off < 0 {
		off = -off
	}
	r.deviation += (off - r.deviation) / 4
	r.mean = max(r.mean+(d-r.mean)/8, 1)
}

// deadline is how long to wait for an answer until its absence means something.
func (r *roundTrip) deadline(floor, ceiling time.Duration) time.Duration {
	return min(max(floor, r.mean+4*r.deviation), max(floor, ceiling))
}
