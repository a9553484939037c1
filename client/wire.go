package client

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/quorumwise/quorumwise/picker"
)

// farewell is how long a connection has to say that it closes. gRPC alone waits 5 s for that,
// which is in vain where the member reads nothing and the send buffer is full.
const farewell = 500 * time.Millisecond

// partings is how many connections without a subconn are kept to be cut, the newest; an older
// one has most likely ended by itself.
const partings = 16

// policyName is the policy in the service config: that of package picker, whose connections
// are cut when they take too long to close. Only a policy sees all connections of its
// ClientConn and no other's, whatever dialer and credentials the user chose: a dialer of ours
// would go without the proxy of the environment, and credentials among the dial options are
// one for all endpoints, where clientv3's Dial goes by the endpoint's scheme.
const policyName = picker.Name + "_client"

func init() { balancer.Register(policy{}) }

// policy makes the instances; gRPC has one for each ClientConn that is not idle.
type policy struct{}

func (policy) Name() string { return policyName }

func (policy) ParseConfig(js json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	return balancer.Get(picker.Name).(balancer.ConfigParser).ParseConfig(js)
}

func (policy) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	w := &wires{open: make(map[*seat]net.Conn)}
	return wired{balancer.Get(picker.Name).Build(wiring{cc, opts.DialCreds, w}, opts), w}
}

// wired is an instance. gRPC closes it before the connections.
type wired struct {
	balancer.Balancer
	wires *wires
}

// UpdateClientConnState implements balancer.Balancer. gRPC closes a connection of an endpoint
// that left in here when it has no call, and can do nothing else for the ClientConn meanwhile,
// not even close it.
func (b wired) UpdateClientConnState(state balancer.ClientConnState) error {
	gone := b.wires.without(state.ResolverState.Endpoints)
	late := time.AfterFunc(farewell, func() { b.wires.cutSeats(gone) })
	defer late.Stop()
	return b.Balancer.UpdateClientConnState(state)
}

// Close implements balancer.Balancer. The ClientConn is closed or goes idle: no call goes on.
func (b wired) Close() {
	time.AfterFunc(farewell, b.wires.cut)
	b.Balancer.Close()
}

// wiring makes the subconns of an instance.
type wiring struct {
	balancer.ClientConn
	creds credentials.TransportCredentials // what the ClientConn has; nil: a bundle, which clientv3 cannot be given
	wires *wires
}

// NewSubConn implements balancer.ClientConn.
func (c wiring) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	if listener := opts.StateListener; listener != nil && c.creds != nil {
		s := &seat{wires: c.wires, addresses: addresses}
		//lint:ignore SA1019 what is to replace it hands data to credentials of ours; these are anybody's
		opts.CredsBundle = bundle{wire{c.creds, s}}
		opts.StateListener = func(state balancer.SubConnState) {
			if state.ConnectivityState == connectivity.Shutdown {
				s.leave()
			}
			listener(state)
		}
	}
	//lint:ignore SA1019 it warns of several addresses for one subconn
	return c.ClientConn.NewSubConn(addresses, opts)
}

// bundle hands a subconn its credentials; those of each call are the ClientConn's.
type bundle struct{ creds wire }

func (b bundle) TransportCredentials() credentials.TransportCredentials { return b.creds }
func (b bundle) PerRPCCredentials() credentials.PerRPCCredentials       { return nil }
func (b bundle) NewWithMode(string) (credentials.Bundle, error)         { return b, nil }

// wire is the credentials of a ClientConn that take note of the raw connection. Handshakes
// are where gRPC shows it. What they return is no wrapper: of a wrapped connection gRPC
// reads with a buffer that it holds for as long as the connection lives.
type wire struct {
	credentials.TransportCredentials
	seat *seat
}

// ClientHandshake implements credentials.TransportCredentials.
func (w wire) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	w.seat.take(raw)
	return w.TransportCredentials.ClientHandshake(ctx, authority, raw)
}

// Clone implements credentials.TransportCredentials.
func (w wire) Clone() credentials.TransportCredentials {
	return wire{w.TransportCredentials.Clone(), w.seat}
}

// wires are the connections of one ClientConn.
type wires struct {
	mu     sync.Mutex
	open   map[*seat]net.Conn // the newest of each subconn
	parted []net.Conn         // without a subconn, oldest first; they may have calls to end
	over   bool               // they were cut
}

// seat is a subconn's place among the wires; credentials and their clones share it.
type seat struct {
	wires     *wires
	addresses []resolver.Address
	left      bool // guarded by wires.mu
}

// take gives the seat to a connection, in place of the one before.
func (s *seat) take(raw net.Conn) {
	w := s.wires
	w.mu.Lock()
	over := w.over
	switch {
	case over:
	case s.left: // while it was being made
		w.part(raw)
	default:
		w.part(w.open[s])
		w.open[s] = raw
	}
	w.mu.Unlock()
	if over {
		raw.Close()
	}
}

// leave empties the seat of a subconn that is shut down: calls on its connection go on.
func (s *seat) leave() {
	s.wires.mu.Lock()
	defer s.wires.mu.Unlock()
	s.left = true
	s.wires.part(s.wires.open[s])
	delete(s.wires.open, s)
}

// part keeps a connection that has lost its seat, nil for none; mu is held.
func (w *wires) part(raw net.Conn) {
	if raw == nil {
		return
	}
	if len(w.parted) == partings {
		w.parted = slices.Delete(w.parted, 0, 1)
	}
	w.parted = append(w.parted, raw)
}

// without returns the seats whose subconn is for none of the endpoints.
func (w *wires) without(endpoints []resolver.Endpoint) (gone []*seat) {
	stay := make(map[string]bool)
	for _, e := range endpoints {
		for _, a := range e.Addresses {
			stay[a.Addr] = true
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.open {
		if !slices.ContainsFunc(s.addresses, func(a resolver.Address) bool { return stay[a.Addr] }) {
			gone = append(gone, s)
		}
	}
	return gone
}

// cutSeats closes the connections of some seats.
func (w *wires) cutSeats(seats []*seat) {
	w.mu.Lock()
	var cut []net.Conn
	for _, s := range seats {
		if raw, ok := w.open[s]; ok {
			cut = append(cut, raw)
			delete(w.open, s)
		}
	}
	w.mu.Unlock()
	closeAll(cut)
}

// cut closes the connections, and any that is still being made.
func (w *wires) cut() {
	w.mu.Lock()
	cut := append(slices.Collect(maps.Values(w.open)), w.parted...)
	w.open, w.parted, w.over = nil, nil, true
	w.mu.Unlock()
	closeAll(cut)
}

func closeAll(connections []net.Conn) {
	for _, raw := range connections {
		raw.Close()
	}
}
