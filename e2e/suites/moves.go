//go:build linux

package suites

import (
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/prober"
)

const (
	// aftermath is how long after its fault a member may still be left for it.
	aftermath = time.Second
	// worseFor is how long a member must have been seen worse than another one before
	// leaving it is no false move.
	worseFor = 250 * time.Millisecond
)

// unmoved checks that nothing left a member that was good: no stream and no mutation. A
// keepalive that an election leaves unanswered may reopen its lease stream, as may a member
// that refuses the stream meanwhile, and a mutation that was with a lost leader may be given up. A read may be sent again on a suspicion that
// passes: what its user has of that is time, which is judged.
func (e *Evidence) unmoved() (bad findings) {
	given := e.unfair(func(m app.Move) bool { return m.Class == "mutation" })
	bad.moves(e, given, "%s, and the member was good and no leader was lost")
	if e.Scenario.Control != Unharmed {
		bad.moves(e, e.falseMoves(e.Ours), "false move: %s, and the member was good")
		return bad
	}
	var others []app.Move
	overdue := 0
	for _, m := range e.Ours.Moves {
		switch {
		case !streamMove(m):
		case m.Reason == client.ReasonKeepalive, e.refused(m):
			overdue++
		default:
			others = append(others, m)
		}
	}
	bad.moves(e, others, "%s; want no move: no member was bad")
	late := e.unfair(func(m app.Move) bool { return streamMove(m) && (m.Reason == client.ReasonKeepalive || e.refused(m)) })
	bad.moves(e, late, "%s; want that only where a leader is lost")
	watches, leases := e.reopened(e.Ours)
	if len(watches) > 0 {
		bad.add(watches, "%d watch streams were opened again; want none: no member was bad", len(watches))
	}
	if len(leases) > overdue {
		bad.add(leases, "%d lease streams broke, of which only %d for an overdue keepalive or for want of a leader", len(leases), overdue)
	}
	return bad
}

// refused says that the member itself ended the stream, because it knew no leader just then:
// our client had not given it up.
func (e *Evidence) refused(m app.Move) bool {
	return m.Class == "lease" && m.Reason == prober.ReasonNoLeader && !slices.ContainsFunc(ejections(e.Ours.Grades, m.Endpoint), func(out ejection) bool {
		return !out.From.After(m.At) && (out.To.IsZero() || out.To.After(m.At))
	})
}

// moves adds moves, those apart that the machine may be the reason of.
func (fs *findings) moves(e *Evidence, moves []app.Move, format string) {
	for _, late := range []bool{false, true} {
		some := slices.DeleteFunc(slices.Clone(moves), func(m app.Move) bool { return e.stalled(happened(m.At)) != late })
		for _, g := range e.grouped(some) {
			fs.add(g.whens, format, g.text)
		}
	}
}

// grouped says in a finding each what left which member for what, and when first and last.
func (e *Evidence) grouped(moves []app.Move) findings {
	type kind struct{ class, member, reason string }
	var kinds []kind
	times := make(map[kind][]time.Time)
	for _, m := range moves {
		k := kind{m.Class, e.member(m.Endpoint), m.Reason}
		if times[k] == nil {
			kinds = append(kinds, k)
		}
		times[k] = append(times[k], m.At)
	}
	var all findings
	for _, k := range kinds {
		first, last := times[k][0], times[k][len(times[k])-1]
		whens := []when{happened(first), happened(last)}
		switch n := len(times[k]); n {
		case 1:
			all.add(whens, "a %s left %s for %s at %s", k.class, k.member, k.reason, e.clock(first))
		default:
			all.add(whens, "%d times a %s left %s for %s from %s to %s", n, k.class, k.member, k.reason, e.clock(first), e.clock(last))
		}
	}
	return all
}

// streamMove says that a move is that of a stream, not of a call.
func streamMove(m app.Move) bool {
	return m.Class == "watch" || m.Class == "lease" || m.Class == "stream"
}

// verdicts are the moves of streams that a verdict on the member stands behind.
func verdicts(moves []app.Move) []app.Move {
	var ms []app.Move
	for _, m := range moves {
		other := m.Reason == client.ReasonDrift || m.Reason == client.ReasonKeepalive || m.Reason == client.ReasonEndpointRemoved
		if streamMove(m) && !other {
			ms = append(ms, m)
		}
	}
	return ms
}

// falseMoves are moves of streams off members that were good: nothing had been done to the
// member, and the sampler saw it serve, or saw that nobody else did either.
func (e *Evidence) falseMoves(rec app.Record) []app.Move {
	var ms []app.Move
	t := truthOf(e.Samples)
	for _, m := range verdicts(rec.Moves) {
		if !e.suffered(m) && t.worse(e.member(m.Endpoint), m.At.Add(-2*aftermath), m.At) < worseFor {
			ms = append(ms, m)
		}
	}
	return ms
}

// unfair are moves of ours of a kind off members that were good all the time, to which
// nothing was done, and while no leader was lost for which a mutation or a keepalive may
// have waited.
func (e *Evidence) unfair(kind func(app.Move) bool) []app.Move {
	t := truthOf(e.Samples)
	elected, patience := t.elections(), e.grace()+time.Second
	return slices.DeleteFunc(slices.Clone(e.Ours.Moves), func(m app.Move) bool {
		from := m.At.Add(-patience)
		fair := slices.ContainsFunc(elected, func(at time.Time) bool { return !at.Before(from) && !at.After(m.At.Add(sampled)) })
		return !kind(m) || m.Reason == client.ReasonEndpointRemoved || fair || e.suffered(m) || !t.goodThrough(e.member(m.Endpoint), from, m.At)
	})
}

// doubtfulMoves are moves off members that merely were slow.
func (e *Evidence) doubtfulMoves() []app.Move {
	var ms []app.Move
	for _, m := range verdicts(e.Ours.Moves) {
		for _, h := range e.Hurts {
			if h.Member == e.member(m.Endpoint) && h.Effect == Slows && h.during(m.At.Add(-aftermath), m.At) {
				ms = append(ms, m)
				break
			}
		}
	}
	return ms
}

// suffered says that something was done to a member that a stream was moved off.
func (e *Evidence) suffered(m app.Move) bool {
	return slices.ContainsFunc(e.Hurts, func(h Hurt) bool {
		return h.Effect != Spares && h.Member == e.member(m.Endpoint) && h.during(m.At.Add(-aftermath), m.At)
	})
}
