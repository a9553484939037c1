package picker_test

import (
	"encoding/json"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// bareConn stands in for a ClientConn whose connections are ready at once, so
// that a policy can be measured without one.
type bareConn struct {
	balancer.ClientConn
	stats.UnimplementedMetricsRecorder
	todo   []func() // what gRPC would do from its own goroutine
	picker balancer.Picker
	states []connectivity.State // that the policy reported
}

func (c *bareConn) UpdateState(s balancer.State) {
	c.picker = s.Picker
	c.states = append(c.states, s.ConnectivityState)
}

func (c *bareConn) MetricsRecorder() stats.MetricsRecorder { return c.UnimplementedMetricsRecorder }
func (c *bareConn) NewSubConn(_ []resolver.Address, o balancer.NewSubConnOptions) (balancer.SubConn, error) {
	return &bareSubConn{conn: c, tell: o.StateListener}, nil
}

type bareSubConn struct {
	balancer.SubConn
	conn *bareConn
	tell func(balancer.SubConnState)
}

func (s *bareSubConn) Shutdown() {}

func (s *bareSubConn) Connect() {
	s.conn.todo = append(s.conn.todo, func() {
		s.tell(balancer.SubConnState{ConnectivityState: connectivity.Connecting})
		s.tell(balancer.SubConnState{ConnectivityState: connectivity.Ready})
	})
}

func (s *bareSubConn) RegisterHealthListener(tell func(balancer.SubConnState)) {
	s.conn.todo = append(s.conn.todo, func() { tell(balancer.SubConnState{ConnectivityState: connectivity.Ready}) })
}

// newBareConn returns a connection with the policy on it and n endpoints ready.
func newBareConn(tb testing.TB, name, config string, n int) *bareConn {
	tb.Helper()
	conn := &bareConn{}
	builder := balancer.Get(name)
	var cfg serviceconfig.LoadBalancingConfig
	if p, ok := builder.(balancer.ConfigParser); ok {
		var err error
		if cfg, err = p.ParseConfig(json.RawMessage(config)); err != nil {
			tb.Fatalf("config %s: %v", config, err)
		}
	}
	b := builder.Build(conn, balancer.BuildOptions{})
	tb.Cleanup(b.Close)
	if err := b.UpdateClientConnState(balancer.ClientConnState{ResolverState: stateOf(addrs(n)), BalancerConfig: cfg}); err != nil {
		tb.Fatalf("%s takes no endpoints: %v", name, err)
	}
	conn.work()
	return conn
}

// work does what waits to be done.
func (c *bareConn) work() {
	for len(c.todo) > 0 {
		do := c.todo[0]
		c.todo = c.todo[1:]
		do()
	}
}
