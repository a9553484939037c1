package prober

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
)

// reign is one step of a story: until then a, b and c say what they say. For each a digit for
// the leader that it names and a term, and "good" (it proves its quorum, and its word is fresh),
// "bad" (its word is fresh), "mute" (good, with the word of before) or "gone". An endpoint that
// is left out is taken out of the set.
type reign struct {
	until time.Duration
	say   map[string]saying
}

type saying struct {
	how    string
	leader membership.ID
	term   uint64
}

// reigns plays a story, and returns the terms of the leaders that held for all endpoints.
func reigns(t *testing.T, story []reign) (terms []uint64) {
	s := newStage(t, "a", "b", "c")
	start, all := s.now, slices.Clone(s.seen)
	for _, r := range story {
		s.seen = s.seen[:0]
		for _, o := range all {
			if _, in := r.say[o.address]; in {
				s.seen = append(s.seen, o)
			}
		}
		s.before = slices.Clone(s.seen)
		for i := range s.seen {
			s.alter(i, func(n *condition) { r.say[s.seen[i].address].begin(n, s.now) })
		}
		s.due = s.now // the conditions differ
		s.play(start.Add(r.until).Sub(s.now), func() {
			for i := range s.seen {
				s.alter(i, func(n *condition) { r.say[s.seen[i].address].goOn(n, s.now) })
			}
			if term := s.judge.leadTerm; s.ruled && (len(terms) == 0 || terms[len(terms)-1] != term) {
				terms = append(terms, term)
			}
		})
		for i, o := range all {
			for _, seen := range s.seen {
				if seen.address == o.address {
					all[i] = seen
				}
			}
		}
	}
	return terms
}

func (w saying) begin(n *condition, now time.Time) {
	state := stateGood
	if w.how == "bad" || w.how == "gone" {
		state = stateBad
	}
	if state != n.state {
		n.state, n.since, n.from = state, now, now
	}
	n.kind, n.reason, n.own = kindNone, "", false
	switch w.how {
	case "bad":
		n.kind, n.reason = kindQuorum, "no-quorum"
	case "gone":
		n.kind, n.reason, n.own = kindPath, ReasonUnreachable, true
	}
}

func (w saying) goOn(n *condition, now time.Time) {
	if w.how == "good" || w.how == "mute" {
		n.answered, n.proven = now, now.Add(-50*ms)
	}
	if w.how == "good" || w.how == "bad" {
		n.leader, n.term, n.heard = w.leader, w.term, now
	}
}

