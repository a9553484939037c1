package client

import "time"

// settling is what is known of an endpoint to avoid that proves its quorum, or did.
type settling struct {
	on    bool      // it does now
	began time.Time // of the newest stretch
	// relapse is when it lost its quorum again; zero: it has not since it settled for a
	// hold. Relapses with less between them are one, as they are to who condemns.
	relapse time.Time
}

// followSettling notes when each endpoint is settling.
func (m *mover) followSettling(v view) {
	settled := make(map[string]settling)
	for _, e := range v.endpoints {
		s, known := m.settled[e.address]
		switch {
		case !avoided(e.grade):
			continue
		case e.settling && !s.on:
			s.on, s.began = true, v.now
		case e.settling:
			if v.now.Sub(s.began) >= m.hold {
				s.relapse = time.Time{}
			}
		case !known:
			continue
		case s.on:
			s.on = false
			if s.relapse.IsZero() {
				s.relapse = v.now
			}
		}
		settled[e.address] = s
	}
	m.settled = settled
}

// settles reports whether an endpoint settles, or did so until a moment ago: one that is
// still condemned and loses its quorum again is unhealthy without a hold, and so would be
// left in any election for whoever notices it last.
func (m *mover) settles(now time.Time, e *endpointView) bool {
	s, was := m.settled[e.address]
	return s.on || was && now.Sub(s.relapse) < m.hold
}

// lost reports whether a mutation on an endpoint that settles was lost with its quorum: it
// was sent before, and does not come back with it.
func (m *mover) lost(now time.Time, e *endpointView, c callView) bool {
	return proposes(c) && c.picked.Before(m.settled[e.address].began) && now.Sub(c.picked) >= 2*m.election
}
