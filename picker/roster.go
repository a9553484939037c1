package picker

import "slices"

// roster knows the policy instances of one hub and which of them is the main
// one. It has no lock; the hub's guards it.
//
// The other ClientConns of a clientv3.Client (Dial, Maintenance) have the same
// dial options and even the same target as the main one. Only the endpoints
// tell them apart.
type roster struct {
	// configured are the addresses that SetMain gave, sorted; nil: none were.
	configured []string
	// last are the addresses of the main instance that closed last, sorted. gRPC
	// closes the policy of an idle connection and builds it again later, perhaps
	// with addresses that were never the configured ones.
	last []string
	// seats in the order of building.
	seats []*seat
	main  *seat
}

// seat is one instance's place.
type seat struct {
	owner     *policy
	addresses []string // sorted
	// claim is the best claim the instance ever had.
	claim claim
}

// claim is how well founded it is to take an instance for the main one.
type claim int

const (
	// claimNone: one endpoint, and not the configured one. Never main.
	claimNone claim = iota
	// claimLone: one endpoint, the configured one or none was configured. Another
	// connection may look the same; the first built gets it.
	claimLone
	// claimSeveral: more than one endpoint, which no side connection has.
	claimSeveral
	// claimExact: more than one endpoint, exactly those configured.
	claimExact
)

// configure sets the main instance's addresses.
func (r *roster) configure(addresses []string) {
	r.configured = sortedSet(addresses)
	for _, s := range r.seats {
		now := r.claimOf(s.addresses)
		if s == r.main && s.claim >= claimSeveral {
			now = max(now, s.claim)
		}
		s.claim = now
	}
	if r.main != nil && r.main.claim == claimNone {
		r.main = nil
	}
	r.elect()
}

// announce says which endpoints an instance has now.
func (r *roster) announce(p *policy, addresses []string) {
	s := r.seatOf(p)
	if s == nil {
		s = &seat{owner: p}
		r.seats = append(r.seats, s)
	}
	s.addresses = sortedSet(addresses)
	s.claim = max(s.claim, r.claimOf(s.addresses))
	r.elect()
}

// leave says that an instance is no more.
func (r *roster) leave(p *policy) {
	s := r.seatOf(p)
	if s == nil {
		return
	}
	r.seats = slices.DeleteFunc(r.seats, func(o *seat) bool { return o == s })
	if s == r.main {
		r.main, r.last = nil, s.addresses
	}
	r.elect()
}

// elect writes main. The one that is main stays so unless another has a better
// claim; what it is updated to later takes nothing from it.
func (r *roster) elect() {
	for _, s := range r.seats {
		if r.main == nil && s.claim > claimNone || r.main != nil && s.claim > r.main.claim {
			r.main = s
		}
	}
}

func (r *roster) claimOf(addresses []string) claim {
	exact := slices.Equal(addresses, r.configured) || slices.Equal(addresses, r.last)
	switch {
	case len(addresses) > 1 && exact:
		return claimExact
	case len(addresses) > 1:
		return claimSeveral
	case len(addresses) == 1 && (exact || r.configured == nil):
		return claimLone
	default:
		return claimNone
	}
}

// mainPolicy returns the owner of the main seat, nil when there is none.
func (r *roster) mainPolicy() *policy {
	if r.main == nil {
		return nil
	}
	return r.main.owner
}

func (r *roster) seatOf(p *policy) *seat {
	for _, s := range r.seats {
		if s.owner == p {
			return s
		}
	}
	return nil
}

func sortedSet(addresses []string) []string {
	if len(addresses) == 0 {
		return nil
	}
	s := slices.Clone(addresses)
	slices.Sort(s)
	return slices.Compact(s)
}
