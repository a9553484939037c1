package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc/metadata"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// The budget at default settings, from the cut.
	callBudget = 400 * time.Millisecond
	moveBudget = 800 * time.Millisecond
	pathBudget = time.Second

	// How often each part of the load does something. The calls are what a suite of
	// hours of virtual time costs. No two have a common beat with each other or with
	// the fake's timers: what happens at one instant happens in any order.
	getEvery   = 127 * time.Millisecond
	putEvery   = 223 * time.Millisecond
	writeEvery = 109 * time.Millisecond
)

// options for a client in a test.
type options = client.Health

// inBubble runs a test in virtual time against a fake cluster of three members
// with one of our clients on it, connected to all.
func inBubble(t *testing.T, opts fakeetcd.Options, health options, test func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client)) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, opts)
		defer c.Close()
		cli := newClient(t, c, health)
		defer closeInTime(t, cli)
		settle(t, cli)
		test(t, c, cli)
	})
}

func newClient(t *testing.T, c *fakeetcd.Cluster, health options) *client.Client {
	t.Helper()
	return newClientOf(t, c.ClientConfig(), health)
}

func newClientOf(t *testing.T, cfg clientv3.Config, health options) *client.Client {
	t.Helper()
	if health.Logger == nil {
		health.Logger = slog.New(slog.DiscardHandler)
	}
	cli, err := client.New(client.Config{Config: cfg, Health: health})
	if err != nil {
		t.Fatal(err)
	}
	return cli
}

// closeInTime closes a client: within a second, whatever is going on.
func closeInTime(t *testing.T, cli *client.Client) {
	began := time.Now()
	cli.Close()
	if took := time.Since(began); took > time.Second {
		t.Errorf("Close took %v, want at most 1s", took)
	}
}

// settle waits until all endpoints are connected and judged.
func settle(t *testing.T, cli *client.Client) {
	t.Helper()
	time.Sleep(2 * time.Second)
	for _, e := range cli.Health().Endpoints {
		if e.Grade != "healthy" || !e.Connected {
			t.Fatalf("after 2 s %s is %s (%s; %s), connected %v; want healthy and connected", e.Address, e.Grade, e.Reason, e.Evidence, e.Connected)
		}
	}
}

// load is what runs on a client while something fails: reads and writes with
// and without a deadline, one watch per member, a lease.
type load struct {
	t   *testing.T
	c   *fakeetcd.Cluster
	cli *client.Client

	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	getErrs []error
	putErrs []error
	gets    [2]calls
	puts    [2]calls
	watches []*watched
	lease   clientv3.LeaseID
	lost    bool // the keepalive channel closed
}

// calls are those that one worker makes, one after the other.
type calls struct {
	began   time.Time // of the one in flight; zero: none is
	slowest time.Duration
}

// end takes down that the call in flight is over.
func (c *calls) end() { c.slowest, c.began = c.worst(), time.Time{} }

// worst is the longest that a call has taken, one that still hangs included.
func (c *calls) worst() time.Duration {
	if c.began.IsZero() {
		return c.slowest
	}
	return max(c.slowest, time.Since(c.began))
}

// watched is one watch and what came over it.
type watched struct {
	revisions []int64
	last      time.Time
	silence   time.Duration // longest, while writes went on
	ended     error
}

// startLoad begins the load and waits until every part of it works.
func startLoad(t *testing.T, c *fakeetcd.Cluster, cli *client.Client, ttl int64) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{t: t, c: c, cli: cli, cancel: cancel}
	for i := range 3 {
		w := &watched{last: time.Now()}
		l.watches = append(l.watches, w)
		// Different metadata makes clientv3 open different streams.
		wctx := metadata.AppendToOutgoingContext(ctx, "watch", fmt.Sprint(i))
		ch := cli.Watch(wctx, "n/", clientv3.WithPrefix(), clientv3.WithRev(1))
		l.spawn(func() { l.watch(w, ch) })
	}
	grant, err := cli.Grant(ctx, ttl)
	if err != nil {
		t.Fatalf("Grant: %v", err)
	}
	l.lease = grant.ID
	alive, err := cli.KeepAlive(ctx, grant.ID)
	if err != nil {
		t.Fatalf("KeepAlive: %v", err)
	}
	l.spawn(func() {
		for range alive {
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lost = ctx.Err() == nil
	})
	l.spawn(func() { // the numbered writes, from outside, so that they never stop
		for i := 0; ctx.Err() == nil; i++ {
			c.Put(fmt.Sprintf("n/%d", i%10), fmt.Sprint(i))
			time.Sleep(writeEvery)
		}
	})
	for i := range l.gets {
		timeout := 5 * time.Second
		if i == 0 {
			timeout = time.Hour // practically none
		}
		l.spawn(func() { l.get(ctx, i, timeout) })
	}
	for i := range l.puts {
		l.spawn(func() { l.put(ctx, i) })
	}
	time.Sleep(500 * time.Millisecond)
	return l
}