// Raft's terms only rise: a leader who was there is not followed by a quorum of a lower term.
// But clusters are restored from backups, hosts die with what they said last, and a shim may be wrong.
func TestLeaderIsOfTheHighestTermThatNoQuorumContradicts(t *testing.T) {
	type all = map[string]saying
	const s, m = time.Second, time.Minute
	gone := saying{how: "gone"}
	for _, tt := range []struct {
		name  string
		story []reign
		want  []uint64
	}{
		{"an election, told by one after the other", []reign{
			{s, all{"a": {"good", 1, 5}, "b": {"good", 1, 5}, "c": {"good", 1, 5}}},
			{2 * s, all{"a": {"good", 1, 5}, "b": {"good", 1, 5}, "c": {"bad", 3, 6}}},
			{3 * s, all{"a": {"good", 3, 6}, "b": {"good", 1, 5}, "c": {"good", 3, 6}}},
			{5 * m, all{"a": {"good", 3, 6}, "b": {"good", 3, 6}, "c": {"good", 3, 6}}},
		}, []uint64{5, 6}},
		{"restored from a backup, one host stays dead", []reign{
			{s, all{"a": {"good", 3, 50}, "b": {"good", 3, 50}, "c": {"good", 3, 50}}},
			{2 * s, all{"a": gone, "b": gone, "c": gone}},
			{40 * s, all{"a": {"good", 1, 2}, "b": {"good", 1, 2}, "c": gone}},
			{41 * s, all{"a": gone, "b": {"bad", 0, 2}, "c": gone}}, // an election of theirs
			{42 * s, all{"a": {"good", 2, 3}, "b": {"good", 2, 3}, "c": gone}},
			{50 * s, all{"a": gone, "b": gone, "c": gone}}, // our own network
			{5 * m, all{"a": {"good", 2, 3}, "b": {"good", 2, 3}, "c": gone}},
		}, []uint64{50, 2, 3}},
		{"restored on one host of three", []reign{
			{s, all{"a": {"good", 3, 50}, "b": {"good", 3, 50}, "c": {"good", 3, 50}}},
			{40 * s, all{"a": {"good", 1, 2}, "b": gone, "c": gone}},
		}, []uint64{50, 2}},
		{"one that died before it was compared, and is taken back when the others get as far", []reign{
			{s, all{"a": {"good", 3, 50}, "b": {"good", 3, 50}, "c": {"good", 3, 50}}},
			{40 * s, all{"a": {"good", 1, 2}, "b": {"good", 1, 2}, "c": gone}},
			{50 * s, all{"a": {"good", 3, 50}, "b": {"good", 3, 50}, "c": gone}},
			{60 * s, all{"c": {"good", 3, 50}}},
		}, []uint64{50, 2, 50}},
		{"a shim that tells too high a term", []reign{
			{s, all{"a": {"good", 1, 5}, "b": {"good", 1, 5}, "c": {"good", 1, 5}}},
			{40 * s, all{"a": {"good", 1, 5}, "b": {"good", 1, 5}, "c": {"good", 3, 1 << 60}}},
			{2 * m, all{"a": {"good", 2, 6}, "b": {"good", 2, 6}, "c": {"good", 3, 1 << 60}}},
		}, []uint64{5, 1 << 60, 5, 6}},
		{"a shim that tells too low a term", []reign{
			{m, all{"a": {"good", 1, 5}, "b": {"good", 1, 5}, "c": {"good", 3, 1}}},
			{2 * m, all{"a": {"good", 2, 6}, "b": {"gone", 1, 5}, "c": {"good", 3, 1}}},
		}, []uint64{5, 6}},
		{"the only one that is heard of is cut off", []reign{
			{s, all{"a": {"good", 1, 5}, "b": {"good", 1, 5}, "c": {"good", 1, 5}}},
			{2 * s, all{"a": {"bad", 1, 5}, "b": {"good", 3, 6}, "c": {"good", 3, 6}}},
			{5 * m, all{"a": {"bad", 1, 5}, "b": gone, "c": gone}},
			{6 * m, all{"a": {"good", 3, 6}, "b": {"good", 3, 6}, "c": {"good", 3, 6}}},
		}, []uint64{5, 6}},
		{"it is back, and its word is of before", []reign{
			{s, all{"a": {"good", 1, 5}, "b": {"good", 1, 5}, "c": {"good", 1, 5}}},
			{2 * s, all{"a": {"bad", 1, 5}, "b": {"good", 3, 6}, "c": {"good", 3, 6}}},
			{5 * m, all{"a": {"bad", 1, 5}, "b": gone, "c": gone}},
			{6 * m, all{"a": {"mute", 1, 5}, "b": gone, "c": gone}},
			{7 * m, all{"a": {"good", 3, 6}, "b": {"good", 3, 6}, "c": {"good", 3, 6}}},
		}, []uint64{5, 6}},
		{"it is back, and is told of the election late", []reign{
			{s, all{"a": {"good", 1, 5}, "b": {"good", 1, 5}, "c": {"good", 1, 5}}},
			{2 * s, all{"a": {"bad", 1, 5}, "b": {"good", 3, 6}, "c": {"good", 3, 6}}},
			{5 * m, all{"a": {"bad", 1, 5}, "b": gone, "c": gone}},
			{5*m + 10*s, all{"a": {"good", 1, 5}, "b": gone, "c": gone}},
			{7 * m, all{"a": {"good", 3, 6}, "b": gone, "c": gone}},
		}, []uint64{5, 6}},
		{"the new leader is gone at once, and the others are not heard of it for long", []reign{
			{s, all{"a": {"good", 1, 5}, "b": {"good", 1, 5}, "c": {"good", 1, 5}}},
			{2 * s, all{"a": {"mute", 1, 5}, "b": {"mute", 1, 5}, "c": {"good", 3, 6}}},
			{2 * m, all{"a": {"mute", 1, 5}, "b": {"mute", 1, 5}, "c": gone}},
			{3 * m, all{"a": {"good", 2, 7}, "b": {"good", 2, 7}, "c": gone}},
		}, []uint64{5, 6, 7}},
		{"a poll of ten seconds", []reign{
			{s, all{"a": {"good", 1, 5}, "b": {"good", 1, 5}, "c": {"good", 1, 5}}},
			{2 * s, all{"a": {"good", 1, 5}, "b": {"good", 1, 5}, "c": {"good", 3, 6}}},
			{12 * s, all{"a": {"good", 1, 5}, "b": {"good", 1, 5}, "c": gone}},
			{m, all{"a": {"good", 3, 6}, "b": {"good", 3, 6}, "c": gone}},
		}, []uint64{5, 6}},
		{"nobody is heard of for long", []reign{
			{s, all{"a": {"good", 3, 6}, "b": {"good", 3, 6}, "c": {"good", 3, 6}}},
			{10 * m, all{"a": gone, "b": gone, "c": gone}},
			{11 * m, all{"a": {"good", 3, 6}, "b": gone, "c": gone}},
		}, []uint64{6}},
	} {
		if got := reigns(t, tt.story); !slices.Equal(got, tt.want) {
			t.Errorf("%s: leaders were of the terms %v, want %v: every rise passes for a leader that was lost, and one that is missed lets mutations hang", tt.name, got, tt.want)
		}
	}
}

