package picker

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/endpointsharding"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// table is what picks are made from: the state of one instance at one moment.
// It is replaced whole; only next moves.
type table struct {
	// fallback is gRPC's own picker for the same state. Used for everything when
	// graded is false, and when nothing is connected.
	fallback balancer.Picker
	state    connectivity.State

	// graded: this is the main instance of a living hub. The rest is empty when
	// it is not.
	graded bool
	hub    *Hub
	seats  []place // every endpoint, in the resolver's order
	choice choice
	next   atomic.Uint32
}

// place is one endpoint in a table.
type place struct {
	address    string
	serverName string
	candidate
	picker balancer.Picker
	ledger *ledger
}

// newTable starts the rotation at a random endpoint, as gRPC does, lest the
// clients of a fleet that see the same change all turn to the same one.
func newTable(s balancer.State) *table {
	t := &table{fallback: s.Picker, state: s.ConnectivityState}
	t.next.Store(rand.Uint32())
	return t
}

// decide fills in the choice.
func (t *table) decide() {
	all := make([]candidate, len(t.seats))
	for i, s := range t.seats {
		all[i] = s.candidate
	}
	t.choice = choose(all)
}

// rotate returns the endpoint whose turn it is.
func (t *table) rotate() *place {
	n := t.next.Add(1)
	return &t.seats[t.choice.best[int(n%uint32(len(t.choice.best)))]]
}

// leastStreams returns the endpoint with the fewest streams, among equals the
// one whose turn it is.
func (t *table) leastStreams() *place {
	first := t.next.Add(1)
	best := t.choice.best
	var least *place
	var fewest int
	for i := range best {
		s := &t.seats[best[(int(first%uint32(len(best)))+i)%len(best)]]
		if n := s.ledger.streams(); least == nil || n < fewest {
			least, fewest = s, n
		}
	}
	return least
}

// among returns the endpoint of that address if calls may go to it, else nil.
func (t *table) among(address string) *place {
	for _, i := range t.choice.best {
		if t.seats[i].address == address {
			return &t.seats[i]
		}
	}
	return nil
}

func (t *table) has(address string) bool {
	for i := range t.seats {
		if t.seats[i].address == address {
			return true
		}
	}
	return false
}

// sameEndpoints reports whether the two tables show the same to people who list
// endpoints.
func (t *table) sameEndpoints(o *table) bool {
	if o == nil || t.graded != o.graded || len(t.seats) != len(o.seats) {
		return false
	}
	for i, s := range t.seats {
		if s.address != o.seats[i].address || s.serverName != o.seats[i].serverName || s.state != o.seats[i].state {
			return false
		}
	}
	return true
}

// sameGrades reports whether picks from the two tables go the same way, given
// that they were made from the same state.
func (t *table) sameGrades(o *table) bool {
	if o == nil || t.graded != o.graded || len(t.seats) != len(o.seats) {
		return false
	}
	for i, s := range t.seats {
		if s.grade != o.seats[i].grade || s.ledger != o.seats[i].ledger {
			return false
		}
	}
	return true
}

// keyOf returns the address that stands for an endpoint, the first of several.
func keyOf(e resolver.Endpoint) resolver.Address {
	if len(e.Addresses) == 0 {
		return resolver.Address{}
	}
	return e.Addresses[0]
}

func keysOf(all []resolver.Endpoint) []string {
	keys := make([]string, len(all))
	for i, e := range all {
		keys[i] = keyOf(e).Addr
	}
	return keys
}

// inOrder returns the children in the resolver's order. The policy beneath
// hands them out in an order that changes each time.
func inOrder(children []endpointsharding.ChildState, order []string) []endpointsharding.ChildState {
	rank := make(map[string]int, len(order))
	for i, a := range order {
		if _, twice := rank[a]; !twice {
			rank[a] = i
		}
	}
	place := func(c endpointsharding.ChildState) int {
		if i, ok := rank[keyOf(c.Endpoint).Addr]; ok {
			return i
		}
		return len(order)
	}
	sorted := slices.Clone(children)
	slices.SortStableFunc(sorted, func(a, b endpointsharding.ChildState) int { return place(a) - place(b) })
	return sorted
}
