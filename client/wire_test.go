package client

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
)

// subConns takes the place of gRPC: it has no connections of its own.
type subConns struct {
	balancer.ClientConn
	made balancer.NewSubConnOptions // the newest
}

func (c *subConns) NewSubConn(_ []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	c.made = opts
	return nil, nil
}

// slowBalancer is a policy that takes a time to close what left, and has nothing beneath.
type slowBalancer struct {
	balancer.Balancer
	takes time.Duration
}

func (b *slowBalancer) UpdateClientConnState(balancer.ClientConnState) error {
	time.Sleep(b.takes)
	return nil
}

func (*slowBalancer) Close() {}

// wireScene is an instance of the policy.
type wireScene struct {
	t      *testing.T
	below  *subConns
	slow   *slowBalancer
	policy wired
	conns  wiring
	states []connectivity.State // what the policy was told of its subconns
}

func inWireScene(t *testing.T, test func(*wireScene)) {
	synctest.Test(t, func(t *testing.T) {
		w := &wires{open: make(map[*seat]net.Conn)}
		s := &wireScene{t: t, below: &subConns{}, slow: &slowBalancer{}}
		s.policy = wired{s.slow, w}
		s.conns = wiring{s.below, insecure.NewCredentials(), w}
		test(s)
	})
}

// subConn makes one, and returns its credentials and what tells of its state.
func (s *wireScene) subConn(addresses ...resolver.Address) (credentials.TransportCredentials, func(connectivity.State)) {
	s.t.Helper()
	opts := balancer.NewSubConnOptions{StateListener: func(state balancer.SubConnState) { s.states = append(s.states, state.ConnectivityState) }}
	if _, err := s.conns.NewSubConn(addresses, opts); err != nil {
		s.t.Fatal(err)
	}
	made := s.below.made
	//lint:ignore SA1019 see wiring
	creds := made.CredsBundle.TransportCredentials()
	return creds, func(state connectivity.State) { made.StateListener(balancer.SubConnState{ConnectivityState: state}) }
}

// rawConn is one that gRPC dialled; it only counts.
type rawConn struct {
	net.Conn
	closed atomic.Int32
}

func (c *rawConn) Close() error { c.closed.Add(1); return nil }

func (s *wireScene) connect(creds credentials.TransportCredentials) *rawConn {
	s.t.Helper()
	raw := &rawConn{}
	got, info, err := creds.ClientHandshake(context.Background(), "a", raw)
	if err != nil || got != raw || info == nil || info.AuthType() != "insecure" {
		s.t.Fatalf("the handshake brings %v, %v, %v; want what the credentials do by themselves", got, info, err)
	}
	return raw
}

func TestConnectionsAreCutHalfASecondAfterTheirPolicyIsClosed(t *testing.T) {
	inWireScene(t, func(s *wireScene) {
		first, _ := s.subConn()
		second, _ := s.subConn()
		a, b := s.connect(first), s.connect(second.Clone())
		s.policy.Close()
		time.Sleep(farewell - time.Nanosecond)
		synctest.Wait()
		if a.closed.Load()+b.closed.Load() != 0 {
			t.Errorf("closed %d and %d times in the time that they have, want none", a.closed.Load(), b.closed.Load())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if a.closed.Load() != 1 || b.closed.Load() != 1 {
			t.Errorf("closed %d and %d times, want both once, also that of a clone of the credentials", a.closed.Load(), b.closed.Load())
		}
		if late := s.connect(first); late.closed.Load() != 1 {
			t.Error("a connection that is made after the others were cut stays")
		}
	})
}

func TestOfASubConnOnlyTheNewestConnectionsAreKept(t *testing.T) {
	inWireScene(t, func(s *wireScene) {
		creds, state := s.subConn()
		old := s.connect(creds)
		for range 100 {
			state(connectivity.Idle)
			state(connectivity.Connecting)
			s.connect(creds.Clone())
		}
		if open, parted := len(s.conns.wires.open), len(s.conns.wires.parted); open != 1 || parted != partings {
			t.Errorf("%d connections of one subconn and %d older ones are kept after 100 new ones, want the newest and %d", open, parted, partings)
		}
		s.policy.Close()
		time.Sleep(farewell)
		synctest.Wait()
		if old.closed.Load() != 0 {
			t.Error("the first was cut long after gRPC had dropped it")
		}
	})
}

// The calls on it may go on for as long as the policy: their endpoint left the set, or got a
// new connection. It may be one that was still being made when its subconn was shut down.
func TestConnectionOfASubConnThatIsShutDownIsCutWithTheOthers(t *testing.T) {
	inWireScene(t, func(s *wireScene) {
		creds, state := s.subConn()
		raw := s.connect(creds)
		state(connectivity.Ready)
		state(connectivity.Shutdown)
		late := s.connect(creds)
		if n := len(s.conns.wires.open); n != 0 {
			t.Errorf("%d seats are taken without a subconn, want none", n)
		}
		if len(s.states) != 2 || s.states[1] != connectivity.Shutdown {
			t.Errorf("the policy was told %v, want all it was to be told", s.states)
		}
		time.Sleep(time.Hour)
		s.policy.Close()
		time.Sleep(farewell - time.Nanosecond)
		synctest.Wait()
		if raw.closed.Load()+late.closed.Load() != 0 {
			t.Errorf("closed %d and %d times before the others are, want none", raw.closed.Load(), late.closed.Load())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if raw.closed.Load() != 1 || late.closed.Load() != 1 {
			t.Errorf("closed %d and %d times with the others, want both once", raw.closed.Load(), late.closed.Load())
		}
	})
}

func TestConnectionsOfEndpointsThatLeftAreCutOnlyWhereTheyHoldUpTheirPolicy(t *testing.T) {
	for name, tt := range map[string]struct {
		takes time.Duration
		want  int32
	}{
		"farewell said":      {farewell - time.Nanosecond, 0},
		"farewell not heard": {farewell + time.Nanosecond, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWireScene(t, func(s *wireScene) {
				a, b := resolver.Address{Addr: "a"}, resolver.Address{Addr: "b"}
				stays, _ := s.subConn(a)
				leaves, _ := s.subConn(b)
				kept, left := s.connect(stays), s.connect(leaves)
				s.slow.takes = tt.takes
				state := balancer.ClientConnState{ResolverState: resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{a}}}}}
				if err := s.policy.UpdateClientConnState(state); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if n := left.closed.Load(); n != tt.want {
					t.Errorf("the connection of the endpoint that left was closed %d times, want %d", n, tt.want)
				}
				if kept.closed.Load() != 0 {
					t.Error("the connection of the endpoint that stays was cut")
				}
			})
		})
	}
}
