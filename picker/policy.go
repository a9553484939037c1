package picker

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/endpointsharding"
	"google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// Name is the name of the policy in a gRPC service config.
const Name = "quorumwise"

var logger = grpclog.Component(Name)

func init() { balancer.Register(builder{}) }

// builder makes the instances; gRPC has one for each ClientConn that is not idle.
type builder struct{}

func (builder) Name() string { return Name }

func (builder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	p := &policy{ClientConn: cc, target: opts.Target.String()}
	p.child = endpointsharding.NewBalancer(p, opts, balancer.Get(pickfirst.Name).Build, endpointsharding.Options{})
	return p
}

// lbConfig is the config of the policy.
type lbConfig struct {
	serviceconfig.LoadBalancingConfig `json:"-"`
	// Hub is the id of the hub. With none, or one that is not alive, the policy
	// is plain round robin: the client that the config was made for may be gone
	// while a connection of its still serves somebody.
	Hub string `json:"hub"`
}

// ParseConfig refuses what cannot have come from a hub; grpc.NewClient then
// returns the error, before any call is made.
func (builder) ParseConfig(js json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	cfg := &lbConfig{}
	if err := json.Unmarshal(js, cfg); err != nil {
		return nil, fmt.Errorf("%s: config %s: want an object like {\"hub\":\"1\"} from Hub.LoadBalancingConfig: %w", Name, js, err)
	}
	return cfg, nil
}

// policy is one instance: round robin over gRPC's own parts, with a choice by
// grade on top when it is the main instance of a hub.
//
// Lock order: feed, the locks of the policies beneath, mu, Hub.mu, ledger.mu.
// mu is held while gRPC takes a picker, so that an older one never replaces a
// newer one; gRPC does not call back from there.
type policy struct {
	balancer.ClientConn
	target string
	child  balancer.Balancer

	// feed serialises what is handed to the policies beneath: updates come from
	// gRPC one at a time, but Reconnect comes from anybody.
	feed   sync.Mutex
	closed bool
	given  resolver.State // newest
	// missed is the id of the hub that was last looked for in vain, so that the
	// log has one line for it.
	missed string

	// table is what picks are made from; written by publish.
	table atomic.Pointer[table]
	// opening makes choosing an endpoint for a stream and filing it one step,
	// else streams that open together would all see the same one as the least
	// used. Held for a moment, and never by calls that are not streams.
	opening sync.Mutex

	mu    sync.Mutex
	hub   *Hub // nil: none
	order []string
	// state is the newest from below, valid when it has a picker.
	state balancer.State
	// holding is the address that Reconnect is about to put in again: a state
	// without it is not for anybody to see. "": none.
	holding string
}

var errClosed = errors.New(Name + ": the policy is closed")

// UpdateClientConnState takes endpoints and config from gRPC.
func (p *policy) UpdateClientConnState(s balancer.ClientConnState) error {
	p.feed.Lock()
	defer p.feed.Unlock()
	if p.closed {
		return errClosed
	}
	p.given = pickfirst.EnableHealthListener(s.ResolverState)
	addresses := keysOf(p.given.Endpoints)
	p.join(p.hubOf(s.BalancerConfig), addresses)
	return p.child.UpdateClientConnState(balancer.ClientConnState{ResolverState: p.given})
}

// hubOf finds the hub of a config, nil if there is none; feed is held.
func (p *policy) hubOf(c serviceconfig.LoadBalancingConfig) *Hub {
	cfg, ok := c.(*lbConfig)
	if !ok || cfg.Hub == "" {
		return nil
	}
	h := lookupHub(cfg.Hub)
	if h == nil && cfg.Hub != p.missed {
		p.missed = cfg.Hub
		logger.Warningf("%s: no hub %q is alive in this process (closed?): plain round robin", p.target, cfg.Hub)
	}
	return h
}

// join takes the seat at the hub, and leaves that at another.
func (p *policy) join(h *Hub, addresses []string) {
	p.mu.Lock()
	old := p.hub
	p.hub, p.order = h, addresses
	p.mu.Unlock()
	if old != nil && old != h {
		old.reseat(func(r *roster) { r.leave(p) })
	}
	if h != nil {
		h.reseat(func(r *roster) { r.announce(p, addresses) })
	}
}

