//go:build linux

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// eventPrefix is where workload's reference writes, to the keys 0 to 7 in turn.
const eventPrefix = "/e2e/events/"

// errClosed is why a watch closed before it was created, where it does not say.
var errClosed = errors.New("its channel closed")

// want describes a watch.
type want struct {
	name     string
	stream   string // watches that name the same one share it; "": the watch's own
	key      string // a prefix where it ends in a slash
	late     bool   // opened while the load ran, from a revision that may be gone
	noPuts   bool
	noDels   bool
	prevKV   bool
	fragment bool
}

func (w want) options(from int64) []clientv3.OpOption {
	// Notices are asked for on every stream when the load stops.
	opts := []clientv3.OpOption{clientv3.WithRev(from), clientv3.WithCreatedNotify(), clientv3.WithProgressNotify()}
	if w.end() != "" {
		opts = append(opts, clientv3.WithPrefix())
	}
	if w.noPuts {
		opts = append(opts, clientv3.WithFilterPut())
	}
	if w.noDels {
		opts = append(opts, clientv3.WithFilterDelete())
	}
	if w.prevKV {
		opts = append(opts, clientv3.WithPrevKV())
	}
	if w.fragment {
		opts = append(opts, clientv3.WithFragment())
	}
	return opts
}

func (w want) end() string {
	if strings.HasSuffix(w.key, "/") {
		return clientv3.GetPrefixRangeEnd(w.key)
	}
	return ""
}

// wanted lists the watches of a configuration that are opened at the start.
func (c Config) wanted() []want {
	var ws []want
	if c.Watches {
		keys, counter := historyPrefix+c.Name+"/", counterKey(c.Name, 0)
		ws = []want{
			{name: "plain", key: keys},
			{name: "previous", key: keys, prevKV: true},
			{name: "deletes", key: keys, noPuts: true},
			{name: "puts", key: keys, noDels: true},
			{name: "reference", key: eventPrefix, prevKV: true},
			{name: "shared-plain", stream: "shared", key: keys},
			{name: "shared-deletes", stream: "shared", key: keys, noPuts: true, prevKV: true},
			{name: "shared-puts", stream: "shared", key: keys, noDels: true},
			{name: "shared-reference", stream: "shared", key: eventPrefix},
			{name: "shared-counter", stream: "shared", key: counter},
			{name: "notices-plain", stream: noticed, key: keys},
			{name: "notices-counter", stream: noticed, key: counter, prevKV: true},
			{name: "notices-idle", stream: noticed, key: Prefix + "idle/"},
		}
	}
	if c.Big > 0 {
		keys := bigPrefix + c.Name + "/"
		ws = append(ws,
			want{name: "big-fragments", key: keys, prevKV: true, fragment: true},
			want{name: "big-whole", key: keys},
		)
	}
	for i := range c.ManyWatchers {
		ws = append(ws, want{
			name: fmt.Sprintf("many-%d", i), stream: fmt.Sprintf("many-%d", i/manyOnStream), key: fmt.Sprintf("%s%d", eventPrefix, i%8),
		})
	}
	return ws
}

const (
	noticed      = "notices" // the stream on which progress is asked for all the time
	manyOnStream = 10
	lateWatches  = 5
	lateEvery    = 2 * time.Second
	// openPatience is how long a late watch may take to open at the end of a load; a
	// client whose members were all away needs some seconds.
	openPatience = 20 * time.Second
)

// watches are all watches beside those of the load. It owns a goroutine for each.
type watches struct {
	*site
	ctx    context.Context // of the watches
	cancel context.CancelFunc
	from   int64

	mu   sync.Mutex
	taps []*tap
	run  sync.WaitGroup
}

// start opens the watches, and further ones while the load runs, which have to catch
// up with what was written before.
func (w *watches) start(ctx context.Context) error {
	for _, want := range w.cfg.wanted() {
		if err := w.open(ctx, want); err != nil {
			return err
		}
	}
	if !w.cfg.Watches {
		return nil
	}
	w.work.Go(w.late)
	w.work.Go(func() {
		named := w.named(noticed)
		w.repeat(time.Second, func() error { return w.notice(named) })
	})
	return nil
}

func (w *watches) late() {
	for i := range lateWatches {
		if w.pause(lateEvery) != nil {
			return
		}
		began := time.Now()
		late := want{name: fmt.Sprintf("late-%d", i), key: historyPrefix + w.cfg.Name + "/", prevKV: i%2 == 1, late: true}
		err := w.open(w.calls, late)
		w.file(ofNothing, "watch", began, err)
		if waited := time.Since(began); lostLate(err, w.over(), waited) {
			w.never(late, waited, err)
		}
	}
}

// lostLate says that a late watch was lost to its user before it was open: it was
// closed while the load ran, or the end of the load found it still unopened after a long
// time. One whose revision was compacted before has come too late.
func lostLate(err error, over bool, waited time.Duration) bool {
	if err == nil || errors.Is(err, rpctypes.ErrCompacted) {
		return false
	}
	return !over || waited > openPatience
}

// never records a watch that was never open as one that was closed: nobody else would
// tell of it.
func (w *watches) never(want want, waited time.Duration, err error) {
	t := &tap{stream: want.name, moved: make(chan struct{}, 1), rec: history.Stream{
		Name: w.cfg.Name + "/" + want.name, Key: want.key, End: want.end(), From: w.from, Puts: true, Deletes: true,
		Closed: fmt.Sprintf("it was never open, in %v: %v", waited.Round(time.Millisecond), err),
	}}
	w.mu.Lock()
	w.taps = append(w.taps, t)
	w.mu.Unlock()
}

