package fakeetcd

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// keepAlive grants a lease of 5 s with a key on it, and keeps it alive through one client. The
// stream is there when it returns: gRPC opens one that breaks while it opens again under a lock,
// and as long as somebody waits for a lock no time passes in a bubble.
func keepAlive(t *testing.T, cli *clientv3.Client) (clientv3.LeaseID, <-chan *clientv3.LeaseKeepAliveResponse) {
	t.Helper()
	lease, err := cli.Grant(t.Context(), 5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cli.Put(t.Context(), "leased", "v", clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	alive, err := cli.KeepAlive(t.Context(), lease.ID)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range alive {
		}
	}()
	synctest.Wait()
	return lease.ID, alive
}

func holds(c *Cluster, id clientv3.LeaseID) bool {
	_, lease := c.Lease(id)
	_, key := c.Get("leased")
	return lease && key
}

func TestLeaseLivesWhileKeptAliveThroughAFollower(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		id, _ := keepAlive(t, only(t, c, c.Member(1)))
		time.Sleep(time.Hour)
		if !holds(c, id) {
			t.Error("the lease is gone, want it alive while it is kept alive")
		}
		if n := len(c.Requests("LeaseKeepAlive")); n < 1000 {
			t.Errorf("%d keepalives in an hour, want one at least every third of the TTL", n)
		}
	})
}

func TestLeaseEndsWithItsKeysWhenNobodyRenewsIt(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		wch := cli.Watch(t.Context(), "leased")
		lease, err := cli.Grant(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cli.Put(t.Context(), "leased", "v", clientv3.WithLease(lease.ID)); err != nil {
			t.Fatal(err)
		}
		<-wch
		began := time.Now()
		resp := <-wch
		if took := time.Since(began); took != 5*time.Second || resp.Events[0].Type != clientv3.EventTypeDelete {
			t.Errorf("after %v: %v, want the key deleted after 5 s", took, resp.Events)
		}
		left, err := cli.TimeToLive(t.Context(), lease.ID)
		if err != nil || left.TTL != -1 {
			t.Errorf("TimeToLive: %v, %v; want -1", left, err)
		}
	})
}

// A control fact: the official client keeps the lease alive on the member where its stream is.
func TestOfficialClientLosesTheLeaseOnACutMember(t *testing.T) {
	for name, fault := range map[string]func(*Member){
		"peers cut": (*Member).CutPeers, "mute": (*Member).MutePeers, "frozen": (*Member).FreezeEtcd,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
				id, _ := keepAlive(t, only(t, c, c.Member(1)))
				time.Sleep(61 * time.Second) // between two keepalives, not at the moment of one
				fault(c.Member(1))
				time.Sleep(3 * time.Second)
				if !holds(c, id) {
					t.Fatal("the lease was gone after 3 s, want it to last for the rest of its TTL")
				}
				time.Sleep(3 * time.Second)
				if holds(c, id) {
					t.Error("the lease of 5 s is alive 6 s after the cut, want it lost")
				}
			})
		})
	}
}

func TestKeepaliveInFlightToALostLeaderStandsStillUntilTheStreamIsReopened(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		lease, err := cli.Grant(t.Context(), 60)
		if err != nil {
			t.Fatal(err)
		}
		api := pb.NewLeaseClient(connect(t, c, c.Member(1).Address)) // a follower, and healthy
		open := func() pb.Lease_LeaseKeepAliveClient {
			stream, err := api.LeaseKeepAlive(t.Context(), grpc.WaitForReady(true))
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(lease.ID)}); err != nil {
				t.Fatal(err)
			}
			return stream
		}
		c.Elect(2, 1500*time.Millisecond)
		began := time.Now()
		stuck := open()
		time.Sleep(2 * time.Second)
		if resp, err := open().Recv(); err != nil || resp.TTL != 60 || time.Since(began) != 2*time.Second {
			t.Errorf("a stream of its own: %v, %v after %v; want the new leader's answer at once", resp, err, time.Since(began))
		}
		resp, err := stuck.Recv()
		if took := time.Since(began); !errors.Is(rpctypes.Error(err), rpctypes.ErrTimeout) || took != 7*time.Second {
			t.Errorf("the stream from before: %v, %v after %v; want %v after the member's request timeout of 7 s",
				resp, err, took, rpctypes.ErrTimeout)
		}
	})
}

func TestStalledLeaderAcknowledgesALeaseThatTheClusterLetsExpire(t *testing.T) {
	for name, fault := range map[string]func(*Member){"disk stalled": (*Member).StallDisk, "muted a moment ago": (*Member).CutPeers} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{LeaderLoss: time.Hour, Election: time.Second}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
				cli := only(t, c, c.Member(0))
				id, _ := keepAlive(t, cli)
				fault(c.Member(0))
				time.Sleep(9 * time.Second) // election, then TTL and one election timeout
				if holds(c, id) {
					t.Error("the new leader still has the lease, want it expired")
				}
			})
		})
	}
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		cli := only(t, c, c.Member(0))
		lease, err := cli.Grant(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		c.Member(0).StallDisk()
		for range 5 {
			time.Sleep(time.Second)
			if resp, err := cli.KeepAliveOnce(soon(t), lease.ID); err != nil || resp.TTL != 5 {
				t.Errorf("keepalive on the stalled leader: %v, %v; want it acknowledged", resp, err)
			}
		}
	})
}

func TestLeasesStartAnewUnderANewLeader(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		lease, err := cli.Grant(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		c.Elect(1, 0)
		synctest.Wait()
		if left, ok := c.Lease(lease.ID); !ok || left != 6*time.Second {
			t.Errorf("%v left, want the TTL and one election timeout", left)
		}
	})
}

func TestLockRecipe(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		other := dial(t, c.ClientConfig())
		defer func() { _ = other.Close() }()
		lock := func(cli *clientv3.Client) (*concurrency.Session, *concurrency.Mutex) {
			session, err := concurrency.NewSession(cli, concurrency.WithTTL(5))
			if err != nil {
				t.Fatal(err)
			}
			return session, concurrency.NewMutex(session, "/lock")
		}
		session1, first := lock(cli)
		session2, second := lock(other)
		defer func() { _ = session2.Close() }()
		if err := first.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := second.TryLock(t.Context()); err == nil {
			t.Fatal("two owners of one lock")
		}
		got := make(chan error, 1)
		go func() { got <- second.Lock(t.Context()) }()
		time.Sleep(time.Minute)
		select {
		case err := <-got:
			t.Fatalf("the second owner got the lock (%v) while the first had it", err)
		default:
		}
		session1.Orphan() // as if the first owner had died
		began := time.Now()
		if err := <-got; err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("the lock passed on after %v with %v, want within the TTL", time.Since(began), err)
		}
	})
}
