//go:build linux

package suites

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// leaseTTL is that of the applications' leases.
func (e *Evidence) leaseTTL() time.Duration {
	if e.LeaseTTL > 0 {
		return e.LeaseTTL
	}
	return 5 * time.Second
}

// stillMost is how long a cluster may be without a leader before what its clients lose is
// its own doing: the time to live of a lease, less the third that may have passed since
// its last keepalive.
func (e *Evidence) stillMost() time.Duration { return e.leaseTTL() * 2 / 3 }

// written are the reference's events, each when it was first seen by anybody.
func (e *Evidence) written() []workload.Event {
	seen := make(map[int64]workload.Event)
	see := func(events []workload.Event) {
		for _, ev := range events {
			if old, known := seen[ev.Revision]; !known || ev.At.Before(old.At) {
				seen[ev.Revision] = ev
			}
		}
	}
	see(e.Reference)
	for _, rec := range []app.Record{e.Ours, e.Control} {
		for _, w := range rec.Load.Watches {
			see(w.Events)
		}
	}
	all := make([]workload.Event, 0, len(seen))
	for _, ev := range seen {
		all = append(all, ev)
	}
	slices.SortFunc(all, func(a, b workload.Event) int { return a.At.Compare(b.At) })
	return all
}

// still is the longest time in which no write went through at all. Nobody's silence
// is shorter than the cluster's.
func (e *Evidence) still() time.Duration {
	return workload.Silence(e.written(), e.Ours.Load.Began, e.Ours.Load.Ended)
}

// standstills are the stretches without a write that were longer than leases bear, and in
// which no member served all the time: a quota that is used up keeps nobody from answering
// keepalives.
func (e *Evidence) standstills() (all []span) {
	t := truthOf(e.Samples)
	add := func(from, to time.Time) {
		served := slices.ContainsFunc(e.Members, func(m MemberFacts) bool { return t.goodThrough(m.Name, from, to) })
		if to.Sub(from) > e.stillMost() && !served {
			all = append(all, span{from, to})
		}
	}
	last := e.Ours.Load.Began
	for _, ev := range e.written() {
		if ev.At.After(last) && !ev.At.After(e.Ours.Load.Ended) {
			add(last, ev.At)
			last = ev.At
		}
	}
	add(last, e.Ours.Load.Ended)
	return all
}

// stalledLeaders are the stretches in which a leader was out of service without having
// stopped, for so long that leases which were kept alive elsewhere ended in its eyes. When
// it goes on it has them revoked.
func (e *Evidence) stalledLeaders() (all []span) {
	for _, ss := range truthOf(e.Samples) {
		led := false
		var from time.Time
		stalls := func(to time.Time) {
			if !from.IsZero() && to.Sub(from) > e.stillMost() {
				all = append(all, span{from, to})
			}
			from = time.Time{}
		}
		for _, s := range ss {
			switch s.State {
			case realetcd.Leader:
				stalls(s.At)
				led = true
			case realetcd.Frozen, realetcd.Mute, realetcd.NoQuorum:
				if led && from.IsZero() {
					from = s.At
				}
			case realetcd.Quorum, realetcd.Stopped, realetcd.Learner, realetcd.NoLeader:
				stalls(s.At)
				led = false
			}
		}
		stalls(e.Ended)
	}
	return all
}

// because says that something was lost in one of these stretches, or so soon after it that
// the stretch is the reason: what hangs on a lease goes no later than that ends.
func (e *Evidence) because(of []span, from, to time.Time) bool {
	return slices.ContainsFunc(of, func(s span) bool { return !to.Before(s.from) && !from.After(s.to.Add(e.leaseTTL())) })
}

// revoked are the leases of an application that a server revoked though they had been
// kept alive. etcd does so when a leader whose process or disk stood still goes on; no
// client can keep a lease then. Without such a leader nothing is excused.
func (e *Evidence) revoked(leases []workload.LeaseRecord) (early []workload.LeaseRecord) {
	stalled := e.stalledLeaders()
	for _, l := range leases {
		if gone, left := workload.RevokedEarly(l); left > 0 && e.because(stalled, gone, gone) {
			early = append(early, l)
		}
	}
	return early
}

// kept checks that an application kept its leases, and was about to keep them when it
// ended. What the cluster's own standstill takes is nobody's fault.
func (e *Evidence) kept(rec app.Record) []string {
	var bad lines
	still, early := e.standstills(), e.revoked(rec.Load.Leases)
	waits := e.waits(truthOf(e.Samples), streamsBound)
	for _, l := range rec.Load.Leases {
		lost := workload.CheckLease(l)
		excused := slices.ContainsFunc(early, func(r workload.LeaseRecord) bool { return r.Name == l.Name })
		at := lostAt(l)
		switch {
		case len(lost) > 0 && (excused || e.because(still, at, at)):
		case len(lost) > 0:
			bad = append(bad, lost...)
		default:
			bad = append(bad, e.unanswered(rec, l, waits)...)
		}
	}
	return append(bad, e.sessions(rec, still)...)
}

// lostAt is when a lease was first known to be lost.
func lostAt(l workload.LeaseRecord) time.Time {
	at := l.ClosedAt
	for _, ttl := range l.TTLs {
		if ttl.Remaining < 0 && (at.IsZero() || ttl.At.Before(at)) {
			at = ttl.At
		}
	}
	return at
}

// reopening is how long it may take until a keepalive is answered that was not: it is
// overdue after 0.8 s, the official client's loop sends it again 0.5 s after its stream was
// closed, and the rest is slack.
const reopening = 3 * time.Second

// unanswered says whether a lease that is not lost yet was about to be. Keepalives are sent
// once in a third of the time to live.
func (e *Evidence) unanswered(rec app.Record, l workload.LeaseRecord, waits []span) []string {
	ttl, last := e.leaseTTL(), rec.Load.Began
	for _, at := range l.Answers {
		if at.After(last) {
			last = at
		}
	}
	due := last.Add(min(ttl*2/3, ttl/3+reopening))
	for _, w := range waits {
		if to := w.to.Add(reopening); to.After(due) && !w.from.After(rec.Load.Ended) {
			due = to
		}
	}
	if !rec.Load.Ended.After(due) {
		return nil
	}
	return []string{fmt.Sprintf("lease %s (%x): no keepalive was answered from %s to %s; want one each %s, and the last by %s", l.Name, l.ID, e.clock(last), e.clock(rec.Load.Ended), shown(ttl/3), e.clock(due))}
}

// sessions says which sessions of an application's recipes lost their leases while they held
// a place. Nobody has asked how long those had to live: a leader that had stood still may
// have had them revoked.
func (e *Evidence) sessions(rec app.Record, still []span) []string {
	var bad lines
	reasons := slices.Concat(still, e.stalledLeaders())
	check := func(what, who string, from, to time.Duration) {
		if !e.because(reasons, rec.Zero.Add(from), rec.Zero.Add(to)) {
			bad.add("%s: the session of %s lost its lease between %s and %s", what, who, e.clock(rec.Zero.Add(from)), e.clock(rec.Zero.Add(to)))
		}
	}
	for _, s := range rec.Sections {
		if s.Lost {
			check("mutex "+s.Mutex, s.Holder, s.Entered, s.Left)
		}
	}
	for _, r := range rec.Reigns {
		if r.Lost {
			check("election "+r.Election, r.Leader, r.Elected, r.LostAt)
		}
	}
	return bad
}
