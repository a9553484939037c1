package picker

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/connectivity"
)

// Hub is what the policy instances of one client share: grades come in,
// endpoints and the calls in flight on them can be seen. Made by [NewHub]; all
// methods may be used by any goroutine.
type Hub struct {
	id      string
	changes *notifier
	closed  atomic.Bool
	// grades is replaced whole, the map is never written.
	grades atomic.Pointer[map[string]Grade]
	// hints of Prefer, nil where none waits to be used.
	hints [classes]atomic.Pointer[string]

	// mu is taken after policy.mu, never before; nothing is called with it held.
	mu      sync.Mutex
	roster  roster
	ledgers map[string]*ledger
}

// Endpoint is one endpoint of the main connection.
type Endpoint struct {
	// Address as gRPC dials it, and the key of everything here.
	Address string
	// ServerName that the certificate must bear, "" where the resolver gave none.
	ServerName string
	// State of the connection.
	State connectivity.State
	// Calls in flight by [Class]: Calls[ClassRead] is how many reads there are. To range
	// over it, for class, n := range e.Calls, and Class(class) is the class of the n calls.
	Calls [classes]int
}

// Streams returns how many of the calls are streams.
func (e Endpoint) Streams() int {
	return e.Calls[ClassWatch] + e.Calls[ClassLease] + e.Calls[ClassStream]
}

// NewHub returns a hub under a new id. It lives until Close.
func NewHub() *Hub {
	h := &Hub{changes: newNotifier(), ledgers: make(map[string]*ledger)}
	h.grades.Store(new(map[string]Grade))
	registerHub(h)
	return h
}

// Close parts the hub from the policy: its instances go on as plain round
// robin, and instances built from now on are so from the start. Calls in flight
// stay as they are and can still be ended. Close waits for the OnChange
// function, so it must not be called from there.
func (h *Hub) Close() {
	unregisterHub(h)
	h.closed.Store(true)
	for _, p := range h.policies() {
		p.refresh()
	}
	h.changes.close()
}

// ID returns the id under which the policy finds the hub.
func (h *Hub) ID() string { return h.id }

// LoadBalancingConfig returns the value of loadBalancingConfig in a gRPC service
// config that makes a connection use this hub.
func (h *Hub) LoadBalancingConfig() string {
	return `[{"` + Name + `":{"hub":"` + h.id + `"}}]`
}

// SetMain gives the addresses, as gRPC dials them, that the main connection has
// at first. To be called before the connection is made. A connection is the
// main one when it has exactly these, or when it has several and no other has
// exactly these; once it is, it stays so whatever the resolver makes of it,
// until it is closed or goes idle. All other connections are left alone: plain
// round robin, no grades, not listed.
//
// With a single address a side connection to it looks the same, and the one
// that is built first is taken for the main one. Without SetMain any connection
// can be.
func (h *Hub) SetMain(addresses []string) {
	h.reseat(func(r *roster) { r.configure(addresses) })
}

// SetGrades replaces all grades; an address that is missing is [Unknown]. When
// it returns every new pick obeys the new grades, and every call that was picked
// by the old ones is listed by [Hub.Calls].
func (h *Hub) SetGrades(grades map[string]Grade) {
	own := maps.Clone(grades)
	h.grades.Store(&own)
	if p := h.main(); p != nil {
		p.refresh()
	}
}

// Begin registers a call and returns the context to make it with, which End and
// Finish cancel. Finish must be called when the call is over. The method is
// kept for people to read; nothing is decided by it.
func (h *Hub) Begin(ctx context.Context, class Class, method string) (context.Context, *Call) {
	return begin(ctx, h, class, method)
}

// Endpoints returns the main connection's endpoints in the order of the
// resolver, nil while there is no such connection: before the first call, and
// while gRPC has it idle.
func (h *Hub) Endpoints() []Endpoint {
	p := h.main()
	if p == nil || h.closed.Load() {
		return nil
	}
	return p.endpoints()
}

// OnChange sets the function that is called after the set of endpoints or the
// connectivity of one has changed, and once at the beginning; nil for none. It
// is called by a goroutine of the hub, one call at a time, no lock held. Several
// changes may make one call. It may use the hub, but not Close it.
func (h *Hub) OnChange(call func()) { h.changes.set(call) }

// Calls returns the calls in flight on an endpoint that have not been ended,
// oldest first, also when the endpoint has left the set. Calls of other
// connections than the main one are nowhere listed.
func (h *Hub) Calls(address string) []*Call {
	h.mu.Lock()
	l := h.ledgers[address]
	h.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.calls()
}

// Prefer makes the next call of a class go to an endpoint, if by then it is
// connected and of the best grade there is; if not, or if there is no such
// endpoint, the hint is spent and the call goes where it would have gone. A later
// hint for the class replaces one that has not been used. A class that is none of
// the constants counts as [ClassOther].
func (h *Hub) Prefer(address string, class Class) {
	h.hints[class.known()].Store(&address)
}

// Reconnect gives an endpoint of the main connection a new connection in place
// of what it has, at once and whatever the backoff. The old one is closed when
// the calls on it are over. To be used when an endpoint that could not be
// reached is back: on the old connection TCP may wait many seconds before it
// tries again. It reports whether the endpoint exists: false, and nothing done, for
// an unknown address, while there is no main connection, and after Close.
//
// Until the new connection stands the endpoint is not connected; if it is the
// only one, new calls wait.
func (h *Hub) Reconnect(address string) bool {
	p := h.main()
	if p == nil || h.closed.Load() {
		return false
	}
	return p.reconnect(address)
}

// takeHint spends the hint for a class.
func (h *Hub) takeHint(class Class) string {
	if h.hints[class].Load() == nil {
		return ""
	}
	hint := h.hints[class].Swap(nil)
	if hint == nil {
		return ""
	}
	return *hint
}

func (h *Hub) grade(address string) Grade { return (*h.grades.Load())[address] }

func (h *Hub) main() *policy {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.roster.mainPolicy()
}

func (h *Hub) policies() []*policy {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*policy, 0, len(h.roster.seats))
	for _, s := range h.roster.seats {
		all = append(all, s.owner)
	}
	return all
}

// reseat changes the roster and has those whose part has changed look again:
// first the one that was main, so that two never file at a time.
func (h *Hub) reseat(change func(*roster)) {
	h.mu.Lock()
	before := h.roster.mainPolicy()
	change(&h.roster)
	after := h.roster.mainPolicy()
	h.mu.Unlock()
	if before == after {
		return
	}
	if before != nil {
		before.refresh()
	}
	if after != nil {
		after.refresh()
	}
	h.changes.changed()
}

// books returns the ledgers of the endpoints for the main instance; ok is false
// for the others, which have none.
func (h *Hub) books(p *policy, addresses []string) (ledgers []*ledger, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed.Load() || h.roster.mainPolicy() != p {
		return nil, false
	}
	ledgers = make([]*ledger, len(addresses))
	for i, a := range addresses {
		if h.ledgers[a] == nil {
			h.ledgers[a] = &ledger{address: a}
		}
		ledgers[i] = h.ledgers[a]
	}
	return ledgers, true
}

// sweep drops the empty ledgers of endpoints that the main instance no longer
// has, once no pick can reach them.
func (h *Hub) sweep(p *policy, t *table) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.roster.mainPolicy() != p || len(h.ledgers) == len(t.seats) {
		return
	}
	for a, l := range h.ledgers {
		if !t.has(a) && l.retire() {
			delete(h.ledgers, a)
		}
	}
}
