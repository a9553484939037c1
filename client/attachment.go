package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/credentials"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/quorumwise/quorumwise/picker"
	"github.com/quorumwise/quorumwise/prober"
)

const (
	// activeTick is how often the ages of calls in flight are looked at.
	activeTick = 50 * time.Millisecond
	// idleTick is the rest of the time: a safety net under the wake-ups.
	idleTick = time.Second
	// overdueAge is the age at which a unary call asks for a proof. It is never
	// a verdict, so a slow range read only costs a probe. Scaled.
	overdueAge = 250 * time.Millisecond
)

// Attachment is what makes one clientv3.Client leave bad members. One
// goroutine of its own decides what moves; Close ends it.
type Attachment struct {
	cfg    Health
	hub    *picker.Hub
	prober *prober.Prober
	leases leaseSet
	ttls   ttlWarner
	moves  moveCounts

	// vanished holds the endpoints that were given up as unreachable. The
	// prober's loop owns it.
	vanished map[string]bool

	// main is the connection to all endpoints, once it is known.
	main atomic.Pointer[grpc.ClientConn]

	// idle is true while the loop looks at nothing in particular; the first
	// call that begins then wakes it.
	idle atomic.Bool
	wake chan struct{}

	cancel context.CancelFunc
	done   chan struct{}
	once   sync.Once
}

// Attach adds the parts to an official configuration, for code that calls
// clientv3.New itself. It appends to cfg.DialOptions and sets the keepalive
// where it is unset. One attachment serves one client: close the client first,
// then the attachment.
func Attach(cfg *clientv3.Config, health Health) (*Attachment, error) {
	if cfg == nil {
		return nil, &ConfigError{Field: "cfg", Value: "nil", Want: "give the configuration that clientv3.New will get"}
	}
	health, err := health.withDefaults()
	if err != nil {
		return nil, err
	}
	eps, err := parseEndpoints(cfg.Endpoints, cfg.TLS != nil)
	if err != nil {
		return nil, err
	}
	if err := setKeepAlive(cfg); err != nil {
		return nil, err
	}

	a := &Attachment{
		cfg:  health,
		hub:  picker.NewHub(),
		wake: make(chan struct{}, 1), vanished: make(map[string]bool),
		done: make(chan struct{}),
	}
	a.ttls.logger = health.Logger
	service, err := serviceConfig(a.hub)
	if err != nil {
		a.hub.Close()
		return nil, err
	}
	probes := prober.Config{
		DialOptions: cfg.DialOptions,
		ShareKey:    shareKeyOf(cfg, health, eps[0].secure),
		Poll:        health.Poll, Hold: health.Hold, ElectionTimeout: health.ElectionTimeout,
		Logger:   health.Logger,
		OnChange: a.onVerdicts,
	}
	if eps[0].secure {
		probes.Credentials = credentials.NewTransportCredential(cfg.TLS)
	}
	if a.prober, err = prober.New(probes); err != nil {
		a.hub.Close()
		return nil, err
	}
	if health.Registerer != nil {
		if err := health.Registerer.Register(collector{a}); err != nil {
			a.prober.Close()
			a.hub.Close()
			return nil, &ConfigError{Field: "Health.Registerer", Value: "set", Want: "give each client labels of its own (prometheus.WrapRegistererWith): " + err.Error(), Err: err}
		}
	}

	a.hub.SetMain(addresses(eps))
	a.prober.SetEndpoints(a.targets(eps))
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.hub.OnChange(a.signal)
	go a.run(ctx)

	cfg.DialOptions = append(cfg.DialOptions[:len(cfg.DialOptions):len(cfg.DialOptions)],
		grpc.WithDisableServiceConfig(), // clientv3's resolver pushes round_robin
		grpc.WithDefaultServiceConfig(service),
		grpc.WithChainUnaryInterceptor(a.unary),
		grpc.WithChainStreamInterceptor(a.stream),
		connectParams(),
	)
	return a, nil
}

