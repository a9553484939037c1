package prober

import (
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
)

// detection is one step of a story: what changes in the evidence, and the condition then.
type detection struct {
	after  time.Duration // since the last step
	do     func(ev *evidence, now time.Time)
	state  state
	reason string
	source Source
	since  time.Duration // of the state, since the story's begin
}

func serving(ev *evidence, now time.Time) {
	ev.shim.sought = true
	ev.shim.news = healthsvc.News{Status: healthsvc.StatusServing, Heard: now, Began: now, Since: now}
}

func notServing(reason healthsvc.Reason) func(*evidence, time.Time) {
	return func(ev *evidence, now time.Time) {
		ev.shim.sought = true
		ev.shim.news = healthsvc.News{Status: healthsvc.StatusNotServing, Reason: reason, Heard: now, Began: now, Since: now}
	}
}

func answers(a answer) func(*evidence, time.Time) {
	return func(ev *evidence, now time.Time) {
		ev.check = checks{answer: a, answered: now}
	}
}

func misses(ev *evidence, now time.Time) {
	ev.check.failing, ev.check.missed = now.Add(-150*time.Millisecond), now
}

func proves(ev *evidence, now time.Time) {
	ev.proof.completed, ev.proof.failing, ev.proof.missed = now, time.Time{}, time.Time{}
	ev.proof.run++
}

func failsProof(ev *evidence, now time.Time) {
	ev.proof.failing, ev.proof.missed, ev.proof.run = now.Add(-250*time.Millisecond), now, 0
}

func noShim(ev *evidence, _ time.Time) {
	ev.shim.sought, ev.inproc.sought = true, true
	ev.shim.news.Status = healthsvc.StatusUnknown
}

func nothing(*evidence, time.Time) {}

func then(fs ...func(*evidence, time.Time)) func(*evidence, time.Time) {
	return func(ev *evidence, now time.Time) {
		for _, f := range fs {
			f(ev, now)
		}
	}
}

