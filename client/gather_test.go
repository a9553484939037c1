package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// gRPC closes the connection of an endpoint that left the set gracefully: what
// is in flight there stays unless it is moved.
func TestStreamsLeaveAnEndpointThatWasTakenOut(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{Rebalance: -1}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		var watches []clientv3.WatchChan
		for i := range 6 {
			watches = append(watches, cli.Watch(metadata.AppendToOutgoingContext(t.Context(), "watch", fmt.Sprint(i)), "k"))
		}
		grant, err := cli.Grant(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cli.KeepAlive(t.Context(), grant.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		out := streamMember(c, "/etcdserverpb.Lease/LeaseKeepAlive")
		out.DropAnswer("Range", "Put")
		reads, writes := make(chan error, 6), make(chan error, 6)
		for range 6 { // in turn, so that the endpoint gets a third of each
			go func() { _, err := cli.Put(t.Context(), "x", "v"); writes <- err }()
		}
		synctest.Wait()
		for range 6 {
			go func() { _, err := cli.Get(t.Context(), "k"); reads <- err }()
		}
		synctest.Wait()
		if len(writes) != 4 || len(reads) != 4 {
			t.Fatalf("%d writes and %d reads of 6 are answered, want 4 each: this tests nothing", len(writes), len(reads))
		}
		var rest []string
		for _, m := range c.Members() {
			if m != out {
				rest = append(rest, m.Address)
			}
		}
		cli.SetEndpoints(rest...)
		time.Sleep(500 * time.Millisecond)
		if n := out.Streams("Watch") + out.Streams("LeaseKeepAlive"); n != 0 {
			t.Errorf("%d streams are still on the endpoint 0.5 s after it was taken out", n)
		}
		if len(reads) != 6 {
			t.Errorf("%d of 6 reads are answered, want those on the endpoint that was taken out sent again elsewhere", len(reads))
		}
		if len(writes) == 6 {
			t.Error("a write on the endpoint that was taken out has ended already, want it to have time for its answer")
		}
		time.Sleep(2 * time.Second)
		unknown := 0
		for range len(writes) {
			var moved *client.MovedError
			switch err := <-writes; {
			case err == nil:
			case client.IsOutcomeUnknown(err) && errors.As(err, &moved) && moved.Reason == client.ReasonEndpointRemoved:
				unknown++
			default:
				t.Errorf("Put: %v, want it answered or of unknown outcome for %s", err, client.ReasonEndpointRemoved)
			}
		}
		if unknown == 0 {
			t.Error("no write of unknown outcome: those without an answer hang where nobody looks")
		}
		c.Put("k", "v")
		time.Sleep(10 * time.Millisecond)
		for i, ch := range watches {
			if len(ch) != 1 {
				t.Errorf("watch %d has %d answers after the Put, want one", i, len(ch))
			}
		}
		time.Sleep(10 * time.Second)
		if _, ok := c.Lease(grant.ID); !ok {
			t.Error("the lease is gone")
		}
	})
}

// Taking out and putting in again within an instant disturbs nobody for long.
func TestEndpointSetThatChangesAllTheTimeLosesNothing(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		l := startLoad(t, c, cli, 5)
		eps := c.Endpoints()
		for i := range 40 {
			cli.SetEndpoints(eps[i%3], eps[(i+1)%3])
			time.Sleep(time.Duration(i*11) * time.Millisecond)
		}
		cli.SetEndpoints(eps[0], eps[0], eps[1], eps[2]) // twice the same is once
		time.Sleep(3 * time.Second)
		if get, put, silence := l.worst(); max(get, put, silence) > time.Second {
			t.Errorf("longest Get %v, Put %v, silence %v; want nothing noticed", get, put, silence)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := cli.Get(ctx, "n/0"); err != nil {
			t.Errorf("Get after the changes: %v", err)
		}
		l.stop()
		l.checkWhole()
	})
}

// An endpoint that is put in again is one of the set, whatever is still on it.
func TestEndpointThatIsPutInAgainKeepsWhatIsOnIt(t *testing.T) {
	health := options{MoveSpread: 20 * time.Second, Rebalance: -1}
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar, ShimBeat: time.Second}, health, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		for i := range 6 {
			cli.Watch(metadata.AppendToOutgoingContext(t.Context(), "watch", fmt.Sprint(i)), "k")
		}
		time.Sleep(time.Second)
		cli.SetEndpoints(c.Endpoints()[0], c.Endpoints()[2])
		synctest.Wait() // their time to leave is set, and has not come
		cli.SetEndpoints(c.Endpoints()...)
		time.Sleep(30 * time.Second)
		if n := streamMoves(cli); n != 0 {
			t.Errorf("%d streams left an endpoint that was out for an instant (%v), want none", n, cli.Health().Moves)
		}
	})
}

// A member that is removed from its cluster, or made a learner, or that belongs
// to another cluster, is left by everything, and gets nothing more.
func TestStreamsLeaveAMemberThatIsNoVoterOfTheCluster(t *testing.T) {
	for name, fault := range map[string]func(*fakeetcd.Member){
		"removed":       (*fakeetcd.Member).Remove,
		"learner":       func(m *fakeetcd.Member) { m.SetLearner(true) },
		"other cluster": func(m *fakeetcd.Member) { m.SetCluster(42) },
	} {
		for _, shim := range []fakeetcd.Shim{fakeetcd.ShimSidecar, fakeetcd.ShimNone} {
			t.Run(fmt.Sprint(name, shim), func(t *testing.T) {
				inBubble(t, fakeetcd.Options{Shim: shim}, options{Rebalance: -1}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
					var watches []clientv3.WatchChan
					for i := range 6 {
						watches = append(watches, cli.Watch(metadata.AppendToOutgoingContext(t.Context(), "watch", fmt.Sprint(i)), "k"))
					}
					time.Sleep(time.Second)
					m := c.Member(1)
					fault(m)
					time.Sleep(8 * time.Second)
					if e, _ := cli.Health().Endpoint(m.Address); e.Grade != "parked" {
						t.Errorf("the member is %s (%s), want parked", e.Grade, e.Reason)
					}
					if n := m.Streams("Watch"); n != 0 {
						t.Errorf("%d watches are still on the member", n)
					}
					before := len(c.Requests("Put"))
					for range 6 {
						if _, err := cli.Put(t.Context(), "x", "v"); err != nil {
							t.Errorf("Put: %v", err)
						}
					}
					for _, r := range c.Requests("Put")[before:] {
						if r.Member == m.Index() {
							t.Error("a Put went to the member")
						}
					}
					c.Put("k", "v")
					time.Sleep(time.Second)
					for i, ch := range watches {
						if len(ch) != 1 {
							t.Errorf("watch %d has %d answers after the Put, want one", i, len(ch))
						}
					}
				})
			})
		}
	}
}
