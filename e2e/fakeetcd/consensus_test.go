package fakeetcd

import (
	"testing"
	"time"
)

var usualTiming = timing{loss: 1500 * time.Millisecond, election: 1500 * time.Millisecond}

func TestConsensusStepByStep(t *testing.T) {
	const a, b, c = 0, 1, 2
	type want struct {
		leader  int    // of the majority
		term    uint64 // newest
		seen    [3]int // the leader as each member sees it
		live    [3]bool
		leading bool
	}
	type step struct {
		after time.Duration // since the start
		do    func(*consensus, time.Time)
		want  want
	}
	all, nobody := [3]bool{true, true, true}, [3]bool{}
	for name, steps := range map[string][]step{
		"a cut follower names the old leader until it has heard none for 1.5 s": {
			{0, nil, want{a, 2, [3]int{a, a, a}, all, true}},
			{time.Second, func(s *consensus, _ time.Time) { s.nodes[b].cut = true },
				want{a, 2, [3]int{a, a, a}, [3]bool{true, false, true}, true}},
			{2499 * time.Millisecond, nil, want{a, 2, [3]int{a, a, a}, [3]bool{true, false, true}, true}},
			{2500 * time.Millisecond, nil, want{a, 2, [3]int{a, none, a}, [3]bool{true, false, true}, true}},
			{9 * time.Second, func(s *consensus, now time.Time) { s.nodes[b].cut, s.nodes[b].back = false, now.Add(time.Second) },
				want{a, 2, [3]int{a, none, a}, [3]bool{true, false, true}, true}},
			{10 * time.Second, nil, want{a, 2, [3]int{a, a, a}, all, true}},
		},
		"a cut leader names itself at its old term while the others elect": {
			{0, func(s *consensus, _ time.Time) { s.nodes[a].cut = true }, want{a, 2, [3]int{a, a, a}, nobody, false}},
			{1499 * time.Millisecond, nil, want{a, 2, [3]int{a, a, a}, nobody, false}},
			{1500 * time.Millisecond, nil, want{b, 3, [3]int{none, b, b}, [3]bool{false, true, true}, true}},
		},
		"a stalled leader names itself for ever": {
			{0, func(s *consensus, _ time.Time) { s.nodes[a].stalled = true }, want{a, 2, [3]int{a, a, a}, nobody, false}},
			{time.Hour, nil, want{b, 3, [3]int{a, b, b}, [3]bool{false, true, true}, true}},
		},
		"a mute follower names the leader for ever and proves nothing": {
			{0, func(s *consensus, _ time.Time) { s.nodes[c].mute = true },
				want{a, 2, [3]int{a, a, a}, [3]bool{true, true, false}, true}},
			{time.Hour, nil, want{a, 2, [3]int{a, a, a}, [3]bool{true, true, false}, true}},
		},
		"with one link to the leader cut, only that follower is leaderless": {
			{0, func(s *consensus, _ time.Time) { s.links[[2]int{a, b}], s.links[[2]int{b, a}] = true, true },
				want{a, 2, [3]int{a, a, a}, [3]bool{true, false, true}, true}},
			{time.Hour, nil, want{a, 2, [3]int{a, none, a}, [3]bool{true, false, true}, true}},
		},
		"a cut too short to be noticed changes nothing": {
			{0, func(s *consensus, _ time.Time) { s.nodes[a].cut = true }, want{a, 2, [3]int{a, a, a}, nobody, false}},
			{1400 * time.Millisecond, func(s *consensus, _ time.Time) { s.nodes[a].cut = false }, want{a, 2, [3]int{a, a, a}, all, true}},
			{time.Hour, nil, want{a, 2, [3]int{a, a, a}, all, true}},
		},
		"no majority, no leader, and one as soon as there is a majority again": {
			{0, func(s *consensus, _ time.Time) { s.nodes[a].killed, s.nodes[b].killed = true, true },
				want{a, 2, [3]int{none, none, a}, nobody, false}},
			{time.Minute, nil, want{none, 2, [3]int{none, none, none}, nobody, false}},
			{time.Minute, func(s *consensus, _ time.Time) { s.nodes[b].killed = false },
				want{b, 3, [3]int{none, b, b}, [3]bool{false, true, true}, true}},
		},
		"a planned election takes as long as it was told": {
			{0, func(s *consensus, now time.Time) { s.schedule(c, now, now.Add(3*time.Second)) },
				want{none, 2, [3]int{a, a, a}, nobody, false}},
			{1500 * time.Millisecond, nil, want{none, 2, [3]int{none, none, none}, nobody, false}},
			{3 * time.Second, nil, want{c, 3, [3]int{c, c, c}, all, true}},
		},
		"a leader that is removed is replaced": {
			{0, func(s *consensus, _ time.Time) { s.nodes[a].removed = true }, want{a, 2, [3]int{a, a, a}, nobody, false}},
			{1500 * time.Millisecond, nil, want{b, 3, [3]int{none, b, b}, [3]bool{false, true, true}, true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			s := newConsensus(3, usualTiming)
			now := start
			for i, step := range steps {
				now = runUntil(s, now, start.Add(step.after))
				if step.do != nil {
					step.do(s, now)
					s.tick(now)
				}
				got := want{leader: s.leader, term: s.term, leading: s.leads(now)}
				for m := range s.nodes {
					got.seen[m], got.live[m] = s.nodes[m].leader, s.live(m, now)
				}
				if got != step.want {
					t.Fatalf("step %d, %v after the start:\n got %+v\nwant %+v", i, step.after, got, step.want)
				}
			}
		})
	}
}

// runUntil ticks whenever next says so, as the cluster's loop does.
func runUntil(s *consensus, now, end time.Time) time.Time {
	for {
		next := s.next(now)
		if next.IsZero() || next.After(end) {
			s.tick(end)
			return end
		}
		now = next
		s.tick(now)
	}
}

func TestNoMemberCommitsWithoutAMajority(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for faults := range 1 << 15 { // every subset of five faults on three members
		s := newConsensus(3, usualTiming)
		for i := range s.nodes {
			n, bits := &s.nodes[i], faults>>(5*i)
			n.killed, n.frozen, n.stalled, n.cut, n.mute = bits&1 > 0, bits&2 > 0, bits&4 > 0, bits&8 > 0, bits&16 > 0
		}
		now := runUntil(s, start, start.Add(10*time.Second))
		live := 0
		for i := range s.nodes {
			if s.live(i, now) {
				live++
			}
		}
		if live == 1 {
			t.Fatalf("faults %015b: one member alone of three is live, so it would commit without a majority", faults)
		}
	}
}
