package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
	"github.com/quorumwise/quorumwise/healthsvc"
)

// moves counts what a client moved, without drift.
func moves(cli *client.Client) int {
	n := 0
	for kind, k := range cli.Health().Moves {
		if kind.Reason != client.ReasonDrift {
			n += k
		}
	}
	return n
}

// streamMoves counts the streams that a client moved off an endpoint for a
// verdict about it.
func streamMoves(cli *client.Client) int {
	n := 0
	for kind, k := range cli.Health().Moves {
		switch {
		case kind.Reason == client.ReasonDrift || kind.Reason == client.ReasonKeepalive:
		case kind.Class == "watch" || kind.Class == "lease" || kind.Class == "stream":
			n += k
		}
	}
	return n
}

// Every member in turn is cut, and nothing is ever lost.
func TestEveryMemberInTurnIsCutAndReturns(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		l := startLoad(t, c, cli, 5)
		for i := range 4 { // the first one again: it has been away before
			m := c.Member(i % 3)
			m.CutPeers()
			time.Sleep(6 * time.Second) // longer than the lease's life
			m.Heal()
			time.Sleep(2 * time.Second)
		}
		l.stop()
		l.checkWhole()
	})
}

// Invariant: an election on healthy members moves no stream, and is not
// surfaced to a reader as an error.
func TestElectionsMoveNoStreamAndFailNoRead(t *testing.T) {
	for _, shim := range []fakeetcd.Shim{fakeetcd.ShimSidecar, fakeetcd.ShimInProcess, fakeetcd.ShimNone} {
		t.Run(fmt.Sprint(shim), func(t *testing.T) {
			inBubble(t, fakeetcd.Options{Shim: shim}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
				l := startLoad(t, c, cli, 5)
				for i := range 3 {
					c.Elect(i, 1500*time.Millisecond)
					time.Sleep(3500*time.Millisecond + time.Duration(i)*61*time.Millisecond)
				}
				if n := streamMoves(cli); n > 0 {
					t.Errorf("3 elections moved %d streams (%v), want none", n, cli.Health().Moves)
				}
				l.stop()
				l.checkWhole()
			})
		})
	}
}

// Nothing wrong with the cluster, everything wrong with the shims: the cluster
// stays usable, and nobody moves.
func TestBadShimsMakeNoClusterUnusable(t *testing.T) {
	everyMember := func(f func(*fakeetcd.Member)) func(*fakeetcd.Cluster) {
		return func(c *fakeetcd.Cluster) {
			for _, m := range c.Members() {
				f(m)
			}
		}
	}
	lie := func(r healthsvc.Report) func(*fakeetcd.Member) {
		return func(m *fakeetcd.Member) { m.Lie(&r) }
	}
	for name, fault := range map[string]func(*fakeetcd.Cluster){
		"one killed":              func(c *fakeetcd.Cluster) { c.Member(1).KillShim() },
		"all killed":              everyMember((*fakeetcd.Member).KillShim),
		"one frozen":              func(c *fakeetcd.Cluster) { c.Member(1).FreezeShim() },
		"all frozen":              everyMember((*fakeetcd.Member).FreezeShim),
		"all say not serving":     everyMember(lie(healthsvc.Report{Reason: healthsvc.ReasonNoQuorum})),
		"all say draining":        everyMember(lie(healthsvc.Report{Reason: healthsvc.ReasonDraining})),
		"all of an other cluster": everyMember(lie(healthsvc.Report{Identity: healthsvc.Identity{Cluster: 42, Member: 7}, Serving: true, Quorum: true})),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
				l := startLoad(t, c, cli, 5)
				fault(c)
				time.Sleep(5 * time.Second)
				get, put, silence := l.worst()
				if worst := max(get, put, silence); worst > 500*time.Millisecond {
					t.Errorf("longest Get %v, Put %v, silence %v; want nothing noticed", get, put, silence)
				}
				if n := streamMoves(cli); n > 0 {
					t.Errorf("%d streams moved (%v), want none: the members are fine", n, cli.Health().Moves)
				}
				l.stop()
				l.checkWhole()
			})
		})
	}
}

