package picker_test

import (
	"context"
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/roundrobin"

	"github.com/quorumwise/quorumwise/picker"
)

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
		}, newBareConn(b, roundrobin.Name, "", 3).picker},
		{"quorumwise", func(tb testing.TB, p balancer.Picker) {
			ctx, call := hub.Begin(context.Background(), picker.ClassRead, "m")
			pickOnce(tb, p, ctx)
			call.Finish()
		}, newBareConn(b, picker.Name, `{"hub":"`+hub.ID()+`"}`, 3).picker},
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
		p := newBareConn(b, picker.Name, `{"hub":"`+hub.ID()+`"}`, 3).picker
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
