package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Config describes a load.
type Config struct {
	Name   string           // appears in keys and violations
	Client *clientv3.Client // under test; must record into Trace
	Trace  *Trace
	// Observer reaches members that no fault touches; it reads how long leases have.
	Observer *clientv3.Client
	// Spread is how many members must each carry one watch and one lease stream
	// before the load counts as started.
	Spread int
	// LeaseTTL of the leases; default 5 s.
	LeaseTTL time.Duration
	// RequestTimeout of Gets and Puts; default 5 s. One worker of each kind has no
	// deadline at all.
	RequestTimeout time.Duration
	// Quiet leaves out Gets and Puts: only watches and leases.
	Quiet bool
}

// Keys of loads and of the reference.
const (
	root        = "/e2e/"
	eventPrefix = root + "events/"
	putPrefix   = root + "puts/"
)

const (
	getPause = 20 * time.Millisecond
	putPause = 40 * time.Millisecond
)

// Load is a running load. Its workers end with Stop.
type Load struct {
	cfg      Config
	began    time.Time
	startRev int64

	ctx       context.Context // of watches and leases
	cancel    context.CancelFunc
	opCtx     context.Context // of Gets and Puts
	cancelOps context.CancelFunc
	ops       sync.WaitGroup
	streams   sync.WaitGroup

	watches []*watch // fixed after Start
	leases  []*lease // fixed after Start

	mu      sync.Mutex
	gets    []Op
	puts    []Op
	waiting map[*Op]bool // calls that have not returned
	slow    int
	failed  int
}

// Start returns when the watches and leases stand on as many members as wanted and
// the workers run.
func Start(ctx context.Context, cfg Config) (*Load, error) {
	if cfg.LeaseTTL == 0 {
		cfg.LeaseTTL = 5 * time.Second
	}
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = 5 * time.Second
	}
	l := &Load{cfg: cfg, waiting: make(map[*Op]bool)}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.opCtx, l.cancelOps = context.WithCancel(AsUser(l.ctx))
	if err := l.open(ctx); err != nil {
		l.Stop(ctx, 0)
		return nil, fmt.Errorf("workload %s: %w", cfg.Name, err)
	}
	l.began = time.Now()
	if !cfg.Quiet {
		l.work()
	}
	return l, nil
}

// open brings up connections, watches and leases.
func (l *Load) open(ctx context.Context) error {
	if err := l.warm(ctx); err != nil {
		return err
	}
	now, err := l.cfg.Observer.Get(ctx, root)
	if err != nil {
		return err
	}
	l.startRev = now.Header.Revision
	if err := l.spread(ctx, MethodWatch, l.addWatch); err != nil {
		return err
	}
	return l.spread(ctx, MethodKeepAlive, l.addLease)
}

// warm reads until every member has answered: the first endpoint that connects
// would otherwise attract every stream.
func (l *Load) warm(ctx context.Context) error {
	answered := make(map[string]bool)
	for len(answered) < l.cfg.Spread {
		if _, err := l.cfg.Client.Get(AsUser(ctx), root); err != nil {
			return err
		}
		for _, a := range l.cfg.Trace.Attempts(func(a Attempt) bool { return a.Method == MethodRange && !a.Ended.IsZero() && a.Err == nil }) {
			answered[a.Address] = true
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d members answered: %w", len(answered), l.cfg.Spread, err)
		}
	}
	return nil
}

// spread adds streams until enough members carry one.
func (l *Load) spread(ctx context.Context, method string, add func(context.Context, int) error) error {
	const most = 24
	for i := range most {
		// A member that is out of use for a moment may be in use again soon.
		if err := pause(ctx, time.Duration(max(0, i-l.cfg.Spread))*50*time.Millisecond); err != nil {
			return err
		}
		if err := add(ctx, i); err != nil {
			return err
		}
		carry := make(map[string]bool)
		for _, addr := range l.cfg.Trace.Open(method) {
			carry[addr] = true
		}
		if len(carry) >= l.cfg.Spread {
			return nil
		}
	}
	return fmt.Errorf("after %d streams of %s they stand on %v only, want %d members", most, method, l.cfg.Trace.Open(method), l.cfg.Spread)
}

