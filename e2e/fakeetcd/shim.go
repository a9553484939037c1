package fakeetcd

import (
	"sync"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// proofWindow is the round trip beyond which a shim no longer has a proof in time.
const proofWindow = time.Second

// truth is the state of a member as a shim that knows everything would judge it at once.
type truth struct {
	report healthsvc.Report
	usable bool
	reason healthsvc.Reason
}

// verdict is what a shim says: truth, some time later. No lock, no clock.
type verdict struct {
	bad, good time.Duration // reaction times
	usable    bool
	reason    healthsvc.Reason
	differs   time.Time // since when the truth is another; zero: it is not
}

// judge follows the truth, and returns when it will next have to be asked; zero: not by itself.
func (v *verdict) judge(t truth, now time.Time) time.Time {
	if t.usable == v.usable {
		v.differs = time.Time{}
		if t.reason != "" {
			v.reason = t.reason
		}
		return time.Time{}
	}
	if v.differs.IsZero() {
		v.differs = now
	}
	at := v.differs.Add(v.good)
	if !t.usable {
		at = v.differs.Add(v.bad)
	}
	if now.Before(at) {
		return at
	}
	v.usable, v.reason, v.differs = t.usable, t.reason, time.Time{}
	return time.Time{}
}

// shim is the health shim of one member while it runs.
type shim struct {
	m      *Member
	server *healthsvc.Server
	start  time.Time
	grpc   *grpc.Server // of a sidecar
	stop   chan struct{}
	done   sync.WaitGroup

	mu  sync.Mutex
	lie *healthsvc.Report
	lay chan struct{} // a lie began or ended; buffered
}

// KillShim ends a sidecar: its connections are reset, new ones refused.
func (m *Member) KillShim() {
	m.life.Lock()
	defer m.life.Unlock()
	m.stopShim()
}

// RestartShim starts a sidecar again.
func (m *Member) RestartShim() {
	m.life.Lock()
	defer m.life.Unlock()
	m.stopShim()
	m.startShim()
}

// Lie makes the shim publish a report whatever the truth is; nil: the truth again. It ends with
// the shim.
func (m *Member) Lie(report *healthsvc.Report) {
	m.life.Lock()
	defer m.life.Unlock()
	if m.health == nil {
		return
	}
	m.health.mu.Lock()
	m.health.lie = report
	m.health.mu.Unlock()
	select {
	case m.health.lay <- struct{}{}:
	default:
	}
}

// startShim starts a sidecar, if the member is to have one. m.life is held.
func (m *Member) startShim() {
	if m.c.opts.shim(m.index) != ShimSidecar {
		return
	}
	m.startShimLoop()
	m.health.grpc = grpc.NewServer(grpc.WaitForHandlers(true), m.c.opts.security(m.index))
	healthpb.RegisterHealthServer(m.health.grpc, m.health.server)
	server, listener := m.health.grpc, m.beside.listen()
	m.health.done.Go(func() { _ = server.Serve(listener) })
}

// stopShim ends a sidecar. m.life is held.
func (m *Member) stopShim() {
	if m.health == nil || m.health.grpc == nil {
		return
	}
	m.beside.refuse()
	m.beside.reset()
	m.health.server.Stop()
	m.health.grpc.Stop()
	m.stopShimLoop()
}

func (m *Member) startShimLoop() {
	m.health = &shim{
		m: m, server: healthsvc.NewServer(healthsvc.ServerOptions{EmptyName: true}),
		start: time.Now(), stop: make(chan struct{}), lay: make(chan struct{}, 1),
	}
	m.health.done.Go(m.health.run)
}

func (m *Member) stopShimLoop() {
	if m.health == nil {
		return
	}
	close(m.health.stop)
	m.health.server.Stop()
	m.health.done.Wait()
	m.health = nil
}

// run publishes a report at every beat, and at once when its verdict changes.
func (s *shim) run() {
	opts := &s.m.c.opts
	v := verdict{bad: opts.ShimBad, good: opts.ShimGood}
	t, changed := s.truth()
	v.usable, v.reason = t.usable, t.reason
	for {
		next := v.judge(t, time.Now())
		s.server.Publish(s.report(t, &v))
		wait := opts.ShimBeat
		if !next.IsZero() {
			wait = min(wait, time.Until(next))
		}
		timer := time.NewTimer(wait)
		select {
		case <-s.stop:
			timer.Stop()
			return
		case <-changed:
		case <-s.lay:
		case <-timer.C:
		}
		timer.Stop()
		t, changed = s.truth()
	}
}

// report returns what to publish.
func (s *shim) report(t truth, v *verdict) healthsvc.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lie != nil {
		return *s.lie
	}
	r := t.report
	r.Quorum = v.usable
	r.Leads = r.Leads && v.usable
	r.Serving = v.usable && r.Voter && r.Read
	r.Write = v.usable && r.Write
	if !v.usable {
		r.LastProof = time.Time{}
		r.Reason = v.reason
	}
	return r
}

// truth returns the state of the member now, and the channel that is closed when it may be another.
func (s *shim) truth() (truth, <-chan struct{}) {
	m, now := s.m, time.Now()
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	n, answers := m.node(), !m.node().killed && !m.node().frozen
	slow := m.latency + m.disk
	t := truth{usable: answers && m.c.consensus.live(m.index, now) && slow < proofWindow}
	t.report = healthsvc.Report{
		Identity:  healthsvc.Identity{Cluster: m.cluster, Member: m.ID, Term: n.term, Start: s.start},
		Leads:     n.leader == m.index,
		Read:      answers,
		Write:     len(m.c.alarms) == 0,
		Voter:     n.voter(),
		LastProof: now.Add(-slow),
		RoundTrip: max(slow, time.Millisecond),
	}
	if answers {
		t.report.Leader = m.seenLeader()
	}
	t.reason, t.report.Reason = m.reason(answers, t.usable), m.alarmReason()
	if !n.voter() {
		t.report.Reason = t.reason
	}
	return t, m.c.changed
}

// reason returns why the member is not to be used. c.mu is held.
func (m *Member) reason(answers, usable bool) healthsvc.Reason {
	n := m.node()
	switch {
	case !answers:
		return healthsvc.ReasonUnreachable
	case n.removed:
		return healthsvc.ReasonRemoved
	case n.learner:
		return healthsvc.ReasonLearner
	case usable:
		return ""
	case n.leader == none:
		return healthsvc.ReasonNoLeader
	default:
		return healthsvc.ReasonNoQuorum
	}
}

// alarmReason returns the reason of a member that serves and cannot write. c.mu is held.
func (m *Member) alarmReason() healthsvc.Reason {
	switch {
	case m.alarmed(pb.AlarmType_CORRUPT):
		return healthsvc.ReasonCorrupt
	case m.alarmed(pb.AlarmType_NOSPACE):
		return healthsvc.ReasonNoSpace
	default:
		return ""
	}
}
