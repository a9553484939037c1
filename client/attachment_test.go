package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

func TestConfigurationIsAttachedToOnce(t *testing.T) {
	refuse := func(context.Context, string) (net.Conn, error) { return nil, errors.New("nobody there") }
	cfg := clientv3.Config{Endpoints: []string{"localhost:2379"}, DialOptions: append(make([]grpc.DialOption, 0, 10), grpc.WithContextDialer(refuse))}
	before := cfg
	first, err := client.Attach(&cfg, options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	var bad *client.ConfigError
	if _, err := client.Attach(&cfg, options{}); !errors.As(err, &bad) || bad.Field != "DialOptions" {
		t.Errorf("the second Attach to one configuration: %v, want a ConfigError: its calls would be filed under the other", err)
	}
	second, err := client.Attach(&before, options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("Attach to a copy made before: %v, want none", err)
	}
	second.Close()
}

// The attachment may be closed first, or alone: its client goes on.
func TestClientOutlivesItsAttachment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
		defer c.Close()
		cfg := c.ClientConfig()
		att, err := client.Attach(&cfg, options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		cli, err := clientv3.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer cli.Close()
		watch := cli.Watch(clientv3.WithRequireLeader(t.Context()), "k")
		grant, err := cli.Grant(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cli.KeepAlive(t.Context(), grant.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		att.Close()
		att.Close()
		c.Member(1).EndStreams(codes.Unavailable, rpctypes.ErrNoLeader.Error())
		time.Sleep(10 * time.Second)
		if _, err := cli.Put(t.Context(), "k", "v"); err != nil {
			t.Errorf("Put after the attachment was closed: %v", err)
		}
		if resp := <-watch; len(resp.Events) != 1 && resp.Err() == nil {
			t.Errorf("the watch brings %v, want the event or the end of an official watch", resp)
		}
		if _, ok := c.Lease(grant.ID); !ok {
			t.Error("the lease is gone")
		}
	})
}

// What users put into DialOptions works: interceptors see each call once,
// however often it moves, settings of the connection are theirs, and a resolver
// is ignored as clientv3 does.
func TestUsersDialOptionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
		defer c.Close()
		var plain, chained, streams atomic.Int64
		count := func(n *atomic.Int64) grpc.UnaryClientInterceptor {
			return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if strings.HasSuffix(method, "/Range") && cc == ctx.Value(ctxKey(0)) {
					n.Add(1)
				}
				return invoke(ctx, method, req, reply, cc, opts...)
			}
		}
		cfg := c.ClientConfig()
		cfg.DialOptions = append(cfg.DialOptions,
			grpc.WithUnaryInterceptor(count(&plain)), // replaces clientv3's own, as it does without us
			grpc.WithChainUnaryInterceptor(count(&chained)),
			grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				streams.Add(1)
				return open(ctx, d, cc, method, opts...)
			}),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second}),
		)
		cli, err := client.New(client.Config{Config: cfg, Health: options{Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		defer closeInTime(t, cli)
		settle(t, cli)
		c.Member(1).CutPeers()
		c.Member(1).DropAnswer("Range")
		ctx := context.WithValue(t.Context(), ctxKey(0), cli.ActiveConnection())
		for range 6 {
			callCtx, cancel := context.WithTimeout(ctx, moveBudget)
			if _, err := cli.Get(callCtx, "k"); err != nil {
				t.Errorf("Get: %v", err)
			}
			cancel()
		}
		if plain.Load() != 6 || chained.Load() != 6 {
			t.Errorf("the user's interceptors saw %d and %d of 6 calls, want each once although some were sent twice", plain.Load(), chained.Load())
		}
		if n := streams.Load(); n == 0 {
			t.Error("the user's stream interceptor saw nothing, want the streams of the probes at least")
		}
	})
}

// New with a user name waits for a token as clientv3 does, but not for a member
// that hangs.
func TestNewGetsItsTokenInSpiteOfAHangingMember(t *testing.T) {
	for i := range 3 {
		synctest.Test(t, func(t *testing.T) {
			c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar, User: "root", Password: "pw"})
			defer c.Close()
			c.Member(i).CutPeers()
			time.Sleep(5 * time.Second)
			began := time.Now()
			cli := newClient(t, c, options{})
			defer closeInTime(t, cli)
			if took := time.Since(began); took > moveBudget {
				t.Errorf("New took %v with member %d cut off, want at most %v", took, i, moveBudget)
			}
			if _, err := cli.Get(t.Context(), "k"); err != nil {
				t.Errorf("Get: %v", err)
			}
		})
	}
}

// New that waits for a token nobody can give ends with its context, and leaves
// nothing behind.
func TestNewWithoutATokenEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar, Election: -1, User: "root", Password: "pw"})
		defer c.Close()
		for _, m := range c.Members() {
			m.CutClient()
		}
		cfg := c.ClientConfig()
		var cancel context.CancelFunc
		cfg.Context, cancel = context.WithTimeout(t.Context(), 3500*time.Millisecond) // not when an attempt to connect ends
		defer cancel()
		began := time.Now()
		cli, err := client.New(client.Config{Config: cfg, Health: options{Logger: slog.New(slog.DiscardHandler)}})
		if err == nil {
			cli.Close()
			t.Fatal("New got a token from nobody")
		}
		if took := time.Since(began); took != 3500*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("New ended after %v with %v, want its context's end", took, err)
		}
	})
}

// A call that waits for an endpoint ends when the client is closed, as soon as
// clientv3 has tried often enough.
func TestCloseEndsACallThatFoundNoEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
		defer c.Close()
		for _, m := range c.Members() {
			m.Kill()
		}
		cli := newClient(t, c, options{})
		ended := make(chan error, 2)
		go func() { _, err := cli.Get(context.Background(), "k"); ended <- err }()
		go func() { _, err := cli.Put(context.Background(), "k", "v"); ended <- err }()
		time.Sleep(2 * time.Second)
		closeInTime(t, cli)
		for range 2 {
			select {
			case err := <-ended:
				if err == nil {
					t.Error("a call without a member was answered")
				}
			case <-time.After(3 * time.Second):
				t.Error("a call still waits 3 s after Close")
			}
		}
	})
}

// OnMove is called one at a time, of every move that is counted.
func TestOnMoveIsToldOfEveryMoveOneAtATime(t *testing.T) {
	var busy atomic.Bool
	told := make(map[client.MoveKind]int) // without a lock: the race detector watches
	onMove := func(m client.Move) {
		if !busy.CompareAndSwap(false, true) {
			t.Error("OnMove is called while it runs")
		}
		told[client.MoveKind{Class: m.Class, Reason: m.Reason}]++
		busy.Store(false)
	}
	inBubble(t, fakeetcd.Options{}, options{OnMove: onMove, Rebalance: -1}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		for i := range 9 {
			ctx := clientv3.WithRequireLeader(metadata.AppendToOutgoingContext(t.Context(), "watch", fmt.Sprint(i)))
			cli.Watch(ctx, "k")
		}
		time.Sleep(time.Second)
		c.Member(1).EndStreams(codes.Unavailable, status.Convert(rpctypes.ErrGRPCNoLeader).Message(), "Watch")
		time.Sleep(time.Second)
		c.Member(2).CutPeers()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		counted := cli.Health().Moves
		if counted[client.MoveKind{Class: "watch", Reason: "no-leader"}] == 0 {
			t.Errorf("no watch was moved for its no-leader answer: %v", counted)
		}
		for kind, n := range counted {
			if told[kind] != n {
				t.Errorf("OnMove was told of %d moves %v, %d are counted", told[kind], kind, n)
			}
		}
	})
}
