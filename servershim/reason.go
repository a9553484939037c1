package servershim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// reason is why the member is not serving, empty when it is. What people asked
// for comes first, then what lasts, then what passes by itself.
func (c *core) reason(now time.Time) healthsvc.Reason {
	switch {
	case c.draining:
		return healthsvc.ReasonDraining
	case c.seen.Removed:
		return healthsvc.ReasonRemoved
	case c.learner:
		return healthsvc.ReasonLearner
	case c.unsure(now):
		return healthsvc.ReasonStale
	case !c.held(now):
		return c.noQuorumReason(now)
	case c.reads.answered.IsZero() && !c.reads.failed:
		return healthsvc.ReasonStarting
	case !c.reads.works(now):
		return healthsvc.ReasonReadStalled
	case c.gate.open:
		return ""
	case c.catchingUp(now):
		return healthsvc.ReasonCatchingUp
	case !c.voter():
		return healthsvc.ReasonStarting
	}
	return healthsvc.ReasonSettling
}

// noQuorumReason tells apart why no proof completes. Only the reason depends on
// what it looks at; none of it could make up for a proof.
func (c *core) noQuorumReason(now time.Time) healthsvc.Reason {
	switch {
	case errors.Is(c.refusal, membership.ErrNotEtcd), errors.Is(c.reads.err, membership.ErrNotEtcd):
		return healthsvc.ReasonNotEtcd
	case c.nothingYet(now):
		return healthsvc.ReasonStarting
	case !c.reachable(now):
		return healthsvc.ReasonUnreachable
	case errors.Is(c.refusal, membership.ErrNoLeader), c.saysLeaderless():
		return healthsvc.ReasonNoLeader
	}
	return healthsvc.ReasonNoQuorum
}

// saysLeaderless reports whether the member said that it knows no leader, as
// opposed to not saying who leads. A member that tells its status always has an
// index.
func (c *core) saysLeaderless() bool {
	return c.seen.RaftIndex != 0 && c.seen.Leader == 0
}

// reachable reports whether etcd answered a local call lately.
func (c *core) reachable(now time.Time) bool {
	return answering(&c.reads, now) || answering(&c.observes, now)
}

func answering(s *sample, now time.Time) bool {
	return s.err == nil && !s.answered.IsZero() && now.Sub(s.answered) <= localFresh*s.deadline
}

// nothingYet reports whether the shim has only just started: no proof has come
// back either way, and nothing else has failed.
func (c *core) nothingYet(now time.Time) bool {
	return c.proofs.newest.IsZero() && c.refusal == nil && c.reads.err == nil && c.observes.err == nil &&
		now.Sub(c.began) <= c.reads.deadline
}

func alarmReason(alarms []membership.Alarm) healthsvc.Reason {
	switch {
	case slices.Contains(alarms, membership.AlarmCorrupt):
		return healthsvc.ReasonCorrupt
	case slices.Contains(alarms, membership.AlarmNoSpace):
		return healthsvc.ReasonNoSpace
	}
	return ""
}

func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded
}