func TestShimsKilledThenAFollowerCutIsStillLeft(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		l := startLoad(t, c, cli, 5)
		for _, m := range c.Members() {
			m.KillShim()
		}
		time.Sleep(6 * time.Second)
		c.Member(2).CutPeers()
		time.Sleep(6 * time.Second)
		if get, put, silence := l.worst(); max(get, put, silence) > 2*time.Second {
			t.Errorf("longest Get %v, Put %v, silence %v; want at most 2s without a shim", get, put, silence)
		}
		l.stop()
		l.checkWhole()
	})
}

// A lease of 5, 10 or 30 s survives the cut of its member at any phase of
// its keepalive: the next one renews it through another, as soon as it is due or
// the member has been left. (The official client does so once the member ends the
// stream for want of a leader, 4 s after the cut.)
func TestLeaseSurvivesACutAtAnyPhase(t *testing.T) {
	for _, ttl := range []int64{5, 10, 30} {
		t.Run(fmt.Sprint(ttl), func(t *testing.T) {
			inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar, ShimBeat: 500 * time.Millisecond}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
				grant, err := cli.Grant(t.Context(), ttl)
				if err != nil {
					t.Fatal(err)
				}
				alive, err := cli.KeepAlive(t.Context(), grant.ID)
				if err != nil {
					t.Fatal(err)
				}
				life := time.Duration(ttl) * time.Second
				renewed := func(within time.Duration) bool { // by the next keepalive
					closed(alive)
					select {
					case _, open := <-alive:
						left, ok := c.Lease(grant.ID)
						return open && ok && left >= life
					case <-time.After(within):
						return false
					}
				}
				due := life/3 + 500*time.Millisecond // after the last one: clientv3 looks twice a second
				for phase := range 6 {
					if !renewed(due) {
						t.Fatalf("phase %d: the lease of %v is not renewed before the cut: this tests nothing", phase, life)
					}
					after := time.Duration(phase) * life / 18
					time.Sleep(after)
					m := streamMember(c, "/etcdserverpb.Lease/LeaseKeepAlive")
					if m == nil {
						t.Fatal("no member has the lease stream")
					}
					next := due - after
					if m == c.Leader() {
						next = max(next, 1500*time.Millisecond) // the election
					}
					m.CutPeers()
					if !renewed(next + moveBudget) {
						left, ok := c.Lease(grant.ID)
						t.Fatalf("phase %d: the lease of %v is not renewed after its member was cut (in the store: %v, %v left)", phase, life, ok, left)
					}
					m.Heal()
					time.Sleep(3 * time.Second)
				}
			})
		})
	}
}

func streamMember(c *fakeetcd.Cluster, method string) *fakeetcd.Member {
	for _, m := range c.Members() {
		if m.Streams(method) > 0 {
			return m
		}
	}
	return nil
}

// A keepalive forwarded to a leader that is then lost stands still on a healthy
// follower; a watch there goes on. Only the lease stream is opened again.
func TestStandingKeepaliveIsReopenedOnAHealthyMember(t *testing.T) {
	for i := range 4 { // whichever member the stream is on, whenever the leader goes
		inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
			l := startLoad(t, c, cli, 5)
			time.Sleep(time.Duration(i) * 450 * time.Millisecond)
			c.Elect((i+1)%3, 1500*time.Millisecond)
			time.Sleep(6 * time.Second)
			l.stop()
			if n := streamMoves(cli); n > 0 {
				t.Errorf("%d streams moved for a verdict (%v), want none", n, cli.Health().Moves)
			}
		})
	}
}

// A client that follows no reports says so in its log, its snapshot and
// its metric.
func TestClientWithoutReportsSaysSo(t *testing.T) {
	var log lockedBuffer
	inBubble(t, fakeetcd.Options{}, options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		time.Sleep(10 * time.Second)
		h := cli.Health()
		if !h.NoReports {
			t.Error("Health().NoReports is false without a single shim")
		}
		for _, e := range h.Endpoints {
			if e.Source != "stock" {
				t.Errorf("%s: source %q, want stock", e.Address, e.Source)
			}
		}
		if got := log.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "follows no reports") {
			t.Errorf("the log does not warn that no reports are followed:\n%s", got)
		}
	})
}

