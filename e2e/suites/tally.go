//go:build linux

package suites

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A tally follows a key that is counted up: its versions must come one by one, none left out
// and none twice. One goroutine takes, others may read.
type tally struct {
	seen atomic.Int64 // version that it has come to

	mu     sync.Mutex
	broken string // the first thing wrong
}

func (t *tally) take(ev *clientv3.Event) {
	if got, want := ev.Kv.Version, t.seen.Load()+1; got != want {
		t.breaks(fmt.Sprintf("version %d came, want %d", got, want))
	}
	t.seen.Store(ev.Kv.Version)
}

// follow takes what a watch brings, which ctx ends and nothing else.
func (t *tally) follow(ctx context.Context, events clientv3.WatchChan) {
	for resp := range events {
		for _, ev := range resp.Events {
			t.take(ev)
		}
		if err := resp.Err(); err != nil {
			t.breaks(fmt.Sprintf("it ended: %v", err))
		}
	}
	if ctx.Err() == nil {
		t.breaks("its channel was closed")
	}
}

func (t *tally) breaks(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken == "" {
		t.broken = why
	}
}

// wrong says what was wrong; "" if nothing was.
func (t *tally) wrong() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}

// ended waits until ctx ends for the version that the store came to, and says what was wrong. A
// write that was given up may be applied after the store was asked: a later version is none too
// many, if it is the next.
func (t *tally) ended(ctx context.Context, stored *clientv3.GetResponse) string {
	if len(stored.Kvs) == 0 {
		return "none of its writes went through"
	}
	want := stored.Kvs[0].Version
	for t.seen.Load() < want && sleep(ctx, 20*time.Millisecond) == nil {
	}
	if got := t.seen.Load(); got < want {
		t.breaks(fmt.Sprintf("it is silent since version %d of %d", got, want))
	}
	return t.wrong()
}

// countUp writes until ctx ends whether or not the last write went through: the store says
// what did. The last one ends by itself, so that it is not still on its way when the store is
// asked. It returns when those ended that went through for certain.
func countUp(ctx context.Context, every time.Duration, put func(context.Context) error) (done []time.Time) {
	for sleep(ctx, every) == nil {
		one, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		if put(one) == nil {
			done = append(done, time.Now())
		}
		cancel()
	}
	return done
}
