package membership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// obs is member m's word that leader leads at term, in cluster 1.
func obs(m, leader ID, term uint64) Observation {
	return Observation{Cluster: 1, Member: m, Leader: leader, Term: term, At: t0}
}

func TestMergeNamesTheLeaderOfTheMajority(t *testing.T) {
	of := func(o Observation, change func(*Observation)) Observation { change(&o); return o }
	three := func(o *Observation) { o.Voters = 3 }
	for _, c := range []struct {
		why     string
		cluster ID
		obs     []Observation
		leader  ID
		term    uint64
		stale   []ID
		refused []ID
	}{
		{"nobody was heard", 1, nil, 0, 0, nil, nil},
		{"all agree", 1, []Observation{obs(1, 1, 5), obs(2, 1, 5), obs(3, 1, 5)}, 1, 5, nil, nil},
		{"an isolated leader still names itself", 1, []Observation{obs(1, 1, 5), obs(2, 2, 6), obs(3, 2, 6)}, 2, 6, []ID{1}, nil},
		{"the same, and one of the majority was not heard", 1, []Observation{of(obs(1, 1, 5), three), of(obs(2, 2, 6), three)}, 0, 6, []ID{1}, nil},
		{"only the isolated leader was heard", 1, []Observation{of(obs(1, 1, 5), three)}, 0, 5, nil, nil},
		{"a lone member that told nothing of others", 1, []Observation{obs(1, 1, 5)}, 1, 5, nil, nil},
		{"an election: nobody leads", 1, []Observation{obs(1, 0, 6), obs(2, 0, 6), obs(3, 0, 5)}, 0, 6, nil, nil},
		{"the majority has not heard of the new leader yet", 1, []Observation{obs(1, 1, 5), obs(2, 2, 6), obs(3, 1, 5)}, 1, 5, nil, nil},
		{"a partitioned candidate has a higher term and no leader", 1, []Observation{obs(1, 1, 5), obs(2, 1, 5), obs(3, 0, 9)}, 1, 5, nil, nil},
		{"two claims at different terms, no majority", 1, []Observation{of(obs(1, 1, 5), three), of(obs(2, 2, 7), three)}, 0, 7, []ID{1}, nil},
		{"a learner has no say", 1, []Observation{obs(1, 1, 5), of(obs(2, 1, 5), func(o *Observation) { o.Learner = true }), obs(3, 0, 5), obs(4, 0, 5)}, 0, 5, nil, nil},
		{"a removed member has no say, and no majority to hinder", 1, []Observation{of(obs(1, 1, 5), func(o *Observation) { o.Removed = true }), obs(2, 2, 6)}, 2, 6, nil, nil},
		{"another cluster is refused", 1, []Observation{obs(1, 1, 5), of(obs(9, 9, 99), func(o *Observation) { o.Cluster = 2 }), obs(2, 1, 5)}, 1, 5, nil, []ID{9}},
		{"the majority says which cluster", 0, []Observation{obs(1, 1, 5), of(obs(9, 9, 99), func(o *Observation) { o.Cluster = 2 }), obs(2, 1, 5)}, 1, 5, nil, []ID{9}},
		{"no cluster has a majority", 0, []Observation{obs(1, 1, 5), of(obs(9, 9, 99), func(o *Observation) { o.Cluster = 2 })}, 0, 0, nil, nil},
		{"a member that hides its identity has no say", 1, []Observation{obs(1, 1, 5), {Term: 70, Leader: 7}}, 1, 5, nil, nil},
		{"the newest word of a member counts", 1, []Observation{of(obs(1, 1, 5), func(o *Observation) { o.At = t0.Add(1) }), obs(1, 2, 9), obs(2, 1, 5)}, 1, 5, nil, nil},
	} {
		t.Run(c.why, func(t *testing.T) {
			v := Merge(c.cluster, c.obs)
			if v.Leader != c.leader || v.Term != c.term {
				t.Errorf("got leader %v at term %d, want %v at %d", v.Leader, v.Term, c.leader, c.term)
			}
			if !slices.Equal(v.Stale, c.stale) {
				t.Errorf("got stale %v, want %v", v.Stale, c.stale)
			}
			if !slices.Equal(v.Refused, c.refused) {
				t.Errorf("got refused %v, want %v", v.Refused, c.refused)
			}
		})
	}
}

// dumbLeader tries every leader at every term, from the highest down.
func dumbLeader(obs []Observation, voters int) (ID, uint64) {
	for term := 10; term >= 0; term-- {
		for leader := ID(1); leader < 10; leader++ {
			n := 0
			for _, o := range obs {
				if o.Term == uint64(term) && o.Leader == leader {
					n++
				}
			}
			if 2*n > voters {
				return leader, uint64(term)
			}
		}
	}
	return 0, 0
}

func TestMergeAgreesWithADumbCount(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		var all []Observation
		voters := 0
		for m := ID(1); m <= ID(1+rnd.IntN(7)); m++ {
			o := obs(m, ID(rnd.IntN(4)), uint64(rnd.IntN(4)))
			o.Voters = rnd.IntN(9)
			all = append(all, o)
			voters = max(voters, o.Voters)
		}
		voters = max(voters, len(all))
		leader, term := dumbLeader(all, voters)
		shuffled := slices.Clone(all)
		rnd.Shuffle(len(all), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		v := Merge(1, shuffled)
		if v.Leader != leader || leader != 0 && v.Term != term {
			t.Fatalf("seed %d: got leader %v at term %d of %v, want %v at %d", seed, v.Leader, v.Term, all, leader, term)
		}
		if slices.Contains(v.Stale, v.Leader) {
			t.Fatalf("seed %d: the leader %v is listed as stale among %v", seed, v.Leader, all)
		}
		if fmt.Sprint(v) != fmt.Sprint(Merge(1, all)) {
			t.Fatalf("seed %d: the order of what was heard changes the view of %v", seed, all)
		}
	}
}
