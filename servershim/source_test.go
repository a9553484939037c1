package servershim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorumwise/quorumwise/membership"
)

// fakeSource is a member that answers as a test tells it. The zero value hangs
// in every call until its context ends.
type fakeSource struct {
	mu      sync.Mutex
	rtt     time.Duration
	proof   answer
	read    answer
	observe answer
	seen    membership.Observation
	proofs  int // begun
	hanging int // calls that hang now
	most    int // most that ever hung at once

	readsOnce bool // read holds for one call, after that reads work
}

type answer int

const (
	hangs    answer = iota // until the context ends
	works                  // after rtt
	refuses                // at once, as a port that nobody listens on
	leaderNo               // at once, as a member that knows no leader
	learnerNo
	alien
)

var errRefused = errors.New("connection refused")

func (f *fakeSource) set(change func(*fakeSource)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeSource) call(ctx context.Context, which *answer) error {
	f.mu.Lock()
	how, rtt := *which, f.rtt
	if which == &f.read && f.readsOnce {
		f.read, f.readsOnce = works, false
	}
	if how == hangs {
		f.hanging++
		f.most = max(f.most, f.hanging)
	}
	f.mu.Unlock()
	switch how {
	case works:
		return sleep(ctx, rtt)
	case refuses:
		return errRefused
	case leaderNo:
		return membership.ErrNoLeader
	case learnerNo:
		return membership.ErrLearner
	case alien:
		return membership.ErrNotEtcd
	}
	<-ctx.Done()
	f.set(func(f *fakeSource) { f.hanging-- })
	return ctx.Err()
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeSource) Prove(ctx context.Context) error {
	f.set(func(f *fakeSource) { f.proofs++ })
	return f.call(ctx, &f.proof)
}

func (f *fakeSource) Read(ctx context.Context) error { return f.call(ctx, &f.read) }

func (f *fakeSource) Observe(ctx context.Context) (membership.Observation, error) {
	at := time.Now()
	if err := f.call(ctx, &f.observe); err != nil {
		return membership.Observation{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.seen
	o.At = at
	return o, nil
}

// healthy is a follower on a LAN.
func healthy() *fakeSource {
	return &fakeSource{
		rtt: time.Millisecond, proof: works, read: works, observe: works,
		seen: membership.Observation{
			Cluster: 1, Member: 2, Leader: 3, Term: 5, RaftIndex: 10, AppliedIndex: 10, Voters: 3, Version: "3.7.3",
		},
	}
}