// work starts the workers: two of each kind with the request timeout, one without.
func (l *Load) work() {
	for i, timeout := range []time.Duration{l.cfg.RequestTimeout, l.cfg.RequestTimeout, 0} {
		l.ops.Go(func() { l.repeat(getPause, func() { l.get(timeout) }) })
		l.ops.Go(func() {
			n := 0
			l.repeat(putPause, func() { n++; l.put(fmt.Sprintf("%s-%d-%d", l.cfg.Name, i, n), timeout) })
		})
	}
}

func (l *Load) repeat(every time.Duration, do func()) {
	for l.opCtx.Err() == nil {
		do()
		if pause(l.opCtx, every) != nil {
			return
		}
	}
}

func (l *Load) get(timeout time.Duration) {
	ctx, cancel := l.bound(timeout)
	defer cancel()
	op := l.begin("")
	resp, err := l.cfg.Client.Get(ctx, putPrefix+l.cfg.Name)
	if err == nil {
		op.Revision = resp.Header.Revision
	}
	l.keep(&l.gets, op, err)
}

func (l *Load) put(id string, timeout time.Duration) {
	ctx, cancel := l.bound(timeout)
	defer cancel()
	op := l.begin(id)
	resp, err := l.cfg.Client.Put(ctx, putPrefix+l.cfg.Name, id)
	if err == nil {
		op.Revision = resp.Header.Revision
	}
	l.keep(&l.puts, op, err)
}

// bound is a call's context: with the timeout, or without any deadline.
func (l *Load) bound(timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(l.opCtx)
	}
	return context.WithTimeout(l.opCtx, timeout)
}

