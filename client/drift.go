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
	d.replan(v)
	keep := d.planned[:0]
	for _, p := range d.planned {
		if !p.at.After(v.now) {
			if v.endpoint(p.to).grade == prober.Healthy {
				now = append(now, p)
				continue
			}
			p.at = d.moment(v.now) // in an election: not now, and not all together after it
		}
		keep = append(keep, p)
		if in := p.at.Sub(v.now); next == 0 || in < next {
			next = in
		}
	}
	d.planned = keep
	return now, next
}

// moment is one at which a stream goes.
func (d *drifter) moment(now time.Time) time.Time {
	return now.Add(time.Duration(d.rand() * float64(d.over)))
}

// replan drops the plans that make no sense any more: the target was given up,
// or has its share by now. Where it is the stream that is gone, because the
// member that it was on was given up in its turn, others go in its place.
func (d *drifter) replan(v view) {
	if len(d.planned) == 0 {
		return
	}
	on := make(map[*picker.Call]string)
	for _, e := range v.endpoints {
		for _, c := range e.calls {
			on[c.call] = e.address
		}
	}
	var short []string
	d.planned = slices.DeleteFunc(d.planned, func(p drifting) bool {
		there, wanted := on[p.call] == p.from, v.endpoint(p.to).inUse()
		if wanted && !there && !slices.Contains(short, p.to) {
			short = append(short, p.to)
		}
		return !there || !wanted
	})
	for _, to := range short {
		d.plan(v, to)
	}
	s := d.sharing(v)
	d.planned = slices.DeleteFunc(d.planned, func(p drifting) bool {
		if float64(s.coming[p.to]+s.staying[p.to])-s.share < 1 {
			return false
		}
		s.coming[p.to]--
		return true
	})
}

// sharing is how the streams that drift are spread over the endpoints in use.
type sharing struct {
	share   float64                   // of each
	staying map[string]int            // streams that are not planned to leave
	coming  map[string]int            // streams that are planned to come
	movable map[string][]*picker.Call // the streams that stay
}

func (d *drifter) sharing(v view) sharing {
	s := sharing{staying: make(map[string]int), coming: make(map[string]int), movable: make(map[string][]*picker.Call)}
	planned := make(map[*picker.Call]bool, len(d.planned))
	for _, p := range d.planned {
		planned[p.call] = true
		s.coming[p.to]++
	}
	all, members := 0, 0
	for _, e := range v.endpoints {
		if !e.inUse() {
			continue
		}
		members++
		for _, c := range e.calls {
			if !drifts(c.class) {
				continue
			}
			all++
			if !planned[c.call] {
				s.staying[e.address]++
				s.movable[e.address] = append(s.movable[e.address], c.call)
			}
		}
	}
	if members > 0 {
		s.share = float64(all) / float64(members)
	}
	return s
}

// most is the endpoint with the most streams that stay, other than to; "" where
// nobody has more than its share.
func (s *sharing) most(v view, to string) string {
	most := ""
	for _, e := range v.endpoints {
		if n := s.staying[e.address]; e.address != to && float64(n) > s.share && n > s.staying[most] {
			most = e.address
		}
	}
	return most
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

// plan picks streams for the endpoint that returned, from those that have the
// most.
func (d *drifter) plan(v view, to string) {
	s := d.sharing(v)
	missing := s.share - float64(s.staying[to]+s.coming[to])
	n := int(math.Floor(missing))
	if frac := missing - math.Floor(missing); missing > 0 && d.rand() < frac {
		n++
	}
	for ; n > 0; n-- {
		from := s.most(v, to)
		if from == "" {
			return
		}
		calls := s.movable[from]
		i := int(d.rand() * float64(len(calls)))
		d.planned = append(d.planned, drifting{at: d.moment(v.now), call: calls[i], from: from, to: to})
		s.movable[from] = slices.Delete(calls, i, i+1)
		s.staying[from]--
	}
}

// inUse reports whether an endpoint has not been given up: only then does it
// return. One that is suspect for a moment, as all are in an election, keeps its
// streams, and those that are to come to it.
func (e endpointView) inUse() bool {
	return e.ready && e.grade != prober.Unhealthy && e.grade != prober.Parked
}

func drifts(c picker.Class) bool { return c == picker.ClassWatch || c == picker.ClassLease }
