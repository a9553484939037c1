package prober

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Prober grades a set of endpoints. Make one with [New], end it with Close. Its one
// goroutine is loop.
type Prober struct {
	cfg   Config
	times times
	share any
	log   *slog.Logger

	newest atomic.Pointer[Snapshot]

	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	notify chan struct{} // capacity 1: a probe has news
	set    chan struct{} // capacity 1: pending was replaced
	asked  chan string   // addresses to prove; full: others are being settled already
	denied chan noLeader // answers of "no leader"

	mu      sync.Mutex
	pending []Endpoint // what SetEndpoints wants
}

// noLeader is one call of NoLeader.
type noLeader struct {
	address string
	seen    chan<- struct{} // closed when the snapshot says so
}

// New returns a prober without endpoints, and connects to nothing yet. It fails where a
// duration of cfg is negative or longer than an hour, or ShareKey cannot be compared.
func New(cfg Config) (*Prober, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p := &Prober{
		cfg: cfg, times: scaled(cfg), share: cfg.ShareKey, log: cfg.Logger,
		notify: make(chan struct{}, 1), set: make(chan struct{}, 1),
		asked: make(chan string, 16), denied: make(chan noLeader),
	}
	if p.share == nil {
		p.share = p
	}
	if p.log == nil {
		p.log = slog.Default()
	}
	p.newest.Store(&Snapshot{At: time.Now()})
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.done.Go(p.loop)
	return p, nil
}

func (c Config) validate() error {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"Poll", c.Poll}, {"Timeout", c.Timeout}, {"Hold", c.Hold}, {"ElectionTimeout", c.ElectionTimeout}} {
		if f.value < 0 || f.value > time.Hour {
			return fmt.Errorf("prober: Config.%s is %v: allowed are 0 (the default) to 1h", f.name, f.value)
		}
	}
	if c.ShareKey != nil && !reflect.ValueOf(c.ShareKey).Comparable() {
		return fmt.Errorf("prober: Config.ShareKey is a %T, which cannot be compared: use a comparable value, or nil for probes of its own", c.ShareKey)
	}
	return nil
}

// SetEndpoints replaces the endpoints. It does not wait: a snapshot that shows them follows
// within the loop's next turn. Endpoints that stay keep their standing; of several with one
// address the first counts. None at all is allowed. After Close it does nothing.
func (p *Prober) SetEndpoints(endpoints []Endpoint) {
	p.mu.Lock()
	p.pending = slices.Clone(endpoints)
	p.mu.Unlock()
	wake(p.set)
}

// Snapshot returns the newest state, never nil. It has no verdicts until endpoints are set, and
// stays as it is after Close.
func (p *Prober) Snapshot() *Snapshot { return p.newest.Load() }

// Prove asks for a user's overdue call at the address to be settled by a linearizable read
// there, and comparison elsewhere. The call itself is no evidence. At most one proof per 100 ms
// and target is begun; Prove does not wait. For an address that is not an endpoint's only the
// comparison takes place; after Close nothing does.
func (p *Prober) Prove(address string) {
	select {
	case p.asked <- address:
	default:
	}
}

// NoLeader tells that the member at the address just answered a user's call with "no leader".
// It returns once the snapshot says Suspect, or the worse grade that the endpoint had, and
// OnChange has been told; after Close at once. The word stands until a proof of quorum that
// began later. For an address that is not an endpoint's it changes no grade.
func (p *Prober) NoLeader(address string) {
	seen := make(chan struct{})
	select {
	case p.denied <- noLeader{address, seen}:
	case <-p.ctx.Done():
		return
	}
	select {
	case <-seen:
	case <-p.ctx.Done():
	}
}

// Close ends the prober, and the probes that nobody else shares, and waits for their
// goroutines. Idempotent.
func (p *Prober) Close() {
	p.cancel()
	p.done.Wait()
}

// wake puts a token into a channel of capacity 1.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
