package client

import (
	"time"

	"github.com/quorumwise/quorumwise/prober"
)

// vanished holds the endpoints that are out of reach, and since when; zero: they were given
// up for it. A connection that bytes vanished on stands in TCP's retransmission backoff, or
// in gRPC's, for seconds after the network is back: a new one is taken then.
type vanished map[string]time.Time

// vanishedLong is how long an endpoint must have been out of reach for that where it is not
// given up, because all of them were. TCP repeats a packet after 0.2 s, 0.4 s, 0.8 s.
const vanishedLong = time.Second

// returned takes note of a verdict, and reports whether its endpoint needs a new connection.
func (l vanished) returned(v prober.Verdict, now time.Time) bool {
	since, gone := l[v.Address]
	switch {
	case !avoided(v.Grade):
		delete(l, v.Address)
		return gone && now.Sub(since) >= vanishedLong
	case v.Reason != prober.ReasonUnreachable: // its path lives again
		if now.Sub(since) < vanishedLong {
			delete(l, v.Address)
		} else if gone {
			l[v.Address] = time.Time{}
		}
	case v.Grade == prober.Unhealthy:
		l[v.Address] = time.Time{}
	case !gone:
		l[v.Address] = now
	}
	return false
}