// Close stops probing and moving. A client that is still open goes on as plain
// round robin.
func (a *Attachment) Close() error {
	a.once.Do(func() {
		a.cancel()
		<-a.done
		if a.cfg.Registerer != nil {
			a.cfg.Registerer.Unregister(collector{a})
		}
		a.prober.Close()
		a.hub.Close()
	})
	return nil
}

// shareKey identifies probes that can be shared: same credentials, same dial
// options (the same slice), same settings.
type shareKey struct {
	tls            any
	options        *grpc.DialOption
	n              int
	secure         bool
	poll, election time.Duration
}

func shareKeyOf(cfg *clientv3.Config, health Health, secure bool) shareKey {
	k := shareKey{n: len(cfg.DialOptions), secure: secure, poll: health.Poll, election: health.ElectionTimeout}
	if secure {
		k.tls = cfg.TLS
	}
	if len(cfg.DialOptions) > 0 {
		k.options = &cfg.DialOptions[0]
	}
	return k
}

func addresses(eps []endpoint) []string {
	out := make([]string, len(eps))
	for i, ep := range eps {
		out[i] = ep.address
	}
	return out
}

func (a *Attachment) targets(eps []endpoint) []prober.Endpoint {
	out := make([]prober.Endpoint, len(eps))
	for i, ep := range eps {
		out[i] = prober.Endpoint{Address: ep.address, ServerName: ep.serverName, Shim: a.cfg.ShimAddress(ep.address)}
	}
	return out
}

// onVerdicts runs in the prober's loop: the picker learns of a verdict before
// anybody else does.
func (a *Attachment) onVerdicts(s *prober.Snapshot) {
	grades := make(map[string]picker.Grade, len(s.Verdicts))
	for _, v := range s.Verdicts {
		grades[v.Address] = gradeOf(v.Grade)
		// A connection that bytes vanished on stands in TCP's retransmission
		// backoff for seconds after the network is back: take a new one.
		switch gone := v.Grade == prober.Unhealthy && v.Reason == prober.ReasonUnreachable; {
		case gone:
			a.vanished[v.Address] = true
		case a.vanished[v.Address] && !avoided(v.Grade):
			delete(a.vanished, v.Address)
			a.hub.Reconnect(v.Address)
		}
	}
	a.hub.SetGrades(grades)
	a.signal()
}

// gradeOf keeps the two packages apart: the picker knows no prober.
func gradeOf(g prober.Grade) picker.Grade {
	switch g {
	case prober.Healthy:
		return picker.Healthy
	case prober.Suspect:
		return picker.Suspect
	case prober.Unhealthy:
		return picker.Unhealthy
	case prober.Parked:
		return picker.Parked
	}
	return picker.Unknown
}

// signal has the loop look at everything; it never blocks.
func (a *Attachment) signal() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// started tells the loop that something began whose age matters.
func (a *Attachment) started() {
	if a.idle.Load() && a.idle.CompareAndSwap(true, false) {
		a.signal()
	}
}

// run owns the cores that decide about moving.
func (a *Attachment) run(ctx context.Context) {
	defer close(a.done)
	scale := max(1, float64(a.cfg.ElectionTimeout)/float64(defaultElectionTimeout))
	m := &mover{
		overdue: time.Duration(float64(overdueAge) * scale), keepalive: a.cfg.KeepaliveOverdue,
		election: a.cfg.ElectionTimeout, spread: a.cfg.MoveSpread, rand: rand.Float64,
	}
	d := &drifter{over: a.cfg.Rebalance, rand: rand.Float64}
	var follow endpointFollower
	timer := time.NewTimer(idleTick)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		case <-timer.C:
		}
		follow.update(a)
		v := a.view(time.Now())
		decided := m.decide(v)
		a.act(decided)
		drift, next := d.decide(v)
		a.drift(drift)

		wait := idleTick
		// A stale picker may still have let a call through to an endpoint that
		// calls are kept off: look again soon, not only when something changes.
		if decided.watch || decided.badIDs > 0 {
			wait = activeTick
		}
		a.idle.Store(wait == idleTick)
		for _, w := range []time.Duration{decided.wait, next} {
			if w > 0 {
				wait = min(wait, w)
			}
		}
		timer.Reset(wait)
	}
}

