package membership

import (
	"cmp"
	"slices"
)

// View is one picture of a cluster, made by [Merge] of several members' words.
type View struct {
	Cluster ID     // zero: no cluster was asked for, and none had a majority
	Leader  ID     // zero: no leader is named by a majority
	Term    uint64 // of Leader; without one, the highest term of an accepted voter
	Voters  int    // voting members that the majority is counted of

	Observations []Observation // accepted ones, the newest of each member, by member id
	Stale        []ID          // members that name themselves at a term that is over
	Refused      []ID          // members of another cluster; zero for one that gave no member id
}

// Merge makes a view of what several members said. It is pure.
//
// Only observations of the given cluster count; with a cluster of zero, those of
// the cluster that a strict majority of them names. An observation that names no
// cluster is accepted and has no say. Of several by one member the newest counts.
//
// The leader is the one that a strict majority of the voters names at one term;
// among several such terms the highest. The number of voters is the largest that
// a member told, or the number of voters that were heard if that is more. So a
// lone member never elects itself, unless nobody told how many there are.
func Merge(cluster ID, obs []Observation) View {
	v := View{Cluster: cluster}
	if v.Cluster == 0 {
		v.Cluster = majorityCluster(obs)
	}
	for _, o := range obs {
		if o.Cluster == 0 || v.Cluster == 0 || o.Cluster == v.Cluster {
			v.accept(o)
		} else {
			v.refuse(o.Member)
		}
	}
	slices.SortFunc(v.Observations, func(a, b Observation) int {
		return cmp.Or(cmp.Compare(a.Member, b.Member), a.At.Compare(b.At))
	})
	slices.Sort(v.Refused)
	if v.Cluster != 0 {
		v.nameLeader()
	}
	return v
}

// majorityCluster returns the cluster that more than half of the observations
// name, of those that name one.
func majorityCluster(obs []Observation) ID {
	count := make(map[ID]int)
	named := 0
	for _, o := range obs {
		if o.Cluster != 0 {
			count[o.Cluster]++
			named++
		}
	}
	for id, n := range count {
		if n > named/2 {
			return id
		}
	}
	return 0
}

// accept keeps the newest observation of each member. Observations without a
// member id cannot be told apart and are all kept.
func (v *View) accept(o Observation) {
	for i, known := range v.Observations {
		if known.Member != o.Member || o.Member == 0 {
			continue
		}
		if newer(o, known) {
			v.Observations[i] = o
		}
		return
	}
	v.Observations = append(v.Observations, o)
}

func newer(a, b Observation) bool {
	if c := a.At.Compare(b.At); c != 0 {
		return c > 0
	}
	return a.Term > b.Term
}

func (v *View) refuse(member ID) {
	if !slices.Contains(v.Refused, member) {
		v.Refused = append(v.Refused, member)
	}
}

// votes tells whether an observation has a say in who leads.
func (o *Observation) votes() bool {
	return o.Cluster != 0 && o.Member != 0 && !o.Learner && !o.Removed
}

func (v *View) nameLeader() {
	type claim struct {
		leader ID
		term   uint64
	}
	claims := make(map[claim]int)
	heard := 0
	highest := uint64(0)
	for i := range v.Observations {
		o := &v.Observations[i]
		if o.Cluster != 0 {
			v.Voters = max(v.Voters, o.Voters)
		}
		if !o.votes() {
			continue
		}
		heard++
		highest = max(highest, o.Term)
		if o.Leader != 0 {
			claims[claim{o.Leader, o.Term}]++
		}
	}
	v.Voters = max(v.Voters, heard)
	for c, n := range claims {
		if n > v.Voters/2 && (v.Leader == 0 || c.term > v.Term) {
			v.Leader, v.Term = c.leader, c.term
		}
	}
	if v.Leader == 0 {
		v.Term = highest
	}
	v.listStale(highest)
}

// listStale lists the members that call themselves leader though a higher term
// has begun and no majority is with them.
func (v *View) listStale(highest uint64) {
	for i := range v.Observations {
		o := &v.Observations[i]
		if o.votes() && o.Leader == o.Member && o.Leader != v.Leader && o.Term < highest {
			v.Stale = append(v.Stale, o.Member)
		}
	}
}
