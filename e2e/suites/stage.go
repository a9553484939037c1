//go:build linux

package suites

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// Application is one application and the host that it runs on.
type Application struct {
	Name string
	Host *nethosts.Host
	App  *app.App
}

// Stage is what the steps of a scenario play on. Steps run one after the other; a step that
// starts goroutines waits for them.
type Stage struct {
	Lab      *nethosts.Lab
	Cluster  *realetcd.Cluster
	Target   *realetcd.Member // nil when the scenario is aimed at nobody
	Second   *realetcd.Member // nil unless Scenario.Second
	Leader   *realetcd.Member // when the steps began, or as a step found it
	Ours     *Application
	Control  *Application
	Rand     *rand.Rand    // from the run's seed and the scenario's name
	Duration time.Duration // how long a scenario without an end of its own should last
	Log      *slog.Logger

	mu      sync.Mutex
	hurts   []Hurt
	notes   []note
	lifts   []lift
	members []MemberFacts // all that ever were, in order of joining

	observers []*clientv3.Client // of the reference and of the history
}

// note is a remark of a step for the timeline.
type note struct {
	at   time.Time
	text string
}

// lift takes one inflicted fault back.
type lift struct {
	name string
	do   func(context.Context) error
	hurt []int // indexes of Stage.hurts that end with it
}

// Hurt is something that was done to a member, as the judge must know it. Times are those of
// the harness.
type Hurt struct {
	Member   string // name
	What     string // the fault
	Effect   Effect
	From, To time.Time // To is zero while it lasts
}

// Clients are the hosts of both applications.
func (st *Stage) Clients() []*nethosts.Host { return []*nethosts.Host{st.Ours.Host, st.Control.Host} }

// Others lists the members but for some.
func (st *Stage) Others(but ...*realetcd.Member) []*realetcd.Member {
	return slices.DeleteFunc(slices.Clone(st.Cluster.Members()), func(m *realetcd.Member) bool { return slices.Contains(but, m) })
}

// Note puts a remark on the timeline.
func (st *Stage) Note(format string, args ...any) { st.noteAt(time.Now(), format, args...) }

// noteAt is Note for what was found out later.
func (st *Stage) noteAt(at time.Time, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	st.Log.Info("note", "text", text)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.notes = append(st.notes, note{at, text})
}

// Hurt tells the judge that a member suffers from now on until the returned function is
// called: streams may leave it without that being a false move.
func (st *Stage) Hurt(m *realetcd.Member, what string, effect Effect) (ended func()) {
	i := st.hurt(m, what, effect)
	return sync.OnceFunc(func() { st.healed(i) })
}

func (st *Stage) hurt(m *realetcd.Member, what string, effect Effect) int {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.hurts = append(st.hurts, Hurt{Member: m.Name(), What: what, Effect: effect, From: time.Now()})
	return len(st.hurts) - 1
}

func (st *Stage) healed(i int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.hurts[i].To = time.Now()
}

// Inflict makes m suffer f until Lift or LiftOne. m is nil for faults of clients only.
func (st *Stage) Inflict(ctx context.Context, f Fault, m *realetcd.Member) error {
	l := lift{name: f.Name}
	before := len(st.hurts) // only steps hurt, one after the other
	for _, hit := range f.hits(st, m) {
		l.hurt = append(l.hurt, st.hurt(hit, f.Name, f.Effect))
	}
	do, err := f.Inflict(ctx, st, m)
	if err != nil { // nobody was hurt: the judge would excuse what is nobody's doing
		st.mu.Lock()
		defer st.mu.Unlock()
		st.hurts = st.hurts[:before]
		return fmt.Errorf("inflict %s: %w", f.Name, err)
	}
	if do == nil { // it is over
		l.end(st)
		return nil
	}
	l.do = do
	st.mu.Lock()
	defer st.mu.Unlock()
	st.lifts = append(st.lifts, l)
	return nil
}

// Lift takes everything back that was inflicted, last first.
func (st *Stage) Lift(ctx context.Context) error {
	st.mu.Lock()
	lifts := st.lifts
	st.lifts = nil
	st.mu.Unlock()
	var errs []error
	for _, l := range slices.Backward(lifts) {
		if err := l.do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("lift %s: %w", l.name, err))
		}
		l.end(st)
	}
	return errors.Join(errs...)
}

// end tells the judge that the members suffer no more.
func (l lift) end(st *Stage) {
	for _, i := range l.hurt {
		st.healed(i)
	}
}

// follow has what observes the cluster go to the members that there are now: for steps that
// replace those it began with.
func (st *Stage) follow() {
	for _, cli := range st.observers {
		cli.SetEndpoints(st.Cluster.Endpoints()...)
	}
}

// meet files the members that joined.
func (st *Stage) meet() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, m := range st.Cluster.Members() {
		facts := MemberFacts{Name: m.Name(), Endpoint: m.Endpoint()}
		if !slices.Contains(st.members, facts) {
			st.members = append(st.members, facts)
		}
	}
}
