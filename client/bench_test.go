package client

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quorumwise/quorumwise/picker"
	"github.com/quorumwise/quorumwise/prober"
)

// quickKV answers every read and write at once.
type quickKV struct {
	pb.UnimplementedKVServer
}

func (quickKV) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{ClusterId: 1, MemberId: 1, Revision: 1}}, nil
}

func (quickKV) Put(context.Context, *pb.PutRequest) (*pb.PutResponse, error) {
	return &pb.PutResponse{Header: &pb.ResponseHeader{ClusterId: 1, MemberId: 1, Revision: 1}}, nil
}

// quickServer serves quickKV in memory; nothing but the client's own cost is
// left to measure.
func quickServer(b *testing.B) clientv3.Config {
	lis := bufconn.Listen(1 << 20)
	srv := grpc.NewServer()
	pb.RegisterKVServer(srv, quickKV{})
	go srv.Serve(lis)
	b.Cleanup(srv.Stop)
	return clientv3.Config{
		Endpoints: []string{"quick-1:2379", "quick-2:2379", "quick-3:2379"},
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return lis.DialContext(ctx)
		})},
	}
}

// What a call gains in time and allocations over the official client.
func BenchmarkCall(b *testing.B) {
	cfg := quickServer(b)
	official, err := clientv3.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer official.Close()
	ours, err := New(Config{Config: cfg, Health: Health{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		b.Fatal(err)
	}
	defer ours.Close()
	for _, c := range []struct {
		name string
		cli  *clientv3.Client
	}{{"clientv3", official}, {"quorumwise", ours.Client}} {
		b.Run("Get/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.cli.Get(context.Background(), "k"); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("Put/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.cli.Put(context.Background(), "k", "v"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a look of the loop costs with many calls in flight; there are 20 a second
// while any is.
func BenchmarkLook(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n, "calls"), func(b *testing.B) {
			hub := picker.NewHub()
			defer hub.Close()
			v := view{now: time.Now()}
			for i := range 3 {
				e := endpointView{address: fmt.Sprint(i), grade: prober.Healthy, ready: true}
				for range n / 3 {
					_, c := hub.Begin(b.Context(), picker.ClassRead, "/etcdserverpb.KV/Range")
					defer c.Finish()
					e.calls = append(e.calls, callView{call: c, class: picker.ClassRead, method: c.Method(), picked: c.Began()})
				}
				v.endpoints = append(v.endpoints, e)
			}
			m := &mover{overdue: time.Second, election: time.Second, rand: rand.Float64}
			b.ReportAllocs()
			for b.Loop() {
				m.decide(v)
			}
		})
	}
}
