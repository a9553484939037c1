//go:build linux

package app

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// site is what every part of the load works with. It owns the goroutines of those
// that call; they end with calls.
type site struct {
	cfg   Config
	clock clock
	desk  *desk
	cli   *clientv3.Client
	// calls is the context of everything that changes the store. It is marked as a
	// user's and ends before watches do.
	calls context.Context
	work  sync.WaitGroup
}

// over says that an error is no news: the load has ended.
func (s *site) over() bool { return s.calls.Err() != nil }

// bound is the context of one call; without a timeout it has no deadline.
func (s *site) bound(timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(s.calls)
	}
	return context.WithTimeout(s.calls, timeout)
}

// file counts a call, unless it failed because the load ended.
func (s *site) file(p part, class string, began time.Time, err error) {
	if err == nil || !s.over() {
		s.desk.file(p, class, began, err)
	}
}

// repeat does something until the load ends. After a failure it waits longer, as
// applications do.
func (s *site) repeat(every time.Duration, do func() error) {
	const afterFailure = 100 * time.Millisecond
	for !s.over() {
		wait := every
		if do() != nil {
			wait += afterFailure
		}
		if s.pause(wait) != nil {
			return
		}
	}
}

func (s *site) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.calls.Done():
		return context.Cause(s.calls)
	}
}

// random gives each worker a source of its own, so that the seed decides what each
// of them does.
func (s *site) random(worker uint64) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(s.cfg.Seed), worker))
}