func TestDetectorFollowsTheEvidence(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for name, story := range map[string][]detection{
		"nothing heard yet": {
			{0, nothing, stateNothing, ReasonChecking, SourceNone, 0},
		},
		"a report alone is not enough, the path has to answer": {
			{0, serving, stateNothing, ReasonChecking, SourceShim, 0},
			{s, answers(answerOK), stateGood, "", SourceShim, s},
		},
		"an answer alone is not enough while reports are still sought": {
			{0, answers(answerOK), stateNothing, ReasonChecking, SourceStock, 0},
			{s, noShim, stateGood, ReasonNoShim, SourceStock, s},
		},
		"NOT_SERVING is bad at once, with the shim's word": {
			{0, then(serving, answers(answerOK)), stateGood, "", SourceShim, 0},
			{s, notServing(healthsvc.ReasonNoQuorum), stateBad, "no-quorum", SourceShim, s},
			{s, notServing(healthsvc.ReasonSettling), stateBad, "settling", SourceShim, s}, // one stretch
			{s, serving, stateGood, "", SourceShim, 3 * s},
		},
		"NOT_SERVING without a word": {
			{0, then(notServing(""), answers(answerOK)), stateBad, ReasonNotServing, SourceShim, 0},
		},
		"a dead path is bad, whatever the shim says": {
			{0, then(serving, answers(answerOK)), stateGood, "", SourceShim, 0},
			{s, misses, stateBad, ReasonUnreachable, SourceShim, s},
			{s, then(serving, answers(answerOK)), stateGood, "", SourceShim, 2 * s},
		},
		"what a member says once its path lives again is new evidence": {
			{0, then(serving, answers(answerOK)), stateGood, "", SourceShim, 0},
			{s, misses, stateBad, ReasonUnreachable, SourceShim, s},
			{s, then(notServing("no-quorum"), answers(answerOK)), stateBad, "no-quorum", SourceShim, 2 * s},
			{s, misses, stateBad, ReasonUnreachable, SourceShim, 2 * s}, // but not the other way round
		},
		"no leader outweighs a shim's SERVING": {
			{0, then(serving, answers(answerNoLeader)), stateBad, ReasonNoLeader, SourceShim, 0},
		},
		"a failed proof outweighs a shim's SERVING until one completes": {
			{0, then(serving, answers(answerOK), failsProof), stateBad, ReasonProofFailed, SourceShim, 0},
			{s, then(serving, answers(answerOK)), stateBad, ReasonProofFailed, SourceShim, 0},
			{s, then(serving, proves), stateGood, "", SourceShim, 2 * s},
		},
		"a shim that falls silent is not bad news": {
			{0, then(serving, answers(answerOK)), stateGood, "", SourceShim, 0},
			{s, then(noShim, answers(answerOK)), stateGood, ReasonNoShim, SourceStock, 0},
		},
		"a shim's word expires even if nobody says so": {
			{0, then(serving, answers(answerOK)), stateGood, "", SourceShim, 0},
			{1400 * ms, answers(answerOK), stateGood, "", SourceShim, 0},
			{200 * ms, then(answers(answerOK), func(ev *evidence, _ time.Time) { ev.inproc.sought = true }), stateGood, ReasonNoShim, SourceStock, 0},
		},
		"the last bad word of a shim that died is neither good nor bad until a proof": {
			{0, then(notServing("no-quorum"), answers(answerOK)), stateBad, "no-quorum", SourceShim, 0},
			{s, then(noShim, answers(answerOK)), stateNothing, ReasonUnproved, SourceStock, s},
			{s, proves, stateGood, ReasonNoShim, SourceStock, 2 * s},
		},
		"a shim that stands still itself says nothing of its member": {
			{0, then(noShim, serving, answers(answerOK)), stateGood, "", SourceShim, 0},
			{s, then(notServing(healthsvc.ReasonStale), answers(answerOK)), stateGood, ReasonNoShim, SourceStock, 0},
			{s, then(notServing(healthsvc.ReasonStale), answers(answerOK), failsProof), stateBad, ReasonProofFailed, SourceStock, 2 * s},
		},
		"a shim that never met its member says nothing of it": {
			{0, then(noShim, notServing(healthsvc.ReasonUnreachable), answers(answerOK)), stateGood, ReasonNoShim, SourceStock, 0},
			{s, then(notServing(healthsvc.ReasonNotEtcd), answers(answerOK)), stateGood, ReasonNoShim, SourceStock, 0},
			{s, then(notServing(healthsvc.ReasonNotEtcd), answers(answerOK), failsProof), stateBad, ReasonProofFailed, SourceStock, 2 * s},
			{s, then(serving, answers(answerOK), proves), stateGood, "", SourceShim, 3 * s},
			{s, then(notServing(healthsvc.ReasonUnreachable), func(ev *evidence, _ time.Time) { ev.shim.news.Identity.Member = 1 }), stateBad, "unreachable", SourceShim, 4 * s},
		},
		"pushed without its reason, that is settled by a proof": {
			{0, then(noShim, serving, answers(answerOK)), stateGood, "", SourceShim, 0},
			{s, then(notServing(""), answers(answerOK)), stateBad, ReasonNotServing, SourceShim, s},
			{0, then(notServing(healthsvc.ReasonStale), answers(answerOK)), stateNothing, ReasonUnproved, SourceStock, s},
			{s, then(notServing(healthsvc.ReasonStale), proves), stateGood, ReasonNoShim, SourceStock, 2 * s},
		},
		"without a shim, a leader named again is no proof": {
			{0, then(noShim, answers(answerOK)), stateGood, ReasonNoShim, SourceStock, 0},
			{s, answers(answerNoLeader), stateBad, ReasonNoLeader, SourceStock, s},
			{s, answers(answerOK), stateBad, ReasonUnproved, SourceStock, s},
			{s, proves, stateGood, ReasonNoShim, SourceStock, 3 * s},
		},
		"etcd's own NOT_SERVING": {
			{0, then(noShim, answers(answerNotServing)), stateBad, ReasonNotServing, SourceStock, 0},
		},
		"a learner is parked on etcd's word only": {
			{0, then(notServing(healthsvc.ReasonLearner), answers(answerOK)), stateBad, "learner", SourceShim, 0},
			{s, answers(answerLearner), stateParked, ReasonLearner, SourceShim, s},
			{s, then(serving, answers(answerOK)), stateGood, "", SourceShim, 2 * s},
		},
		"a removed member is parked on etcd's word only": {
			{0, then(notServing(healthsvc.ReasonRemoved), answers(answerOK)), stateBad, "removed", SourceShim, 0},
			{s, func(ev *evidence, now time.Time) { ev.self = membership.Observation{Removed: true, At: now} }, stateParked, ReasonRemoved, SourceShim, s},
		},
		"a shim of another member is ignored": {
			{0, then(noShim, notServing("no-quorum"), answers(answerOK), func(ev *evidence, now time.Time) {
				ev.shim.news.Identity.Member = 2
				ev.self = membership.Observation{Cluster: 9, Member: 1, At: now}
			}), stateGood, ReasonWrongShim, SourceStock, 0},
		},
		"services on etcd's own port": {
			{0, then(noShim, answers(answerOK), func(ev *evidence, now time.Time) {
				ev.inproc.news = healthsvc.News{Status: healthsvc.StatusServing, Heard: now, Began: now}
			}), stateGood, "", SourceInProcess, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(1000, 0)
			now, ev, d := start, evidence{}, detector{expire: 1500 * ms}
			for i, st := range story {
				now = now.Add(st.after)
				st.do(&ev, now)
				c := d.step(&ev, now)
				if c.state != st.state || c.reason != st.reason || c.source != st.source || c.since.Sub(start) != st.since {
					t.Errorf("step %d: condition is %v %q by %v since %v, want %v %q by %v since %v",
						i, c.state, c.reason, c.source, c.since.Sub(start), st.state, st.reason, st.source, st.since)
				}
			}
		})
	}
}