// One of two is no majority: who is wrong cannot be told.
func TestLeaderOfTheHigherTermHoldsWhereOneStandsAgainstOne(t *testing.T) {
	type all = map[string]saying
	story := []reign{{5 * time.Minute, all{"a": {"good", 1, 2}, "b": {"good", 3, 50}}}}
	if got := reigns(t, story); !slices.Equal(got, []uint64{50}) {
		t.Errorf("leaders were of the terms %v, want 50 all the time", got)
	}
}

func TestDetectorForgetsTheLeaderThatAMemberNamedLongBeforeItsReport(t *testing.T) {
	start := time.Unix(1000, 0)
	ev := evidence{self: membership.Observation{Cluster: 9, Member: 1, Leader: 3, Term: 50, At: start}}
	d := newDetector(scaled(Config{}))
	for _, row := range []struct {
		after time.Duration
		says  func(*evidence, time.Time)
		want  membership.ID
		why   string
	}{
		{time.Second, serving, 3, "a report may be a little behind"},
		{19 * time.Second, serving, 3, "a report may be a little behind"},
		{30 * time.Second, notServing(healthsvc.ReasonNoQuorum), 3, "it is cut off, or frozen, and knows no better"},
		{31 * time.Second, serving, 2, "it proves its quorum at that term"},
		{32 * time.Second, serving, 2, "the same, told again"},
	} {
		now := start.Add(row.after)
		then(row.says, answers(answerOK))(&ev, now)
		ev.shim.news.Identity.Leader, ev.shim.news.Identity.Term = 2, 4
		if got := d.step(&ev, now); got.leader != row.want || got.cluster != 9 {
			t.Errorf("%v after the member was last observed, at term 50, its shim tells of term 4: leader is %v at term %d of cluster %v, want %v of cluster 9: %s",
				row.after, got.leader, got.term, got.cluster, row.want, row.why)
		}
	}
}

