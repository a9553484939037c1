package picker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/quorumwise/quorumwise/picker"
)

// bareConn stands in for a ClientConn whose connections are ready at once, so
// that a policy can be measured without one.
type bareConn struct {
	balancer.ClientConn
	stats.UnimplementedMetricsRecorder
	todo   []func() // what gRPC would do from its own goroutine
	picker balancer.Picker
}

func (c *bareConn) UpdateState(s balancer.State)           { c.picker = s.Picker }
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

// readyPicker returns what a policy gives to gRPC with n endpoints connected.
func readyPicker(tb testing.TB, name string, config string, n int) balancer.Picker {
	conn := &bareConn{}
	builder := balancer.Get(name)
	var cfg serviceconfig.LoadBalancingConfig
	if p, ok := builder.(balancer.ConfigParser); ok {
		var err error
		if cfg, err = p.ParseConfig(json.RawMessage(config)); err != nil {
			tb.Fatal(err)
		}
	}
	b := builder.Build(conn, balancer.BuildOptions{})
	tb.Cleanup(b.Close)
	if err := b.UpdateClientConnState(balancer.ClientConnState{ResolverState: stateOf(addrs(n)), BalancerConfig: cfg}); err != nil {
		tb.Fatal(err)
	}
	for len(conn.todo) > 0 {
		do := conn.todo[0]
		conn.todo = conn.todo[1:]
		do()
	}
	return conn.picker
}

func pickOnce(tb testing.TB, p balancer.Picker, ctx context.Context) {
	res, err := p.Pick(balancer.PickInfo{Ctx: ctx})
	if err != nil {
		tb.Error(err)
		return
	}
	if res.Done != nil {
		res.Done(balancer.DoneInfo{BytesSent: true})
	}
}

// What the policy itself costs a call: Begin, Pick, Done and Finish, against
// the Pick of round_robin.
func BenchmarkPick(b *testing.B) {
	hub := picker.NewHub()
	defer hub.Close()
	for _, bm := range []struct {
		name string
		once func(tb testing.TB, p balancer.Picker)
		p    balancer.Picker
	}{
		{"round_robin", func(tb testing.TB, p balancer.Picker) {
			pickOnce(tb, p, context.Background())
		}, readyPicker(b, roundrobin.Name, "", 3)},
		{"quorumwise", func(tb testing.TB, p balancer.Picker) {
			ctx, call := hub.Begin(context.Background(), picker.ClassRead, "m")
			pickOnce(tb, p, ctx)
			call.Finish()
		}, readyPicker(b, picker.Name, `{"hub":"`+hub.ID()+`"}`, 3)},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bm.once(b, bm.p)
			}
		})
		b.Run(bm.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					bm.once(b, bm.p)
				}
			})
		})
	}
}

// What a whole call costs, over connections in memory.
func BenchmarkCall(b *testing.B) {
	f := newFleet(b, 3)
	hub := picker.NewHub()
	b.Cleanup(hub.Close)
	for _, bm := range []struct {
		name, config string
		begin        bool
	}{
		{"round_robin", `{"loadBalancingConfig":[{"round_robin":{}}]}`, false},
		{"quorumwise", `{"loadBalancingConfig":` + hub.LoadBalancingConfig() + `}`, true},
	} {
		r := connectConfig(b, f, hub, bm.config, addrs(3))
		r.get()
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx, cancel := context.WithCancel(context.Background())
				finish := func() {}
				if bm.begin {
					var call *picker.Call
					ctx, call = hub.Begin(ctx, picker.ClassRead, "m")
					finish = call.Finish
				}
				if _, err := r.kv.Range(ctx, &pb.RangeRequest{Key: []byte("k")}); err != nil {
					b.Fatal(err)
				}
				finish()
				cancel()
			}
		})
	}
}

// What it costs to list and to grade with many calls in flight.
func BenchmarkManyCalls(b *testing.B) {
	for _, n := range []int{100, 10000} {
		hub := picker.NewHub()
		b.Cleanup(hub.Close)
		p := readyPicker(b, picker.Name, `{"hub":"`+hub.ID()+`"}`, 3)
		for range n {
			ctx, call := hub.Begin(context.Background(), picker.ClassStream, "m")
			b.Cleanup(call.Finish)
			if _, err := p.Pick(balancer.PickInfo{Ctx: ctx}); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("Calls/%d", n), func(b *testing.B) {
			for b.Loop() {
				hub.Calls(addr(1))
			}
		})
		b.Run(fmt.Sprintf("SetGrades/%d", n), func(b *testing.B) {
			g := []map[string]picker.Grade{{addr(1): picker.Healthy}, {addr(2): picker.Healthy}}
			i := 0
			for b.Loop() {
				hub.SetGrades(g[i%2])
				i++
			}
		})
	}
}
