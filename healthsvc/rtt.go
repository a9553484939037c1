package healthsvc

import "time"

// deadlineCeiling bounds what a slow path can make of one poll's deadline.
const deadlineCeiling = 2 * time.Second

// patience is how long a poll may take: the smoothed round trip of the path and four deviations,
// as TCP waits for an acknowledgement (RFC 6298).
type patience struct {
	floor        time.Duration
	srtt, rttvar time.Duration
	// strikes counts the polls that ran into their deadline since the last sample. Each after the
	// second doubles the deadline, or a path that has become slower than the deadline could never
	// show how slow it is. The first two do not: most often the peer is simply gone, and a second
	// miss should then come as soon as the first.
	strikes int
}

func (p *patience) sample(rtt time.Duration) {
	p.strikes = 0
	if p.srtt == 0 {
		p.srtt, p.rttvar = rtt, rtt/2
		return
	}
	p.rttvar += ((p.srtt - rtt).Abs() - p.rttvar) / 4
	p.srtt += (rtt - p.srtt) / 8
}

func (p *patience) strike() { p.strikes++ }

func (p *patience) deadline() time.Duration {
	ceiling := max(deadlineCeiling, p.floor)
	d := max(p.floor, p.srtt+4*p.rttvar)
	for i := 1; i < p.strikes && d < ceiling; i++ {
		d *= 2
	}
	return min(d, ceiling)
}