// lockedBuffer is a buffer that several goroutines log to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// An idle client is never told too_many_pings: its connections, and those of
// its probes, stay. A server has had enough at the third ping that is too much, half
// a minute after the first.
func TestIdleClientKeepsItsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar, ShimBeat: time.Second})
		defer c.Close()
		var dialled atomic.Int64
		cfg := c.ClientConfig()
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			dialled.Add(1)
			return c.Dial(ctx, address)
		}))
		cli := newClientOf(t, cfg, options{})
		defer closeInTime(t, cli)
		settle(t, cli)
		cli.Watch(t.Context(), "idle")
		before := dialled.Load()
		time.Sleep(2 * time.Minute)
		if n := dialled.Load() - before; n > 0 {
			t.Errorf("%d connections were made anew while idle, want none closed", n)
		}
		for _, e := range cli.Health().Endpoints {
			if e.Grade != "healthy" || !e.Connected || time.Since(e.Since) < 2*time.Minute {
				t.Errorf("%s is %s since %v, connected %v; want healthy and connected all the time", e.Address, e.Grade, time.Since(e.Since), e.Connected)
			}
		}
	})
}

// Members that are down when the client is made neither block nor fail New.
func TestNewDoesNotWaitForMembers(t *testing.T) {
	for down := 1; down <= 3; down++ {
		t.Run(fmt.Sprint(down), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
				defer c.Close()
				for i := range down {
					c.Member(i).Kill()
				}
				if down == 2 { // a majority, so that the call can be answered
					c.Member(0).Restart()
				}
				began := time.Now()
				cli := newClient(t, c, options{})
				defer closeInTime(t, cli)
				if took := time.Since(began); took > 0 {
					t.Errorf("New took %v of virtual time, want none", took)
				}
				timeout := 5 * time.Second
				if down == 3 {
					// Inside gRPC's first row of attempts, which is where a call is explained:
					// between rows clientv3 pauses, and may see the deadline itself.
					timeout = 200 * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				_, err := cli.Get(ctx, "k")
				if down < 3 {
					if err != nil {
						t.Errorf("Get with a majority up: %v", err)
					}
					return
				}
				var call *client.CallError
				if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &call) {
					t.Fatalf("Get with all down: %v, want the deadline, explained by a CallError", err)
				}
				for _, addr := range []string{"fake-1:2379", "fake-2:2379", "fake-3:2379", "not connected"} {
					if !strings.Contains(err.Error(), addr) {
						t.Errorf("%q does not say %q", err, addr)
					}
				}
			})
		})
	}
}

// The Put reached the member and its answer was cut off, then the member is
// given up. It is never sent again; its outcome is unknown.
func TestPutWithoutAnAnswerIsOfUnknownOutcomeAndSentOnce(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		for _, m := range c.Members()[1:] {
			m.DropAnswer("/etcdserverpb.KV/Put", "/etcdserverpb.Lease/LeaseGrant")
		}
		acked, unknown := 0, 0
		var wg sync.WaitGroup
		var mu sync.Mutex
		for i := range 9 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				var err error
				if i%3 == 2 {
					_, err = cli.Grant(ctx, int64(100+i))
				} else {
					_, err = cli.Put(ctx, "counter", fmt.Sprint(i))
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					acked++
				case client.IsOutcomeUnknown(err):
					unknown++
					var moved *client.MovedError
					if !errors.As(err, &moved) || moved.Member == 0 || moved.Reason == "" || !moved.Sent {
						t.Errorf("%v does not say member, reason and that it was sent", err)
					}
				default:
					t.Errorf("mutation %d: %v, want acknowledged or unknown", i, err)
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		c.Member(1).CutPeers()
		time.Sleep(3 * time.Second)
		c.Member(1).Heal()
		time.Sleep(3 * time.Second)
		c.Member(2).CutPeers()
		wg.Wait()
		if acked+unknown != 9 || unknown == 0 || acked == 0 {
			t.Errorf("%d acknowledged, %d unknown; want both kinds, nine together", acked, unknown)
		}
		for id, n := range c.Mutations() {
			if n > 1 && !strings.HasPrefix(id, "grant") { // grants carry no id of their own
				t.Errorf("mutation %q reached the servers %d times, want once", id, n)
			}
		}
		if n := len(c.Requests("/etcdserverpb.Lease/LeaseGrant")); n != 3 {
			t.Errorf("3 leases asked for, %d requests reached the servers: one was sent again", n)
		}
	})
}

