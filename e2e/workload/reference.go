package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Reference writes numbered events and watches them through members that no fault
// touches. Its writes are the events that all loads watch.
type Reference struct {
	writer *clientv3.Client
	cancel context.CancelFunc
	write  sync.WaitGroup
	read   sync.WaitGroup
	stop   context.CancelFunc // of the writer

	mu     sync.Mutex
	events []Event
}

// StartReference writes an event every so often through writer, which should reach
// healthy members only, and watches through watcher, which should reach one.
func StartReference(ctx context.Context, writer, watcher *clientv3.Client, every time.Duration) (*Reference, error) {
	r := &Reference{writer: writer}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	ch := watcher.Watch(run, eventPrefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	select {
	case resp := <-ch:
		if !resp.Created {
			cancel()
			return nil, fmt.Errorf("workload: reference watch: %w", resp.Err())
		}
	case <-ctx.Done():
		cancel()
		return nil, fmt.Errorf("workload: reference watch: %w", context.Cause(ctx))
	}
	r.read.Go(func() { r.collect(ch) })
	writing, stop := context.WithCancel(run)
	r.stop = stop
	r.write.Go(func() { r.produce(writing, every) })
	return r, nil
}

// writeTimeout is short: in an election a write is given up, and the next number
// tried, so that events flow again the moment that they can.
const writeTimeout = 300 * time.Millisecond

func (r *Reference) produce(ctx context.Context, every time.Duration) {
	for n := 0; pause(ctx, every) == nil; n++ {
		put, cancel := context.WithTimeout(ctx, writeTimeout)
		// Whether it was applied is read from the history.
		r.writer.Put(put, fmt.Sprintf("%s%d", eventPrefix, n%8), fmt.Sprintf("event-%d", n))
		cancel()
	}
}

func (r *Reference) collect(ch clientv3.WatchChan) {
	for resp := range ch {
		now := time.Now()
		r.mu.Lock()
		for _, ev := range resp.Events {
			r.events = append(r.events, Event{Revision: ev.Kv.ModRevision, Value: string(ev.Kv.Value), At: now})
		}
		r.mu.Unlock()
	}
}

// Events is a copy of what the reference has seen so far.
func (r *Reference) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...)
}

// errNoEvent says that there was nothing that any watch could have missed.
var errNoEvent = errors.New("workload: the reference has not written a single event")

// Finish stops writing and returns the revision of the last event.
func (r *Reference) Finish(ctx context.Context) (int64, error) {
	r.stop()
	r.write.Wait()
	resp, err := r.writer.Get(ctx, eventPrefix, clientv3.WithLastRev()...)
	if err != nil {
		return 0, fmt.Errorf("workload: last event: %w", err)
	}
	if len(resp.Kvs) == 0 {
		return 0, errNoEvent
	}
	return resp.Kvs[0].ModRevision, nil
}

// Close ends the reference.
func (r *Reference) Close() {
	r.stop()
	r.write.Wait()
	r.cancel()
	r.read.Wait()
}

// History is what really happened, read back from the store.
type History struct {
	Events  []Event        // of the reference, by revision; At is not set
	Applied map[string]int // how often each value of a load's Puts was applied
}

// markTimeout is more than an election takes.
const markTimeout = 5 * time.Second

// ReadHistory reads all that has happened so far, through any member that has
// quorum.
func ReadHistory(ctx context.Context, cli *clientv3.Client) (History, error) {
	return ReadHistoryFrom(ctx, cli, 1)
}

// ReadHistoryFrom reads what happened from a revision on: for stores that were compacted,
// or filled, before the load began.
func ReadHistoryFrom(ctx context.Context, cli *clientv3.Client, revision int64) (History, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A last write of our own marks the end: everything before it was delivered.
	end, err := markEnd(ctx, cli)
	if err != nil {
		return History{}, fmt.Errorf("workload: history: %w", err)
	}
	h := History{Applied: make(map[string]int)}
	for resp := range cli.Watch(ctx, root, clientv3.WithPrefix(), clientv3.WithRev(revision)) {
		if err := resp.Err(); err != nil {
			return History{}, fmt.Errorf("workload: history: %w", err)
		}
		for _, ev := range resp.Events {
			h.add(string(ev.Kv.Key), string(ev.Kv.Value), ev.Kv.ModRevision)
			if ev.Kv.ModRevision >= end {
				return h, nil
			}
		}
	}
	return History{}, fmt.Errorf("workload: history ended early: %w", context.Cause(ctx))
}

// markEnd writes the last revision of a history, until ctx ends: clientv3 sends no Put
// again, and a leader that hands over drops it. It may be written twice.
func markEnd(ctx context.Context, cli *clientv3.Client) (revision int64, err error) {
	const every = 100 * time.Millisecond
	for {
		put, cancel := context.WithTimeout(ctx, markTimeout)
		resp, err := cli.Put(put, root+"end", "end")
		cancel()
		if err == nil {
			return resp.Header.Revision, nil
		}
		if pause(ctx, every) != nil {
			return 0, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

func (h *History) add(key, value string, revision int64) {
	switch {
	case strings.HasPrefix(key, eventPrefix):
		h.Events = append(h.Events, Event{Revision: revision, Value: value})
	case strings.HasPrefix(key, putPrefix):
		h.Applied[value]++
	}
}

// Between returns the events after one revision and up to another.
func Between(events []Event, after, upTo int64) []Event {
	var some []Event
	for _, e := range events {
		if e.Revision > after && e.Revision <= upTo {
			some = append(some, e)
		}
	}
	return some
}
