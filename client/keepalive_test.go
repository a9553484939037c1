package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
	"github.com/quorumwise/quorumwise/healthsvc"
)

// A member that answers everything but keepalives stays healthy. With the fewest
// streams it is where the next stream would go, again and again.
func TestUnansweredKeepaliveGoesToAnotherMember(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{Rebalance: -1}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		for i := range 8 {
			cli.Watch(metadata.AppendToOutgoingContext(t.Context(), "watch", fmt.Sprint(i)), "k")
		}
		m := c.Member(1)
		m.Lie(&healthsvc.Report{Reason: healthsvc.ReasonDraining}) // its streams leave, and stay away
		time.Sleep(5 * time.Second)
		m.Lie(nil)
		time.Sleep(5 * time.Second)
		grant, err := cli.Grant(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		alive, err := cli.KeepAlive(t.Context(), grant.ID)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := m.Streams("LeaseKeepAlive"); n != 1 {
			t.Fatalf("%d lease streams on the member without streams, want the one", n)
		}
		m.DropAnswer("LeaseKeepAlive")
		time.Sleep(20 * time.Second)
		if closed(alive) {
			t.Error("the lease is given up on a member that answers no keepalives, although two others do")
		}
		if e, _ := cli.Health().Endpoint(m.Address); e.Grade != "healthy" {
			t.Errorf("the member is %s, want healthy: this is no test of the verdict", e.Grade)
		}
	})
}

// closed empties a keepalive channel and reports whether its client gave up the lease.
func closed(alive <-chan *clientv3.LeaseKeepAliveResponse) bool {
	for {
		select {
		case _, open := <-alive:
			if !open {
				return true
			}
		default:
			return false
		}
	}
}

// The token was invalidated, and nothing but streams uses it when they
// move. They end up with a fresh one, and no member is held responsible.
func TestMovedStreamsGetAFreshToken(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar, User: "root", Password: "pw"}, options{Rebalance: -1}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		watch := cli.Watch(t.Context(), "k")
		grant, err := cli.Grant(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		alive, err := cli.KeepAlive(t.Context(), grant.ID)
		if err != nil {
			t.Fatal(err)
		}
		revision := int64(0)
		for round, m := range c.Members() {
			time.Sleep(3 * time.Second)
			c.InvalidateTokens()
			m.CutPeers()
			time.Sleep(7 * time.Second)
			if _, ok := c.Lease(grant.ID); !ok {
				t.Fatalf("round %d: the lease is gone", round)
			}
			c.Put("k", fmt.Sprint(round))
			time.Sleep(100 * time.Millisecond)
			select {
			case resp := <-watch:
				if resp.Err() != nil || len(resp.Events) != 1 || resp.Events[0].Kv.ModRevision <= revision {
					t.Fatalf("round %d: the watch brings %v (%v), want the one event", round, resp, resp.Err())
				}
				revision = resp.Events[0].Kv.ModRevision
			default:
				t.Fatalf("round %d: the watch is silent", round)
			}
			m.Heal()
		}
		time.Sleep(5 * time.Second)
		for _, e := range cli.Health().Endpoints {
			if e.Grade != "healthy" {
				t.Errorf("%s is %s (%s), want healthy: an auth error ejects nobody", e.Address, e.Grade, e.Reason)
			}
		}
		if closed(alive) {
			t.Error("the keepalive channel was closed")
		}
	})
}

// KeepAliveOnce opens a stream each time; thousands of them leave nothing behind.
func TestManyLeasesLeaveNothingBehind(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		var ids []clientv3.LeaseID
		for range 200 {
			grant, err := cli.Grant(t.Context(), 60)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, grant.ID)
			if _, err := cli.KeepAliveOnce(t.Context(), grant.ID); err != nil {
				t.Fatalf("KeepAliveOnce: %v", err)
			}
		}
		time.Sleep(time.Second)
		for _, e := range cli.Health().Endpoints {
			if len(e.InFlight) > 0 {
				t.Errorf("%s has %v in flight after all keepalives ended, want nothing", e.Address, e.InFlight)
			}
		}
		for _, id := range ids {
			if _, ok := c.Lease(id); !ok {
				t.Errorf("lease %x is gone", id)
			}
		}
	})
}