// What a member said last of the leader is not undone by what it said before, once its report
// is silent: not by a host that dies right after an election, nor by a network that is away.
func TestDetectorRemembersTheLeaderThatAReportNamedLast(t *testing.T) {
	for _, tt := range []struct {
		name  string
		then  func(ev *evidence, now time.Time)
		after time.Duration
		want  uint64
	}{
		{"the path dies", misses, 0, 6},
		{"for long", misses, time.Hour, 6},
		{"the shim dies", noShim, 0, 6},
		{"etcd tells of the next one", func(ev *evidence, now time.Time) {
			noShim(ev, now)
			ev.self.Leader, ev.self.Term, ev.self.At = 2, 7, now
		}, 0, 7},
		{"an observation that was under way", func(ev *evidence, now time.Time) { noShim(ev, now); ev.self.At = now }, 0, 6},
		{"a restore from a backup", func(ev *evidence, now time.Time) {
			noShim(ev, now)
			ev.self.Leader, ev.self.Term, ev.self.At = 2, 2, now
		}, time.Minute, 2},
		{"another member at the address", func(ev *evidence, now time.Time) {
			noShim(ev, now)
			ev.self = membership.Observation{Cluster: 9, Member: 8, Leader: 2, Term: 2, At: now}
		}, 0, 2},
	} {
		now := time.Unix(1000, 0)
		ev := evidence{self: membership.Observation{Cluster: 9, Member: 1, Leader: 1, Term: 5, At: now}}
		d := newDetector(scaled(Config{}))
		now = now.Add(time.Second)
		then(serving, answers(answerOK))(&ev, now)
		ev.shim.news.Identity = healthsvc.Identity{Cluster: 9, Member: 1, Leader: 3, Term: 6}
		if c := d.step(&ev, now); c.leader != 3 || c.term != 6 {
			t.Fatalf("leader is %v at term %d, want 3 at 6", c.leader, c.term)
		}
		now = now.Add(2*time.Second + tt.after)
		ev.shim.news.Missed = 2
		tt.then(&ev, now)
		if c := d.step(&ev, now); c.term != tt.want {
			t.Errorf("%s: leader is %v at term %d, want term %d: a term that falls and rises passes for a leader that was lost", tt.name, c.leader, c.term, tt.want)
		}
	}
}

// That a leader is contradicted changes no verdict. Users of the snapshot are told all the same.
func TestLeaderThatIsContradictedIsToldLikeAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, true, "a", "b", "c")
		lead := func(leader, term uint64, all ...*member) {
			for _, m := range all {
				m.set(func() {
					m.leader, m.term = leader, term
					m.last.Leader, m.last.Term = leader, term
					m.shim.Publish(m.last)
				})
			}
		}
		lead(3, 50, ms.all...)
		var told atomic.Uint64
		p := ms.prober(t, Config{OnChange: func(s *Snapshot) { told.Store(s.Term) }})
		within(t, p, time.Second, "healthy healthy healthy")
		time.Sleep(time.Second)
		if got := told.Load(); got != 50 {
			t.Fatalf("told of term %d, want 50", got)
		}
		ms.all[2].link.set(linkCut)
		lead(1, 6, ms.all[:2]...)
		within(t, p, 2*time.Second, "healthy healthy unhealthy")
		time.Sleep(50 * time.Second) // members are observed every 10 s, which tells that they are at term 6
		if s := p.Snapshot(); s.Leader != 1 || s.Term != 6 || told.Load() != 6 {
			t.Errorf("the snapshot has leader %v at term %d, told was term %d; want 1 at term 6 for all: whom c named is over", s.Leader, s.Term, told.Load())
		}
		if v, _ := p.Snapshot().Verdict("c:2379"); v.Term != 50 || !strings.Contains(v.Evidence, "term 50") {
			t.Errorf("verdict on c is %+v, want what it said last, term 50", v)
		}
	})
}
