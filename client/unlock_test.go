package client_test

import (
	"context"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// A lock is held, a member is cut off its peers, and the lock is given back,
// maybe through that member. Its holder knows what became of it or that he does
// not know, and another client gets the lock no later than the lease ends.
func TestLockGivenBackThroughACutMemberIsFreeByTheEndOfItsLease(t *testing.T) {
	const ttl = 3 * time.Second
	for _, shim := range []fakeetcd.Shim{fakeetcd.ShimSidecar, fakeetcd.ShimNone} {
		inBubble(t, fakeetcd.Options{Shim: shim}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
			other := newClient(t, c, options{})
			defer closeInTime(t, other)
			unknown := 0
			for i := range 6 {
				session, err := concurrency.NewSession(cli.Client, concurrency.WithTTL(int(ttl/time.Second)))
				if err != nil {
					t.Fatal(err)
				}
				lock := concurrency.NewMutex(session, "lock/")
				if err := lock.Lock(t.Context()); err != nil {
					t.Fatal(err)
				}
				m := c.Member(i % 3)
				next := m // that the unlock goes to: each member is cut as this one and as another
				if i > 2 {
					next = c.Member((i + 1) % 3)
				}
				takeTurns(t, c, cli, next)
				m.CutPeers()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				err = lock.Unlock(ctx)
				cancel()
				switch {
				case err == nil:
				case client.IsOutcomeUnknown(err):
					unknown++
				default:
					t.Errorf("Unlock: %v, want it done or its outcome unknown", err)
				}
				session.Orphan() // nobody keeps the lease any more
				gave := time.Now()
				var theirs *concurrency.Session
				repeat(t, func() (err error) {
					theirs, err = concurrency.NewSession(other.Client, concurrency.WithTTL(60))
					return err
				})
				others := concurrency.NewMutex(theirs, "lock/")
				repeat(t, func() error { return others.Lock(t.Context()) })
				// A new leader, if it was the leader, gives every lease its whole life again.
				if took := time.Since(gave); took > ttl+2*time.Second+moveBudget {
					t.Errorf("the second client got the lock after %v, want it by the end of the lease of %v", took, ttl)
				}
				if err := others.Unlock(t.Context()); err != nil && !client.IsOutcomeUnknown(err) {
					t.Errorf("the second client's Unlock: %v", err)
				}
				repeat(t, theirs.Close)
				m.Heal()
				time.Sleep(2 * time.Second)
			}
			if unknown < 3 {
				t.Errorf("%d of the 3 Unlocks through a cut member are of unknown outcome: this tests nothing", unknown)
			}
		})
	}
}

// takeTurns makes calls until the next one's turn is at a member.
func takeTurns(t *testing.T, c *fakeetcd.Cluster, cli *client.Client, next *fakeetcd.Member) {
	t.Helper()
	for range 2 * len(c.Members()) {
		if _, err := cli.Put(t.Context(), "k", "v"); err != nil {
			t.Fatal(err)
		}
		puts := c.Requests("Put")
		if (puts[len(puts)-1].Member+1)%len(c.Members()) == next.Index() {
			return
		}
	}
	t.Fatalf("%s does not get its turn: this tests nothing", next.Address)
}

// repeat does what may be done twice, for as long as its outcome is unknown.
func repeat(t *testing.T, f func() error) {
	t.Helper()
	for {
		err := f()
		if err == nil {
			return
		}
		if !client.IsOutcomeUnknown(err) {
			t.Fatalf("the second client: %v, want it done or its outcome unknown", err)
		}
	}
}