// A member that says it has no leader ends its lease streams; the official
// client then closes the channels of keepalives that require one.
func TestLeaseStreamWithoutALeaderMovesAtOnce(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		grant, err := cli.Grant(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		alive, err := cli.KeepAlive(clientv3.WithRequireLeader(t.Context()), grant.ID)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		m := streamMember(c, "/etcdserverpb.Lease/LeaseKeepAlive")
		m.EndStreams(codes.Unavailable, rpctypes.ErrNoLeader.Error(), "LeaseKeepAlive")
		time.Sleep(100 * time.Millisecond) // clientv3 would wait 500 ms
		if now := streamMember(c, "/etcdserverpb.Lease/LeaseKeepAlive"); now == nil || now == m {
			t.Errorf("the lease stream is on %v 100 ms after it ended, want it on another member", now)
		}
		time.Sleep(10 * time.Second)
		if closed(alive) {
			t.Error("the keepalive channel was closed, want it to go on elsewhere")
		}
	})
}

// busyStream is a stream of a process with much else to do: what it sends and reads takes a
// while, so that it is told of the stream's end while answers are queued before it.
type busyStream struct{ grpc.ClientStream }

func (s busyStream) SendMsg(m any) error {
	time.Sleep(time.Millisecond)
	return s.ClientStream.SendMsg(m)
}

func (s busyStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	time.Sleep(1300 * time.Microsecond)
	return err
}

func busyKeepalives(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, cc, method, opts...)
	if err != nil || !strings.HasSuffix(method, "/LeaseKeepAlive") {
		return s, err
	}
	return busyStream{s}, nil
}

// gRPC tells the sender of a stream's end before its reader, who has answers to read first.
// clientv3's sender stops at any error, for good if the stream is replaced below its reader.
func TestLeasesSurviveAStreamThatLosesItsLeaderAmidKeepalives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
		defer c.Close()
		cfg := c.ClientConfig()
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainStreamInterceptor(busyKeepalives))
		cli := newClientOf(t, cfg, options{})
		defer closeInTime(t, cli)
		settle(t, cli)
		leases := make(map[clientv3.LeaseID]<-chan *clientv3.LeaseKeepAliveResponse)
		for range 100 {
			grant, err := cli.Grant(t.Context(), 9)
			if err != nil {
				t.Fatal(err)
			}
			if leases[grant.ID], err = cli.KeepAlive(t.Context(), grant.ID); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		sent := func() int { return len(c.Requests("LeaseKeepAlive")) }
		for first := sent(); sent() < first+20; { // into the middle of what is sent together
			time.Sleep(time.Millisecond)
		}
		m := streamMember(c, "/etcdserverpb.Lease/LeaseKeepAlive")
		m.EndStreams(codes.Unavailable, rpctypes.ErrNoLeader.Error(), "LeaseKeepAlive")
		time.Sleep(30 * time.Second)
		lost := 0
		for id, alive := range leases {
			if _, ok := c.Lease(id); !ok || closed(alive) {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%d of 100 leases are lost after their stream moved to a member that has a leader, want none", lost)
		}
	})
}

// A mutation is not repeated for "no leader"; the next one goes elsewhere at once.
func TestMemberThatSaysNoLeaderGetsNoMoreCalls(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		c.Member(1).Reject(codes.Unavailable, rpctypes.ErrNoLeader.Error(), "Put")
		failed := 0
		for range 30 {
			if _, err := cli.Put(t.Context(), "k", "v"); err != nil {
				failed++
			}
		}
		if failed != 1 {
			t.Errorf("%d of 30 Puts in a row met the member without a leader, want the first only", failed)
		}
	})
}

// All members are slow together. A stream that is opened again before its
// answer can come never gets one.
func TestLeaseSurvivesASlowCluster(t *testing.T) {
	for _, tt := range []struct {
		ttl     int64
		latency time.Duration
	}{{5, 1500 * time.Millisecond}, {10, 2500 * time.Millisecond}, {30, 3 * time.Second}} {
		t.Run(fmt.Sprint(tt.ttl), func(t *testing.T) {
			inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar, ShimBeat: time.Second}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
				grant, err := cli.Grant(t.Context(), tt.ttl)
				if err != nil {
					t.Fatal(err)
				}
				alive, err := cli.KeepAlive(t.Context(), grant.ID)
				if err != nil {
					t.Fatal(err)
				}
				cli.Watch(t.Context(), "k")
				time.Sleep(time.Second)
				c.SetLatency(tt.latency)
				time.Sleep(time.Duration(tt.ttl)*time.Second + 20*time.Second)
				if closed(alive) {
					t.Errorf("a lease of %d s is given up when keepalives take %v", tt.ttl, tt.latency)
				}
				if n := streamMoves(cli); n > 0 {
					t.Errorf("%d streams moved for a verdict (%v), want none: nobody is better", n, cli.Health().Moves)
				}
				if n := cli.Health().Moves[client.MoveKind{Class: "lease", Reason: client.ReasonKeepalive}]; n > 10 {
					t.Errorf("its stream was opened again %d times, want a few, until it is known that answers are slow", n)
				}
			})
		})
	}
}