// A deadline on a member under suspicion says which, why and since when.
func TestDeadlineNamesTheMemberAndTheReason(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar, Election: -1}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		for _, m := range c.Members() {
			m.CutPeers() // no quorum anywhere: nothing is better
		}
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := cli.Get(ctx, "k")
		var call *client.CallError
		if !errors.As(err, &call) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Get without a quorum: %v, want a deadline with its reason", err)
		}
		if call.Member == 0 || call.Reason == "" || call.After < 2*time.Second || !strings.Contains(err.Error(), call.Endpoint) {
			t.Errorf("%v: want member, reason, since when and the endpoint", err)
		}
		if !cli.Health().FailOpen {
			t.Error("Health().FailOpen is false while every member is suspect")
		}
	})
}

// The official client closes a watch that requires a leader when its member has
// none; ours moves it as long as another member has one.
func TestWatchThatRequiresALeaderMovesInsteadOfClosing(t *testing.T) {
	for _, shim := range []fakeetcd.Shim{fakeetcd.ShimSidecar, fakeetcd.ShimNone} {
		inBubble(t, fakeetcd.Options{Shim: shim}, options{Rebalance: -1}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
			var chans []clientv3.WatchChan
			for i := range 6 {
				// Different metadata makes clientv3 open different streams.
				ctx := clientv3.WithRequireLeader(metadata.AppendToOutgoingContext(t.Context(), "watch", fmt.Sprint(i)))
				chans = append(chans, cli.Watch(ctx, "k"))
			}
			for _, m := range c.Members() {
				m.CutPeers()
				time.Sleep(6 * time.Second) // the member ends such streams 4 s after the cut
				m.Heal()
				time.Sleep(5 * time.Second)
			}
			c.Put("k", "v")
			time.Sleep(time.Second)
			for i, ch := range chans {
				select {
				case resp, ok := <-ch:
					if !ok || resp.Err() != nil || len(resp.Events) != 1 {
						t.Errorf("watch %d: open %v, error %v, %d events; want the one event", i, ok, resp.Err(), len(resp.Events))
					}
				default:
					t.Errorf("watch %d is silent after the Put", i)
				}
			}
		})
	}
}

type ctxKey int

// With no leader anywhere nothing is better, and such a watch ends as it does
// with the official client.
func TestWatchThatRequiresALeaderClosesWhenNobodyHasOne(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar, Election: -1}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		ch := cli.Watch(clientv3.WithRequireLeader(t.Context()), "k")
		time.Sleep(time.Second)
		for _, m := range c.Members() {
			m.CutPeers()
		}
		time.Sleep(8 * time.Second)
		select {
		case resp := <-ch:
			if !errors.Is(resp.Err(), rpctypes.ErrNoLeader) {
				t.Errorf("the watch ended with %v, want ErrNoLeader", resp.Err())
			}
		default:
			t.Error("the watch is still open 8 s after every member lost the leader")
		}
	})
}

func TestLoneEndpointIsUsedWhateverItsGrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
		defer c.Close()
		cfg := c.ClientConfig()
		cfg.Endpoints = cfg.Endpoints[1:2]
		c.Member(1).Lie(&healthsvc.Report{Reason: healthsvc.ReasonNoQuorum})
		cli, err := client.New(client.Config{Config: cfg, Health: options{Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		defer closeInTime(t, cli)
		ch := cli.Watch(t.Context(), "k")
		time.Sleep(5 * time.Second)
		if _, err := cli.Put(t.Context(), "k", "v"); err != nil {
			t.Errorf("Put through the only endpoint: %v", err)
		}
		if resp := <-ch; len(resp.Events) != 1 {
			t.Errorf("the watch brings %v, want the event", resp)
		}
		if n := moves(cli); n > 0 {
			t.Errorf("%d moves off the only endpoint", n)
		}
	})
}

func TestEndpointSetFollowsSetEndpointsAndSync(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		ch := cli.Watch(t.Context(), "k")
		time.Sleep(time.Second)
		cli.SetEndpoints(c.Endpoints()[0], c.Endpoints()[2])
		time.Sleep(2 * time.Second)
		if got := len(cli.Health().Endpoints); got != 2 {
			t.Errorf("%d endpoints in the snapshot after SetEndpoints with two", got)
		}
		if err := cli.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if got := len(cli.Health().Endpoints); got != 3 {
			t.Errorf("%d endpoints in the snapshot after Sync, want the cluster's three", got)
		}
		for _, e := range cli.Health().Endpoints {
			if e.Grade != "healthy" || e.Source != "shim" {
				t.Errorf("%s is %s by %s, want healthy by its shim", e.Address, e.Grade, e.Source)
			}
		}
		c.Put("k", "v")
		if resp := <-ch; len(resp.Events) != 1 {
			t.Errorf("the watch brings %v after the endpoints changed twice, want the event", resp)
		}
	})
}