func TestDetectorTakesTheLeaderOfTheHighestTerm(t *testing.T) {
	now := time.Unix(1000, 0)
	ev := evidence{self: membership.Observation{Cluster: 9, Member: 1, Leader: 3, Term: 7, At: now}}
	then(serving, answers(answerOK))(&ev, now)
	for _, c := range []struct {
		leader, term uint64
		want         membership.ID
		why          string
	}{
		{2, 8, 2, "the report is at a higher term"},
		{1, 6, 3, "the report is at a term that is over"},
		{0, 8, 0, "at the higher term nobody leads yet"},
	} {
		ev.shim.news.Identity = healthsvc.Identity{Leader: c.leader, Term: c.term}
		d := newDetector(scaled(Config{}))
		if got := d.step(&ev, now); got.leader != c.want {
			t.Errorf("leader is %v at term %d, want %v: %s", got.leader, got.term, c.want, c.why)
		}
	}
}

// The shim's NOT_SERVING says when the last proof was; without an age it knows of none.
func TestDetectorKeepsTheProofThatABadWordTellsOf(t *testing.T) {
	now := time.Unix(1000, 0)
	for age, want := range map[time.Duration]time.Time{0: {}, 700 * time.Millisecond: now.Add(-700 * time.Millisecond)} {
		d := detector{expire: time.Second}
		ev := evidence{check: checks{answer: answerOK, answered: now}}
		notServing(healthsvc.ReasonNoQuorum)(&ev, now)
		ev.shim.news.ProofAge = age
		c := d.step(&ev, now)
		if !c.proven.Equal(want) || c.state != stateBad {
			t.Errorf("age %v: quorum proved at %v in state %v, want %v in a bad one", age, c.proven, c.state, want)
		}
	}
}
