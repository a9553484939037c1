package client

import (
	"math"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/picker"
	"github.com/quorumwise/quorumwise/prober"
)

// drifting is one stream that goes to a member that returned, at its time.
type drifting struct {
	at   time.Time
	call *picker.Call
	from string
	to   string
}

// drifter brings streams back to a member that returned: as many as make its
// share, one by one over the rebalance time, so that the last member restarted
// does not stay empty. A client with few streams moves one with the probability
// that its share asks for. It is a pure core owned by one goroutine.
type drifter struct {
	over time.Duration // negative: off
	rand func() float64

	known   map[string]bool // endpoints seen before, so that the first connection is no return
	away    map[string]bool // endpoints that were given up or lost their connection
	planned []drifting
}

// decide returns the streams that go now, and how long until the next does (0: none waits).
func (d *drifter) decide(v view) (now []drifting, next time.Duration) {
	if d.over < 0 {
		return nil, 0
	}
	for _, to := range d.returned(v) {
		d.plan(v, to)
	}
	keep := d.planned[:0]
	for _, p := range d.planned {
		switch {
		case !d.still(v, p):
		case !p.at.After(v.now):
			now = append(now, p)
		default:
			keep = append(keep, p)
			if in := p.at.Sub(v.now); next == 0 || in < next {
				next = in
			}
		}
	}
	d.planned = keep
	return now, next
}

// returned are the endpoints that were away and are in use again. A suspicion
// that passed is no return: an election moves no stream.
func (d *drifter) returned(v view) []string {
	if d.known == nil {
		d.known, d.away = make(map[string]bool), make(map[string]bool)
	}
	var back []string
	for _, e := range v.endpoints {
		switch {
		case e.grade == prober.Unhealthy || e.grade == prober.Parked || (d.known[e.address] && !e.ready):
			d.away[e.address] = true
		case e.ready && e.grade == prober.Healthy && d.away[e.address]:
			delete(d.away, e.address)
			back = append(back, e.address)
		}
		if e.ready {
			d.known[e.address] = true
		}
	}
	return back
}

// plan picks streams for the endpoint that returned, from those that have more
// than their share.
func (d *drifter) plan(v view, to string) {
	var all, have, members int
	var movable []drifting
	for _, e := range v.endpoints {
		if !e.ready || e.grade != prober.Healthy {
			continue
		}
		members++
		for _, c := range e.calls {
			if !drifts(c.class) {
				continue
			}
			all++
			planned := slices.IndexFunc(d.planned, func(p drifting) bool { return p.call == c.call })
			if e.address == to || planned >= 0 && d.planned[planned].to == to {
				have++
				continue
			}
			if planned >= 0 {
				continue // on its way to another that returned
			}
			movable = append(movable, drifting{call: c.call, from: e.address, to: to})
		}
	}
	if members == 0 {
		return
	}
	missing := float64(all)/float64(members) - float64(have)
	n := int(math.Floor(missing))
	if frac := missing - math.Floor(missing); missing > 0 && d.rand() < frac {
		n++
	}
	for ; n > 0 && len(movable) > 0; n-- {
		i := int(d.rand() * float64(len(movable)))
		p := movable[i]
		movable = slices.Delete(movable, i, i+1)
		p.at = v.now.Add(time.Duration(d.rand() * float64(d.over)))
		d.planned = append(d.planned, p)
	}
}

// still reports whether a plan makes sense: the stream is where it was, and the
// endpoint it would go to is in use.
func (d *drifter) still(v view, p drifting) bool {
	there, target := false, false
	for _, e := range v.endpoints {
		switch e.address {
		case p.from:
			there = slices.ContainsFunc(e.calls, func(c callView) bool { return c.call == p.call })
		case p.to:
			target = e.ready && e.grade == prober.Healthy
		}
	}
	return there && target
}

func drifts(c picker.Class) bool { return c == picker.ClassWatch || c == picker.ClassLease }