// view gathers what the decisions need.
func (a *Attachment) view(now time.Time) view {
	s := a.prober.Snapshot()
	leases := a.leases.byCall(now)
	v := view{now: now, term: s.Term, leader: uint64(s.Leader)}
	for _, ep := range a.hub.Endpoints() {
		e := endpointView{address: ep.Address, ready: ep.State == connectivity.Ready}
		if verdict, ok := s.Verdict(ep.Address); ok {
			e.member, e.grade, e.reason, e.since = verdict.Member, verdict.Grade, verdict.Reason, verdict.Since
		}
		for _, c := range a.hub.Calls(ep.Address) {
			cv := callView{call: c, class: c.Class(), method: c.Method(), began: c.Began()}
			if l, ok := leases[c]; ok {
				cv.keepalive, cv.remaining = l.unanswered, l.remaining
			}
			e.calls = append(e.calls, cv)
		}
		v.endpoints = append(v.endpoints, e)
	}
	return v
}

func (a *Attachment) act(d decision) {
	type group struct{ endpoint, reason string }
	moved := make(map[group]int)
	for _, e := range d.ends {
		if a.end(e.call, e.cause) {
			moved[group{e.cause.Endpoint, e.cause.Reason}]++
		}
	}
	for g, n := range moved {
		a.cfg.Logger.Info("moved calls and streams", slog.String("endpoint", g.endpoint), slog.String("reason", g.reason), slog.Int("count", n))
	}
	for _, address := range d.prove {
		a.prober.Prove(address)
	}
}

func (a *Attachment) drift(streams []drifting) {
	for _, s := range streams {
		a.hub.Prefer(s.to, s.call.Class())
		a.end(s.call, &MovedError{Endpoint: s.from, Reason: ReasonDrift, Since: s.at, Method: s.call.Method()})
	}
}

// end ends one call and counts it.
func (a *Attachment) end(c *picker.Call, cause *MovedError) bool {
	cause.Sent = c.Sent()
	if !c.End(cause) {
		return false
	}
	a.moves.add(c.Class(), cause.Reason)
	if a.cfg.OnMove != nil {
		a.cfg.OnMove(Move{At: time.Now(), Method: cause.Method, Class: className(c.Class()), Endpoint: cause.Endpoint, Reason: cause.Reason})
	}
	return true
}

// better reports whether a call that leaves address now would go to a better
// endpoint.
func (a *Attachment) better(address string) bool {
	v := a.view(time.Now())
	for i := range v.endpoints {
		if e := &v.endpoints[i]; e.address == address {
			return hasBetter(v.endpoints, e)
		}
	}
	return false
}

// moved is the cause with which a call was ended by us, or nil.
func moved(c *picker.Call) *MovedError {
	var m *MovedError
	if !errors.As(c.Cause(), &m) {
		return nil
	}
	return m
}

// endpointFollower passes on the endpoint set of the main connection, which
// SetEndpoints, Sync and AutoSyncInterval change through the resolver.
type endpointFollower struct{ last string }

func (f *endpointFollower) update(a *Attachment) {
	eps := a.hub.Endpoints()
	if len(eps) == 0 {
		return // not connected yet, or idle: the last known ones stay
	}
	targets := make([]prober.Endpoint, len(eps))
	for i, ep := range eps {
		targets[i] = prober.Endpoint{Address: ep.Address, ServerName: ep.ServerName, Shim: a.cfg.ShimAddress(ep.Address)}
	}
	if now := fmt.Sprint(targets); now != f.last {
		f.last = now
		a.prober.SetEndpoints(targets)
	}
}
