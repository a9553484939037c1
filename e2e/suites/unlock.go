//go:build linux

package suites

import (
	"context"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/quorumwise/quorumwise/client"
)

// lockedTTL is that of the lease of the lock that is given back.
const lockedTTL = 5 * time.Second

// unlockWhileCut claims that the outcome of the unlock is known or said to be unknown, and
// that a second client gets the lock no later than its lease ends.
func unlockWhileCut(ctx context.Context, st *Stage) error {
	const ttl, mutexKey = lockedTTL, "/bystanders/lock"
	holder, err := newClient(st, bystanderConfig{Endpoints: []string{st.Target.Endpoint()}})
	if err != nil {
		return err
	}
	defer holder.Close()
	session, err := concurrency.NewSession(holder.Client, concurrency.WithTTL(int(ttl/time.Second)))
	if err != nil {
		return err
	}
	mutex := concurrency.NewMutex(session, mutexKey)
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	second, err := newClient(st, bystanderConfig{})
	if err != nil {
		return err
	}
	defer second.Close()
	next, err := concurrency.NewSession(second.Client)
	if err != nil {
		return err
	}
	if err := st.Inflict(ctx, FaultNamed("cut"), st.Target); err != nil {
		return err
	}
	cut := time.Now()
	patience, cancel := context.WithTimeout(ctx, ttl)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- mutex.Unlock(patience) }() // ends with its context
	// Only what is on its way to the cut member already shows anything.
	wait := sleep(ctx, 20*time.Millisecond)
	holder.SetEndpoints(st.Cluster.Endpoints()...)
	outcome := <-ended
	if wait != nil {
		return wait
	}
	u := unlocking{outcome: outcome, took: time.Since(cut)}
	session.Orphan()
	waiting, stop := context.WithTimeout(ctx, 2*ttl)
	defer stop()
	u.next = concurrency.NewMutex(next, mutexKey).Lock(waiting)
	u.free = time.Since(cut)
	st.judgeUnlock(u)
	next.Orphan() // its lease ends by itself, whatever member it is on
	return nil
}

// unlocking is how a lock was given back and taken again. Times are from the cut.
type unlocking struct {
	outcome error         // of the unlock
	took    time.Duration // until it ended
	next    error         // of the second client's lock
	free    time.Duration // until that ended
}

func (st *Stage) judgeUnlock(u unlocking) {
	const slack = 2 * time.Second
	// An error that says nothing leaves the outcome unknown as well, but does not say so.
	st.claim(u.outcome == nil || client.IsOutcomeUnknown(u.outcome), "unlock ended with %v after %v; want it done, or an error that says that its outcome is unknown", u.outcome, u.took)
	st.claimTiming(u.took < unreachable.Streams, "unlock took %v; want less than %v: its member was cut", u.took, unreachable.Streams)
	st.claimTiming(u.next == nil && u.free < lockedTTL+slack, "a second client got the lock after %v (error %v); want it no later than the lease of %v ends", u.free, u.next, lockedTTL)
	st.Note("unlock: %v after %v; the lock was free after %v", u.outcome, u.took, u.free)
}
