package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/credentials"
	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/picker"
	"github.com/quorumwise/quorumwise/prober"
)

const (
	// activeTick is how often the ages of calls in flight are looked at.
	activeTick = 50 * time.Millisecond
	// idleTick is the rest of the time: a safety net under the wake-ups.
	idleTick = 5 * time.Second
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
	moves  moveLog

	refusals refusalLog // of watch streams

	vanished vanished // owned by the prober's loop
	// told is what the verdicts were when the picker and the loop were last told of
	// them. The prober's loop owns it.
	told news

	// main is the connection to all endpoints, once it is known.
	main atomic.Pointer[grpc.ClientConn]

	// idle is true while the loop looks at nothing in particular; the first
	// call that begins then wakes it. The loop sets it, the call clears it.
	idle atomic.Bool
	wake chan struct{} // capacity 1

	cancel context.CancelFunc
	done   chan struct{}
	once   sync.Once
}

// attached marks dial options that an attachment has been added to. It does
// nothing to a connection.
type attached struct{ grpc.EmptyDialOption }

// Attach adds the parts to an official configuration, for code that calls
// clientv3.New itself. It adds to cfg.DialOptions, and sets DialKeepAliveTime to
// 10 s and DialKeepAliveTimeout to 3 s where they are zero. One attachment serves
// one client: close the client first, then the attachment. A configuration is
// attached to once; for several clients copy it before.
//
// Every error is a *[ConfigError], and cfg is then as it was, but for the keepalive:
//
//   - cfg is nil, or was attached to before.
//   - Endpoints are none (errors.Is finds clientv3.ErrNoAvailableEndpoints), one is
//     not host:port, http(s)://host:port or unix(s):path, or some speak TLS and
//     some do not.
//   - PermitWithoutStream is set: etcd closes connections that ping without a stream.
//   - A field of health is out of its range.
//   - health.Registerer refuses the metrics: most often another client's are there.
func Attach(cfg *clientv3.Config, health Health) (*Attachment, error) {
	if cfg == nil {
		return nil, &ConfigError{Field: "cfg", Value: "nil", Want: "give the configuration that clientv3.New will get"}
	}
	if slices.ContainsFunc(cfg.DialOptions, func(o grpc.DialOption) bool { _, twice := o.(attached); return twice }) {
		return nil, &ConfigError{
			Field: "DialOptions", Value: "attached",
			Want: "one attachment serves one client: copy the configuration for each, before Attach",
		}
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
		ttls: ttlWarner{logger: health.Logger, login: cfg.Username != ""},
		wake: make(chan struct{}, 1), vanished: make(vanished),
		done: make(chan struct{}),
	}
	options, err := a.dialOptions()
	if err == nil {
		err = a.startProbes(cfg, eps[0].secure)
	}
	if err != nil {
		a.hub.Close()
		return nil, err
	}
	targets := a.targets(eps)
	a.hub.SetMain(addresses(eps))
	a.prober.SetEndpoints(targets)
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.hub.OnChange(a.signal)
	go a.run(ctx, targets)

	// Connecting as the user says wins over ours.
	cfg.DialOptions = slices.Concat([]grpc.DialOption{connectParams()}, cfg.DialOptions, options)
	return a, nil
}

// dialOptions are what the connections of the client need besides the user's.
func (a *Attachment) dialOptions() ([]grpc.DialOption, error) {
	service, err := serviceConfig(a.hub)
	if err != nil {
		return nil, err
	}
	return []grpc.DialOption{
		grpc.WithDisableServiceConfig(), // clientv3's resolver pushes round_robin
		grpc.WithDefaultServiceConfig(service),
		grpc.WithChainUnaryInterceptor(a.unary),
		grpc.WithChainStreamInterceptor(a.stream),
		attached{},
	}, nil
}

// startProbes makes the prober and what shows its verdicts; an error leaves nothing behind.
func (a *Attachment) startProbes(cfg *clientv3.Config, secure bool) (err error) {
	probes := prober.Config{
		DialOptions: slices.Clone(cfg.DialOptions), // theirs may be overwritten by another append
		ShareKey:    shareKeyOf(cfg, a.cfg, secure),
		Poll:        a.cfg.Poll, Hold: a.cfg.Hold, ElectionTimeout: a.cfg.ElectionTimeout,
		Logger:   a.cfg.Logger,
		OnChange: a.onVerdicts,
	}
	if secure {
		probes.Credentials = credentials.NewTransportCredential(cfg.TLS)
	}
	if a.prober, err = prober.New(probes); err != nil {
		return err
	}
	if a.cfg.Registerer == nil {
		return nil
	}
	if err := a.cfg.Registerer.Register(collector{a}); err != nil {
		a.prober.Close()
		return &ConfigError{
			Field: "Health.Registerer", Value: "set", Err: err,
			Want: "give each client labels of its own (prometheus.WrapRegistererWith): " + err.Error(),
		}
	}
	return nil
}

// Close stops probing and moving, and waits for the goroutines: within a second
// unless OnMove blocks. A client that is still open goes on as plain round robin.
// It may be called more than once; the error is always nil.
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
// options (each the same one), same settings.
type shareKey struct {
	tls            any
	options        string
	secure         bool
	poll, election time.Duration
}

func shareKeyOf(cfg *clientv3.Config, health Health, secure bool) shareKey {
	k := shareKey{options: identities(cfg.DialOptions), secure: secure, poll: health.Poll, election: health.ElectionTimeout}
	if secure {
		k.tls = cfg.TLS
	}
	return k
}

// identities tells lists of options apart. Two options are the same if they are one object;
// one that is none, such as a struct of a user's own, equals no other. The probe that the
// key belongs to keeps the objects, so that no address comes twice.
func identities(options []grpc.DialOption) string {
	var b strings.Builder
	for _, o := range options {
		if v := reflect.ValueOf(o); v.Kind() == reflect.Pointer {
			fmt.Fprintf(&b, "%T %x;", o, v.Pointer())
		} else {
			fmt.Fprintf(&b, "%T %d;", o, lone.Add(1))
		}
	}
	return b.String()
}

// lone numbers options that are no objects.
var lone atomic.Int64

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
		out[i] = a.target(ep.address, ep.serverName)
	}
	return out
}

// target is an endpoint as the prober is told of it.
func (a *Attachment) target(address, serverName string) prober.Endpoint {
	return prober.Endpoint{Address: address, ServerName: serverName, Shim: a.cfg.ShimAddress(address)}
}

// onVerdicts runs in the prober's loop: the picker learns of a verdict before
// anybody else does.
func (a *Attachment) onVerdicts(s *prober.Snapshot) {
	now := time.Now()
	grades := make(map[string]picker.Grade, len(s.Verdicts))
	maps.DeleteFunc(a.vanished, func(address string, _ time.Time) bool { _, still := s.Verdict(address); return !still })
	for _, v := range s.Verdicts {
		grades[v.Address] = gradeOf(v.Grade)
		if a.vanished.returned(v, now) {
			a.hub.Reconnect(v.Address)
		}
	}
	n := news{grades, s.Term, s.Leader}
	if n.same(a.told) {
		return // a reason changed: on a member that is slow several times a second
	}
	a.told = n
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

// moved is the cause with which a call was ended by us, or nil.
func moved(c *picker.Call) *MovedError {
	var m *MovedError
	if !errors.As(c.Cause(), &m) {
		return nil
	}
	return m
}