// UpdateState takes the state of the connections from the policy beneath, which
// holds its own lock meanwhile: nothing here may call down.
func (p *policy) UpdateState(s balancer.State) {
	p.mu.Lock()
	if p.holding != "" && !hasChild(s.Picker, p.holding) {
		p.mu.Unlock()
		return
	}
	p.state = s
	tell := p.publish(p.build())
	p.mu.Unlock()
	tell()
}

// refresh looks again at the grades and at the part this instance has.
func (p *policy) refresh() {
	p.mu.Lock()
	if p.state.Picker == nil {
		p.mu.Unlock()
		return
	}
	tell := func() {}
	if t := p.build(); !t.sameGrades(p.table.Load()) {
		tell = p.publish(t)
	}
	p.mu.Unlock()
	tell()
}

// build makes the table of now; mu is held.
func (p *policy) build() *table {
	t := newTable(p.state)
	if p.hub == nil {
		return t
	}
	children := inOrder(endpointsharding.ChildStatesFromPicker(p.state.Picker), p.order)
	addresses := make([]string, len(children))
	for i, c := range children {
		addresses[i] = keyOf(c.Endpoint).Addr
	}
	ledgers, ok := p.hub.books(p, addresses)
	if !ok {
		return t
	}
	t.graded, t.hub = true, p.hub
	for i, c := range children {
		t.seats = append(t.seats, place{
			address:    addresses[i],
			serverName: keyOf(c.Endpoint).ServerName,
			candidate:  candidate{grade: p.hub.grade(addresses[i]), state: c.State.ConnectivityState},
			picker:     c.State.Picker,
			ledger:     ledgers[i],
		})
	}
	t.decide()
	return t
}

// publish makes the table the one that picks are made from, and wakes the picks
// that wait; mu is held. What it returns is to be called without it.
func (p *policy) publish(t *table) (tell func()) {
	old := p.table.Swap(t)
	p.ClientConn.UpdateState(balancer.State{ConnectivityState: t.state, Picker: picker{p}})
	h := p.hub
	if h == nil {
		return func() {}
	}
	if t.graded {
		h.sweep(p, t)
	}
	if t.sameEndpoints(old) {
		return func() {}
	}
	return h.changes.changed
}

// endpoints lists what the newest table shows.
func (p *policy) endpoints() []Endpoint {
	t := p.table.Load()
	if t == nil || !t.graded {
		return nil
	}
	out := make([]Endpoint, len(t.seats))
	for i, s := range t.seats {
		out[i] = Endpoint{Address: s.address, ServerName: s.serverName, State: s.state, Calls: s.ledger.counts()}
	}
	return out
}

// reconnect takes an endpoint out and puts it in again. The policy beneath
// closes the old connection gracefully and opens a new one at once; what it
// reports in between is kept from gRPC, else calls would fail that only have to
// wait.
func (p *policy) reconnect(address string) bool {
	p.feed.Lock()
	defer p.feed.Unlock()
	if p.closed {
		return false
	}
	rest := slices.DeleteFunc(slices.Clone(p.given.Endpoints), func(e resolver.Endpoint) bool {
		return keyOf(e).Addr == address
	})
	if len(rest) == len(p.given.Endpoints) {
		return false
	}
	without := p.given
	without.Endpoints = rest
	p.hold(address)
	defer p.hold("")
	// It complains when nothing is left; the next step mends that.
	_ = p.child.UpdateClientConnState(balancer.ClientConnState{ResolverState: without})
	return p.child.UpdateClientConnState(balancer.ClientConnState{ResolverState: p.given}) == nil
}

func (p *policy) hold(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holding = address
}

func hasChild(from balancer.Picker, address string) bool {
	for _, c := range endpointsharding.ChildStatesFromPicker(from) {
		if keyOf(c.Endpoint).Addr == address {
			return true
		}
	}
	return false
}

// ResolverError passes on; the endpoints known stay in use.
func (p *policy) ResolverError(err error) { p.child.ResolverError(err) }

// UpdateSubConnState is not used any more by gRPC.
func (p *policy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle has connections made that are not.
func (p *policy) ExitIdle() { p.child.ExitIdle() }

// Close gives up the seat; another instance may become the main one.
func (p *policy) Close() {
	p.feed.Lock()
	defer p.feed.Unlock()
	p.closed = true
	p.child.Close()
	p.join(nil, nil)
}