func TestMaintenanceAndDialAreLeftAlone(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		c.Member(1).CutPeers()
		time.Sleep(3 * time.Second)
		for i, ep := range c.Endpoints() {
			resp, err := cli.Status(t.Context(), ep)
			if err != nil {
				t.Errorf("Status of %s: %v", ep, err)
			} else if want := uint64(c.Member(i).ID); resp.Header.MemberId != want {
				t.Errorf("Status of %s was answered by member %x, want %x", ep, resp.Header.MemberId, want)
			}
		}
		conn, err := cli.Dial(c.Endpoints()[1])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		kv := clientv3.NewKVFromKVClient(pb.NewKVClient(conn), cli.Client)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := kv.Get(ctx, "k", clientv3.WithSerializable()); err != nil {
			t.Errorf("a serializable Get through Dial to the cut member: %v", err)
		}
		if n := len(cli.Health().Endpoints); n != 3 {
			t.Errorf("%d endpoints after Status and Dial, want 3", n)
		}
	})
}

// Recipes that take a *clientv3.Client work, and a lock is handed over in spite
// of the cut.
func TestLockRecipeSurvivesTheCutOfItsMember(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		session, err := concurrency.NewSession(cli.Client, concurrency.WithTTL(5))
		if err != nil {
			t.Fatal(err)
		}
		mutex := concurrency.NewMutex(session, "lock/")
		if err := mutex.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, m := range c.Members() {
			m.CutPeers()
			time.Sleep(8 * time.Second)
			m.Heal()
			time.Sleep(3 * time.Second)
		}
		select {
		case <-session.Done():
			t.Fatal("the session was lost although a majority was always there")
		default:
		}
		if err := mutex.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock: %v", err)
		}
		session.Close()
	})
}

// Code that calls clientv3.New itself uses Attach and gets the same.
func TestAttachedOfficialClientLeavesACutMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
		defer c.Close()
		cfg := c.ClientConfig()
		att, err := client.Attach(&cfg, options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer att.Close()
		cli, err := clientv3.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer cli.Close()
		if _, err := cli.Status(t.Context(), c.Endpoints()[0]); err != nil { // a side connection first
			t.Fatal(err)
		}
		for range 3 {
			if _, err := cli.Get(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		c.Member(1).CutPeers()
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), callBudget)
			if _, err := cli.Get(ctx, "k"); err != nil {
				t.Errorf("Get: %v", err)
			}
			cancel()
			time.Sleep(10 * time.Millisecond)
		}
		if e, ok := att.Health().Endpoint(c.Member(1).Address); !ok || e.Grade != "unhealthy" {
			t.Errorf("the cut member is %+v, want unhealthy", e)
		}
	})
}

// Close returns within a second and leaves no goroutine, in the middle of anything.
func TestCloseInTheMiddleOfAnything(t *testing.T) {
	for name, fault := range map[string]func(*fakeetcd.Cluster){
		"nothing wrong":   func(*fakeetcd.Cluster) {},
		"a follower cut":  func(c *fakeetcd.Cluster) { c.Member(1).CutPeers() },
		"all cut":         func(c *fakeetcd.Cluster) { c.Member(0).CutPeers(); c.Member(1).CutPeers(); c.Member(2).CutPeers() },
		"a member frozen": func(c *fakeetcd.Cluster) { c.Member(1).Freeze() },
		"client cut off":  func(c *fakeetcd.Cluster) { c.Member(0).CutClient(); c.Member(1).CutClient(); c.Member(2).CutClient() },
		"all killed":      func(c *fakeetcd.Cluster) { c.Member(0).Kill(); c.Member(1).Kill(); c.Member(2).Kill() },
		"an election":     func(c *fakeetcd.Cluster) { c.Elect(1, 1500*time.Millisecond) },
	} {
		for _, after := range []time.Duration{0, 400 * time.Millisecond, 650 * time.Millisecond, 1200 * time.Millisecond} {
			t.Run(fmt.Sprint(name, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
					defer c.Close()
					cli := newClient(t, c, options{})
					l := startLoad(t, c, cli, 5)
					fault(c)
					time.Sleep(after)
					closeInTime(t, cli)
					l.cancel()
					l.wg.Wait()
				})
			})
		}
	}
}
