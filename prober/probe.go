package prober

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// probe gathers evidence about one target for any number of subscribers.
//
// Its goroutines are the loop, which owns the gatherer, the detector and the connection to
// etcd's port; one per call in flight; and one per search for reports. All end when ctx does,
// and close waits for them.
type probe struct {
	key    probeKey
	dialer dialer

	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	events chan event    // from the goroutines to the loop
	kick   chan struct{} // capacity 1: the requests below have changed

	newest atomic.Pointer[condition]

	mu      sync.Mutex
	subs    map[*subscription]struct{}
	ask     bool // a poll of the reports was asked for since the loop looked last
	prove   bool // a proof was
	compare bool // comparison was
	outs    int  // subscriptions that hold the endpoint condemned
	waits   int  // subscriptions that await a report or a proof
}

// event is one thing that the loop is told: the outcome of a call, or news.
type event struct {
	id      int
	outcome outcome

	news    *healthsvc.News // nil: an outcome
	shim    bool
	session int
}

// subscription is one prober's interest in one probe. Nothing that a subscriber does
// changes what others see, except that a question asked for one is answered for all.
type subscription struct {
	probe  *probe
	notify chan<- struct{} // capacity 1

	// Guarded by probe.mu. What they say wakes it though the condition is the same as before:
	outed  bool // proofs of our own, while it holds the endpoint condemned
	awaits bool // those, and words of a report, while one may decide
}

func newProbe(key probeKey, d dialer) *probe {
	p := &probe{
		key: key, dialer: d,
		events: make(chan event), kick: make(chan struct{}, 1), subs: make(map[*subscription]struct{}),
	}
	p.newest.Store(&condition{reason: ReasonChecking})
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.done.Go(p.loop)
	return p
}

// close ends the probe and waits for its goroutines.
func (p *probe) close() {
	p.cancel()
	p.done.Wait()
}

func (p *probe) subscribe(notify chan<- struct{}) *subscription {
	s := &subscription{probe: p, notify: notify}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subs[s] = struct{}{}
	return s
}

// drop ends the subscription.
func (s *subscription) drop() {
	s.stand(false, false, s.condition())
	s.probe.mu.Lock()
	defer s.probe.mu.Unlock()
	delete(s.probe.subs, s)
}

// condition returns the newest.
func (s *subscription) condition() *condition { return s.probe.newest.Load() }

// ask has the reports polled, prove asks for a proof, compare for whatever can serve as
// comparison.
func (s *subscription) ask()     { s.request(func(p *probe) bool { p.ask = true; return true }) }
func (s *subscription) prove()   { s.request(func(p *probe) bool { p.prove = true; return true }) }
func (s *subscription) compare() { s.request(func(p *probe) bool { p.compare = true; return true }) }

// stand says whether this subscriber holds the endpoint condemned, and whether it awaits the
// next word of a report, or proof, after the condition that it judged by. What came meanwhile
// woke nobody.
func (s *subscription) stand(out, awaits bool, judged *condition) {
	s.request(func(p *probe) bool {
		changed := out != s.outed
		p.outs += ones(out) - ones(s.outed)
		p.waits += ones(awaits) - ones(s.awaits)
		s.outed, s.awaits = out, awaits
		return changed
	})
	if c := s.condition(); awaits && (c.proved(judged) || !c.said.Equal(judged.said)) {
		wake(s.notify)
	}
}

func ones(b bool) int {
	if b {
		return 1
	}
	return 0
}

// request makes a request, and wakes the loop if that changed anything.
func (s *subscription) request(f func(*probe) bool) {
	s.probe.mu.Lock()
	changed := f(s.probe)
	s.probe.mu.Unlock()
	if changed {
		wake(s.probe.kick)
	}
}

// requests takes what was asked for since the last time.
func (p *probe) requests() (ask, prove, compare, out bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ask, prove, compare, out = p.ask, p.prove, p.compare, p.outs > 0
	p.ask, p.prove, p.compare = false, false, false
	return ask, prove, compare, out
}

// publish replaces the condition and wakes those for whom it makes a difference.
func (p *probe) publish(c condition) {
	before := p.newest.Swap(&c)
	all, said, proved := c.differs(before), !c.said.Equal(before.said), c.proved(before)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !all && !(proved && p.outs > 0) && !((proved || said) && p.waits > 0) {
		return
	}
	for s := range p.subs {
		if all || proved && s.outed || (proved || said) && s.awaits {
			wake(s.notify)
		}
	}
}

// proved reports whether a proof of our own ended since an earlier condition.
func (c *condition) proved(before *condition) bool {
	return !c.proof.Equal(before.proof) || !c.waived.Equal(before.waived)
}

// loop is the one owner of the gatherer.
func (p *probe) loop() {
	w := &worker{
		probe:    p,
		gather:   newGather(p.key.times, p.key.endpoint.Shim != "", rand.Float64),
		detector: newDetector(p.key.times),
	}
	defer w.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	due := time.Now()
	for {
		select {
		case <-p.ctx.Done():
			return
		case e := <-p.events:
			w.gather.woke(time.Since(due))
			w.file(e)
		case <-p.kick:
			w.gather.woke(time.Since(due))
		case <-timer.C:
			w.gather.woke(time.Since(due))
		}
		w.drain()
		now := time.Now()
		due = w.step(now)
		timer.Reset(due.Sub(now))
	}
}