func (l *Load) begin(id string) *Op {
	op := &Op{ID: id, Began: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[op] = true
	return op
}

// keep files a call. One that ended because the load did has not returned.
func (l *Load) keep(ops *[]Op, op *Op, err error) {
	now := time.Now()
	if err == nil || l.opCtx.Err() == nil {
		op.Ended, op.Err = now, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, op)
	*ops = append(*ops, *op)
	if op.Took(now) > Slow {
		l.slow++
	}
	if op.Err != nil {
		l.failed++
	}
}

// Stop ends the workers, gives the watches until ctx ends to deliver revision upTo,
// and returns the record.
func (l *Load) Stop(ctx context.Context, upTo int64) Record {
	ended := time.Now()
	l.cancelOps()
	l.ops.Wait()
	for _, w := range l.watches {
		w.waitFor(ctx, upTo)
	}
	l.cancel()
	l.streams.Wait()
	rec := Record{Name: l.cfg.Name, Began: l.began, Ended: ended, StartRev: l.startRev, Gets: l.gets, Puts: l.puts}
	for _, w := range l.watches {
		rec.Watches = append(rec.Watches, w.rec)
	}
	for _, le := range l.leases {
		le.lessor.Close()
		rec.Leases = append(rec.Leases, le.rec)
	}
	return rec
}

// watch is one watch on a stream of its own.
type watch struct {
	mu    sync.Mutex
	rec   WatchRecord
	moved chan struct{} // one token whenever events arrived or the channel closed
}

func (l *Load) addWatch(ctx context.Context, i int) error {
	w := &watch{rec: WatchRecord{Name: fmt.Sprintf("%s/%d", l.cfg.Name, i)}, moved: make(chan struct{}, 1)}
	wctx := NameWatch(l.ctx, w.rec.Name)
	ch := l.cfg.Client.Watch(wctx, eventPrefix, clientv3.WithPrefix(), clientv3.WithRev(l.startRev+1), clientv3.WithCreatedNotify())
	select {
	case resp, ok := <-ch:
		if !ok || !resp.Created {
			return fmt.Errorf("watch %s was not created: %w", w.rec.Name, resp.Err())
		}
	case <-ctx.Done():
		return fmt.Errorf("watch %s was not created: %w", w.rec.Name, context.Cause(ctx))
	}
	l.watches = append(l.watches, w)
	l.streams.Go(func() { w.run(l.ctx, ch) })
	return nil
}

func (w *watch) run(ctx context.Context, ch clientv3.WatchChan) {
	var last error
	for resp := range ch {
		last = resp.Err()
		now := time.Now()
		w.mu.Lock()
		for _, ev := range resp.Events {
			w.rec.Events = append(w.rec.Events, Event{Revision: ev.Kv.ModRevision, Value: string(ev.Kv.Value), At: now})
		}
		w.mu.Unlock()
		w.tell()
	}
	if ctx.Err() == nil {
		w.mu.Lock()
		w.rec.Closed = errors.Join(errors.New("the watch channel closed"), last)
		w.mu.Unlock()
	}
	w.tell()
}

func (w *watch) tell() {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

func (w *watch) waitFor(ctx context.Context, revision int64) {
	for !w.reached(revision) {
		select {
		case <-w.moved:
		case <-ctx.Done():
			return
		}
	}
}

func (w *watch) reached(revision int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.rec.Events)
	return w.rec.Closed != nil || n > 0 && w.rec.Events[n-1].Revision >= revision || revision == 0
}

// lease is one lease with a lessor, and so a keepalive stream, of its own.
type lease struct {
	lessor clientv3.Lease

	mu  sync.Mutex
	rec LeaseRecord
}

// note changes the record.
func (le *lease) note(change func(*LeaseRecord)) {
	le.mu.Lock()
	defer le.mu.Unlock()
	change(&le.rec)
}

func (l *Load) addLease(ctx context.Context, i int) error {
	le := &lease{lessor: clientv3.NewLease(l.cfg.Client), rec: LeaseRecord{Name: fmt.Sprintf("%s/%d", l.cfg.Name, i)}}
	l.leases = append(l.leases, le)
	granted, err := le.lessor.Grant(ctx, int64(l.cfg.LeaseTTL/time.Second))
	if err != nil {
		return fmt.Errorf("lease %s: %w", le.rec.Name, err)
	}
	le.rec.ID = int64(granted.ID)
	ch, err := le.lessor.KeepAlive(l.ctx, granted.ID)
	if err != nil {
		return fmt.Errorf("lease %s: %w", le.rec.Name, err)
	}
	select {
	case _, ok := <-ch:
		if !ok {
			return fmt.Errorf("lease %s ended at once", le.rec.Name)
		}
	case <-ctx.Done():
		return fmt.Errorf("lease %s: no keepalive answered: %w", le.rec.Name, context.Cause(ctx))
	}
	l.streams.Go(func() { l.follow(le, ch) })
	return nil
}

// follow records a lease's answers, and what an unaffected member says of it.
func (l *Load) follow(le *lease, ch <-chan *clientv3.LeaseKeepAliveResponse) {
	const look = 500 * time.Millisecond
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case _, ok := <-ch:
			switch {
			case ok:
				le.note(func(r *LeaseRecord) { r.Answers = append(r.Answers, time.Now()) })
			case l.ctx.Err() == nil:
				le.note(func(r *LeaseRecord) { r.ClosedAt = time.Now() })
				fallthrough
			default:
				return
			}
		case <-tick.C:
			l.look(le, look)
		}
	}
}

// looks is how many members are asked for a lease's remaining life, one after the other: where
// all are endpoints of the observer and one is frozen, its turn may be always this lease's.
const looks = 3

// look asks for the lease's remaining life. That nobody can tell now (as in an election) is
// not a violation.
func (l *Load) look(le *lease, within time.Duration) {
	for range looks {
		ctx, cancel := context.WithTimeout(l.ctx, within/looks)
		resp, err := l.cfg.Observer.TimeToLive(ctx, clientv3.LeaseID(le.rec.ID))
		cancel()
		if err == nil {
			ttl := TTL{At: time.Now(), Remaining: time.Duration(resp.TTL) * time.Second}
			le.note(func(r *LeaseRecord) { r.TTLs = append(r.TTLs, ttl) })
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
