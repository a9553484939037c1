package client_test

import (
	"context"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// F18: a lock is held, a member is cut off its peers, and the lock is given back,
// maybe through that member. Its holder knows what became of it or that he does
// not know, and another client gets the lock no later than the lease ends.
func TestLockGivenBackThroughACutMemberIsFreeByTheEndOfItsLease(t *testing.T) {
	const ttl = 5 * time.Second
	for _, shim := range []fakeetcd.Shim{fakeetcd.ShimSidecar, fakeetcd.ShimNone} {
		inBubble(t, fakeetcd.Options{Shim: shim}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
			other := newClient(t, c, options{})
			defer closeInTime(t, other)
			unknown := 0
			for i := range 12 {
				// Puts make the unlock's turn come at every member.
				for range i {
					if _, err := cli.Put(t.Context(), "k", "v"); err != nil {
						t.Fatal(err)
					}
				}
				session, err := concurrency.NewSession(cli.Client, concurrency.WithTTL(int(ttl/time.Second)))
				if err != nil {
					t.Fatal(err)
				}
				lock := concurrency.NewMutex(session, "lock/")
				if err := lock.Lock(t.Context()); err != nil {
					t.Fatal(err)
				}
				m := c.Member(i % 3)
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
				var next *concurrency.Session
				repeat(t, func() (err error) {
					next, err = concurrency.NewSession(other.Client, concurrency.WithTTL(60))
					return err
				})
				others := concurrency.NewMutex(next, "lock/")
				repeat(t, func() error { return others.Lock(t.Context()) })
				// A new leader, if it was the leader, gives every lease its whole life again.
				if took := time.Since(gave); took > ttl+2*time.Second+moveBudget {
					t.Errorf("the second client got the lock after %v, want it by the end of the lease of %v", took, ttl)
				}
				if err := others.Unlock(t.Context()); err != nil && !client.IsOutcomeUnknown(err) {
					t.Errorf("the second client's Unlock: %v", err)
				}
				repeat(t, next.Close)
				m.Heal()
				time.Sleep(3 * time.Second)
			}
			if unknown == 0 {
				t.Error("every Unlock was answered: this tests nothing")
			}
		})
	}
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
