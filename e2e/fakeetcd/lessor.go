package fakeetcd

import (
	"slices"
	"time"
)

// minTTL is the shortest life that etcd grants at an election timeout of 1 s.
const minTTL = 2

// grant is one lease.
type grant struct {
	ttl    int64 // seconds
	expiry time.Time
}

// lessor keeps the leases by the leader's clock. No lock; now comes in.
type lessor struct {
	grants map[int64]*grant
	lastID int64
}

func newLessor() *lessor { return &lessor{grants: make(map[int64]*grant), lastID: 0x7a5e0000} }

// grant adds a lease, under an id of its own when id is 0. ok is false if the id is taken.
func (l *lessor) grant(id, ttl int64, now time.Time) (granted, life int64, ok bool) {
	if id == 0 {
		l.lastID++
		id = l.lastID
	}
	if l.grants[id] != nil {
		return 0, 0, false
	}
	ttl = max(ttl, minTTL)
	l.grants[id] = &grant{ttl: ttl, expiry: now.Add(time.Duration(ttl) * time.Second)}
	return id, ttl, true
}

func (l *lessor) exists(id int64) bool { return l.grants[id] != nil }

// acknowledge answers a keepalive, and starts the lease's life anew if the member that was asked
// leads. 0: there is no such lease.
func (l *lessor) acknowledge(id int64, leads bool, now time.Time) int64 {
	g := l.grants[id]
	switch {
	case g == nil:
		return 0
	case leads:
		g.expiry = now.Add(time.Duration(g.ttl) * time.Second)
	}
	return g.ttl
}

// promote gives every lease its full life and one election timeout more: a new leader does not
// know when the old one renewed them.
func (l *lessor) promote(now time.Time, election time.Duration) {
	for _, g := range l.grants {
		g.expiry = now.Add(time.Duration(g.ttl)*time.Second + election)
	}
}

// due returns the leases that are over, in order of id.
func (l *lessor) due(now time.Time) []int64 {
	var ids []int64
	for id, g := range l.grants {
		if !now.Before(g.expiry) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// next returns when the first lease after now is over; zero: none is.
func (l *lessor) next(now time.Time) time.Time {
	var first time.Time
	for _, g := range l.grants {
		if g.expiry.After(now) && (first.IsZero() || g.expiry.Before(first)) {
			first = g.expiry
		}
	}
	return first
}