// named is the context of a stream.
func (w *watches) named(stream string) context.Context {
	return workload.NameWatch(w.ctx, w.cfg.Name+"/"+stream)
}

// open returns when the watch stands.
func (w *watches) open(ctx context.Context, want want) error {
	if want.stream == "" {
		want.stream = want.name
	}
	t := &tap{stream: want.stream, late: want.late, moved: make(chan struct{}, 1), rec: history.Stream{
		Name: w.cfg.Name + "/" + want.name, Key: want.key, End: want.end(), From: w.from,
		Puts: !want.noPuts, Deletes: !want.noDels, PrevKV: want.prevKV, Fragment: want.fragment, Progress: true,
	}}
	wctx, cancel := context.WithCancel(w.named(want.stream))
	// Watch itself waits, without a deadline, until its stream is open.
	standing := context.AfterFunc(ctx, cancel)
	ch := w.cli.Watch(wctx, want.key, want.options(w.from)...)
	select {
	case resp, ok := <-ch:
		if !ok || !resp.Created {
			cancel()
			return fmt.Errorf("watch %s was not created: %w", t.rec.Name, cmp.Or(resp.Err(), errClosed))
		}
	case <-ctx.Done():
		cancel()
		return fmt.Errorf("watch %s was not created: %w", t.rec.Name, context.Cause(ctx))
	}
	if !standing() {
		return fmt.Errorf("watch %s was created too late: %w", t.rec.Name, context.Cause(ctx))
	}
	w.mu.Lock()
	w.taps = append(w.taps, t)
	w.mu.Unlock()
	w.run.Go(func() {
		defer cancel()
		t.follow(wctx, ch, w.clock)
	})
	return nil
}

// notice asks for a progress notice on a stream.
func (w *watches) notice(stream context.Context) error {
	ctx, cancel := context.WithTimeout(stream, time.Second)
	defer cancel()
	return w.cli.RequestProgress(ctx)
}

func (w *watches) all() []*tap {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.taps
}

// stop waits until every watch has delivered upTo or is known to have nothing more
// up to there, at most until ctx ends, and returns the records. An open watch on
// keys that nobody changes says so only where it is asked.
func (w *watches) stop(ctx context.Context, upTo int64) []history.Stream {
	const again = 250 * time.Millisecond
	for ctx.Err() == nil {
		behind := make(map[string]*tap)
		for _, t := range w.all() {
			if !t.reached(upTo) {
				behind[t.stream] = t
			}
		}
		if len(behind) == 0 {
			break
		}
		for stream := range behind {
			// A stream that cannot ask now is asked again.
			w.run.Go(func() { w.notice(w.named(stream)) })
		}
		w.wait(ctx, again, upTo)
	}
	w.cancel()
	w.run.Wait()
	var all []history.Stream
	for _, t := range w.all() {
		if t.late && t.compacted && len(t.rec.Responses) == 0 {
			continue // it came too late for its revision: no fault of the client's
		}
		t.rec.Upto = upTo
		all = append(all, t.rec)
	}
	return all
}

// wait returns after a while, or earlier when everything has arrived.
func (w *watches) wait(ctx context.Context, d time.Duration, upTo int64) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for _, t := range w.all() {
		for !t.reached(upTo) {
			select {
			case <-t.moved:
			case <-ctx.Done():
				return
			}
		}
	}
}

// tap is one watch.
type tap struct {
	stream string
	late   bool
	moved  chan struct{} // one token whenever something arrived or the channel closed

	mu        sync.Mutex
	rec       history.Stream
	upTo      int64 // everything up to this revision was delivered, if the server is right
	compacted bool  // it ended because it asked for what was compacted
}

func (t *tap) follow(ctx context.Context, ch clientv3.WatchChan, clock clock) {
	var last error
	for resp := range ch {
		last = resp.Err()
		if !resp.Created {
			t.take(resp, clock.now())
		}
	}
	if ctx.Err() == nil {
		t.mu.Lock()
		t.rec.Closed = errors.Join(errors.New("the watch channel closed"), last).Error()
		t.mu.Unlock()
	}
	t.tell()
}

func (t *tap) take(resp clientv3.WatchResponse, at time.Duration) {
	r := history.Response{At: at, Revision: resp.Header.GetRevision()}
	for _, ev := range resp.Events {
		r.Changes = append(r.Changes, change(ev))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(r.Changes) > 0:
		t.upTo = max(t.upTo, r.Changes[len(r.Changes)-1].Revision)
	case resp.IsProgressNotify():
		t.upTo = max(t.upTo, r.Revision)
	default:
		t.compacted = resp.CompactRevision > 0
		return // the channel is about to close: Closed says why
	}
	t.rec.Responses = append(t.rec.Responses, r)
	t.tell()
}

func change(ev *clientv3.Event) history.Change {
	c := history.Change{
		Revision: ev.Kv.ModRevision, Deleted: ev.Type == mvccpb.Event_DELETE,
		Key: string(ev.Kv.Key), Value: string(ev.Kv.Value), Create: ev.Kv.CreateRevision, Version: ev.Kv.Version,
	}
	if ev.PrevKv != nil {
		value := string(ev.PrevKv.Value)
		c.Previous = &value
	}
	return c
}

func (t *tap) tell() {
	select {
	case t.moved <- struct{}{}:
	default:
	}
}

func (t *tap) reached(revision int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rec.Closed != "" || t.upTo >= revision
}