// worker is the state of a probe's loop.
type worker struct {
	*probe
	gather   *gather
	detector detector

	conn      *grpc.ClientConn // to etcd's port; nil: not dialled
	closeConn func()
	connCtx   context.Context // ends with conn
	connEnd   context.CancelFunc
	leave     [2]func() // end the running searches: etcd's port, the shim's
	nudge     [2]chan struct{}
}

const (
	atEtcd = 0
	atShim = 1
)

func (w *worker) file(e event) {
	if e.news != nil {
		w.gather.told(e.shim, e.session, *e.news, time.Now())
		return
	}
	w.gather.done(e.id, e.outcome, time.Now())
}

// drain takes what is there already: an answer that has arrived is never counted as missing
// because a timer was looked at first.
func (w *worker) drain() {
	for {
		select {
		case e := <-w.events:
			w.file(e)
		default:
			return
		}
	}
}

// step does what is due, publishes what is known, and returns when to come again.
func (w *worker) step(now time.Time) time.Time {
	ask, prove, compare, out := w.requests()
	var orders []order
	if ask {
		orders = append(orders, order{do: doNudge})
	}
	w.gather.out(out, now)
	if prove {
		w.gather.demand()
	}
	if compare {
		orders = w.gather.compare(now, orders)
	}
	for _, o := range append(orders, w.gather.tick(now)...) {
		w.act(o)
	}
	w.publish(w.detector.step(&w.gather.ev, now))
	wake := w.gather.wake(now)
	if soonest := now.Add(time.Millisecond); wake.Before(soonest) {
		return soonest
	}
	return wake
}

// act carries out one order.
func (w *worker) act(o order) {
	switch o.do {
	case doCheck, doProve, doObserve:
		w.call(o)
	case doRedial:
		w.hangUp()
	case doSeekEtcd:
		if conn := w.etcd(); conn != nil {
			w.leave[atEtcd] = w.follow(w.connCtx, atEtcd, o.id, conn, func() {})
		}
	case doSeekShim:
		if conn, hangUp, err := w.dialer.dial(w.key.endpoint.Shim); err == nil {
			w.leave[atShim] = w.follow(w.ctx, atShim, o.id, conn, hangUp)
		}
	case doLeaveEtcd:
		w.end(atEtcd)
	case doLeaveShim:
		w.end(atShim)
	case doNudge:
		w.poll(atEtcd)
		w.poll(atShim)
	}
}

// etcd returns the connection to etcd's port, nil where the address cannot even be parsed.
func (w *worker) etcd() *grpc.ClientConn {
	if w.conn == nil {
		conn, hangUp, err := w.dialer.dial(w.key.endpoint.Address)
		if err != nil {
			return nil
		}
		w.conn, w.closeConn = conn, hangUp
		w.connCtx, w.connEnd = context.WithCancel(w.ctx)
	}
	return w.conn
}

// hangUp ends the connection to etcd's port and whatever goes on on it.
func (w *worker) hangUp() {
	if w.conn == nil {
		return
	}
	w.connEnd()
	w.closeConn()
	w.conn = nil
}

func (w *worker) call(o order) {
	conn := w.etcd()
	if conn == nil {
		w.gather.done(o.id, outcome{result: resultBroken}, time.Now())
		return
	}
	ctx, cancel := context.WithTimeout(w.connCtx, o.timeout)
	w.done.Go(func() {
		defer cancel()
		out := ask(ctx, conn, o.do)
		w.tell(w.ctx, event{id: o.id, outcome: out})
	})
}

// follow starts one search on a connection, and returns what ends it; hangUp is called when
// it has ended.
func (w *worker) follow(ctx context.Context, at, session int, conn *grpc.ClientConn, hangUp func()) func() {
	ctx, cancel := context.WithCancel(ctx)
	nudge := make(chan struct{}, 1)
	w.nudge[at] = nudge
	w.done.Go(func() {
		defer hangUp()
		_ = healthsvc.Follow(ctx, conn, healthsvc.FollowConfig{
			Poll: w.key.times.poll, Timeout: w.key.times.timeout, Nudge: nudge,
			Tell: func(n healthsvc.News) {
				w.tell(ctx, event{news: &n, shim: at == atShim, session: session})
			},
		})
	})
	return cancel
}

// tell hands an event to the loop, or gives up when nobody wants it any more.
func (w *worker) tell(ctx context.Context, e event) {
	select {
	case w.events <- e:
	case <-ctx.Done():
	}
}

func (w *worker) end(at int) {
	if w.leave[at] != nil {
		w.leave[at]()
		w.leave[at], w.nudge[at] = nil, nil
	}
}

func (w *worker) poll(at int) {
	if w.nudge[at] == nil {
		return
	}
	wake(w.nudge[at])
}

func (w *worker) close() {
	w.end(atEtcd)
	w.end(atShim)
	w.hangUp()
}
