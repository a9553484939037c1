package servershim

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// Shim watches one etcd member and publishes what it finds. Make one with [New].
type Shim struct {
	src     Source
	cfg     Config
	publish publish
	ran     atomic.Bool

	drainOnce sync.Once
	drain     chan struct{} // closed by Drain
}

// New returns a shim that asks src and publishes to srv, of which it is the only
// publisher. An error names the field of cfg, its value and what is allowed.
func New(src Source, srv *healthsvc.Server, cfg Config) (*Shim, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if src == nil || srv == nil {
		return nil, errors.New("servershim: New needs a Source and a Server, one of them is nil")
	}
	s := &Shim{src: src, cfg: cfg, drain: make(chan struct{})}
	s.publish.srv, s.publish.log, s.publish.metrics = srv, cfg.Logger, newMetrics()
	s.publish.newest.Store(&healthsvc.Report{Reason: healthsvc.ReasonStarting})
	return s, nil
}

// Run gathers, decides and publishes until ctx ends; then it stops the health
// server and returns nil. It returns an error at once when the metrics cannot be
// registered, or when it was called before. Every goroutine that it starts has
// ended when it returns, unless the source does not end its calls.
func (s *Shim) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("servershim: Run was called twice: make a new Shim")
	}
	defer s.publish.srv.Stop()
	away, err := s.publish.metrics.register(s.cfg.Registerer)
	if err != nil {
		return err
	}
	defer away()
	g := newGather(ctx, s.src)
	defer g.stop()
	s.loop(ctx, g)
	return nil
}

// loop owns the core. Publishing at every wake, even when nothing has changed,
// shows the health server that the loop lives.
func (s *Shim) loop(ctx context.Context, g *gather) {
	c := newCore(s.cfg, time.Now())
	drain := s.drain
	var due time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-drain:
			c.draining, drain = true, nil
			s.woke(c, due)
		case o := <-g.outcomes:
			s.woke(c, due)
			s.take(c, g, o)
		case <-timer.C:
			s.woke(c, due)
		}
		s.takeAll(c, g)
		now := time.Now()
		c.settle(now)
		for _, one := range c.start(now) {
			g.start(one, c.deadline(one.kind))
		}
		s.publish.report(c.decide(now, pollHint(s.cfg.Poll, s.publish.srv.Watchers())), c.window.length())
		due = c.next(now)
		timer.Reset(time.Until(due))
	}
}

// woke tells the core that the loop is awake, before it hears of anything else.
func (s *Shim) woke(c *core, due time.Time) {
	if c.wake(due, time.Now()) {
		s.publish.metrics.lateWakes.Inc()
	}
}

// takeAll takes what has come in by now, so that nothing is decided against news
// that is here already.
func (s *Shim) takeAll(c *core, g *gather) {
	for {
		select {
		case o := <-g.outcomes:
			s.take(c, g, o)
		default:
			return
		}
	}
}

func (s *Shim) take(c *core, g *gather, o outcome) {
	g.out--
	s.publish.metrics.proof(c.result(time.Now(), o))
}

// Drain makes the member NOT_SERVING, reason draining, from now on. Clients
// leave while the owner of the shim lets Run go on. Safe for concurrent use, and
// more than once.
func (s *Shim) Drain() { s.drainOnce.Do(func() { close(s.drain) }) }

// Report returns the newest report. Safe for concurrent use.
func (s *Shim) Report() healthsvc.Report { return *s.publish.newest.Load() }