func (l *load) spawn(f func()) {
	l.wg.Add(1)
	go func() { defer l.wg.Done(); f() }()
}

func (l *load) watch(w *watched, ch clientv3.WatchChan) {
	for resp := range ch {
		l.mu.Lock()
		now := time.Now()
		w.silence = max(w.silence, now.Sub(w.last))
		w.last = now
		if err := resp.Err(); err != nil {
			w.ended = err
		}
		for _, ev := range resp.Events {
			w.revisions = append(w.revisions, ev.Kv.ModRevision)
		}
		l.mu.Unlock()
	}
}

// begin takes down that a worker's call is in flight.
func (l *load) begin(c *calls) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.began = time.Now()
}

func (l *load) get(ctx context.Context, worker int, timeout time.Duration) {
	for ctx.Err() == nil {
		l.begin(&l.gets[worker])
		callCtx, cancel := context.WithTimeout(ctx, timeout)
		_, err := l.cli.Get(callCtx, "n/0")
		cancel()
		l.mu.Lock()
		if err != nil && ctx.Err() == nil {
			l.getErrs = append(l.getErrs, err)
		}
		l.gets[worker].end()
		l.mu.Unlock()
		time.Sleep(getEvery)
	}
}

func (l *load) put(ctx context.Context, worker int) {
	for i := 0; ctx.Err() == nil; i++ {
		l.begin(&l.puts[worker])
		callCtx, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := l.cli.Put(callCtx, fmt.Sprintf("p/%d", worker), fmt.Sprintf("%d-%d", worker, i))
		cancel()
		l.mu.Lock()
		if err != nil && ctx.Err() == nil && !client.IsOutcomeUnknown(err) {
			l.putErrs = append(l.putErrs, err)
		}
		l.puts[worker].end()
		l.mu.Unlock()
		time.Sleep(putEvery)
	}
}

// stop ends the load and checks what must hold whatever happened: reads never
// fail, no mutation was sent twice, no event is lost, doubled or out of order,
// the lease is there.
func (l *load) stop() {
	l.t.Helper()
	synctest.Wait() // what happened at this instant has been taken down
	l.mu.Lock()
	if _, ok := l.c.Lease(l.lease); !ok || l.lost {
		l.t.Errorf("the lease was lost (in the store: %v, channel closed: %v), want it kept", ok, l.lost)
	}
	l.mu.Unlock()
	l.cancel()
	l.wg.Wait()
	for _, err := range l.getErrs {
		l.t.Errorf("a Get failed: %v; want every read re-sent until it is answered", err)
	}
	for _, err := range l.putErrs {
		l.t.Errorf("a Put failed: %v; want it acknowledged, or its outcome unknown", err)
	}
	for id, n := range l.c.Mutations() {
		if n > 1 {
			l.t.Errorf("mutation %q was sent %d times, want once", id, n)
		}
	}
	for i, w := range l.watches {
		l.checkWatch(i, w)
	}
}

func (l *load) checkWatch(i int, w *watched) {
	l.t.Helper()
	if w.ended != nil && !errors.Is(w.ended, context.Canceled) {
		l.t.Errorf("watch %d ended with %v, want it to go on", i, w.ended)
	}
	for j := 1; j < len(w.revisions); j++ {
		if w.revisions[j] <= w.revisions[j-1] {
			l.t.Errorf("watch %d: revision %d after %d: doubled or out of order", i, w.revisions[j], w.revisions[j-1])
			return
		}
	}
}

// checkWhole compares the watches with each other: they saw the same events.
func (l *load) checkWhole() {
	l.t.Helper()
	shortest := len(l.watches[0].revisions)
	for _, w := range l.watches {
		shortest = min(shortest, len(w.revisions))
	}
	for j := range shortest {
		for i, w := range l.watches {
			if w.revisions[j] != l.watches[0].revisions[j] {
				l.t.Errorf("event %d is revision %d on watch %d and %d on watch 0: one of them lost an event",
					j, w.revisions[j], i, l.watches[0].revisions[j])
				return
			}
		}
	}
	for i, w := range l.watches {
		if len(w.revisions)-shortest > 2 {
			l.t.Errorf("watch %d has %d events, the shortest %d: want all of the same length", i, len(w.revisions), shortest)
		}
	}
}

// worst are the figures of the load so far.
func (l *load) worst() (get, put, silence time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.gets {
		get = max(get, l.gets[i].worst())
	}
	for i := range l.puts {
		put = max(put, l.puts[i].worst())
	}
	for _, w := range l.watches {
		silence = max(silence, w.silence, time.Since(w.last))
	}
	return get, put, silence
}
