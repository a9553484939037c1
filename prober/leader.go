package prober

import (
	"time"

	"github.com/quorumwise/quorumwise/membership"
)

// claim is the leader that an endpoint names.
type claim struct {
	leader membership.ID // zero: none
	term   uint64
	since  time.Time // when it was first heard of: if it is true, this leader was elected by then
	// contradicted is set when it cannot be true. It stays set while nobody proves a quorum: else the
	// leader would be back, as if new, with the next election.
	contradicted bool
}

// claims keeps account of what the endpoints claim.
func (j *judge) claims(sights []sight) {
	for _, s := range sights {
		c := &j.standings[s.address].claim
		if c.leader != s.c.leader || c.term != s.c.term {
			*c = claim{leader: s.c.leader, term: s.c.term, since: s.c.heard}
		}
	}
	for _, s := range sights {
		c := &j.standings[s.address].claim
		c.contradicted = c.contradicted || c.leader != 0 && j.contradicts(c, sights)
	}
}

// contradicts reports whether most members that prove their quorum, and say at which term, are
// at a lower one than a leader that is claimed to have been there long before. Terms never fall,
// so the claim is of before a restore from a backup, or wrong. It takes most of them because one
// may be what is wrong. It takes long because a term is read a little earlier, or later, than a quorum
// is proved: who was cut off has the term of before at first.
func (j *judge) contradicts(c *claim, sights []sight) bool {
	against, all := 0, 0
	for _, w := range sights {
		if !j.witness(w) || w.c.term == 0 {
			continue
		}
		all++
		long := later(c.since, w.c.since).Add(j.t.outlived)
		if w.c.term < c.term && w.c.heard.After(long) && w.c.proven.After(long) {
			against++
		}
	}
	return 2*against > all
}

// lead finds the leader for all endpoints together: the one of the highest term that is not
// contradicted. However long ago it was named: those who elect, or whom we cannot reach, are
// not at a lower term than before.
func (j *judge) lead(sights []sight, now time.Time) {
	leader, term := membership.ID(0), uint64(0)
	for _, s := range sights {
		st := j.standings[s.address]
		c := st.claim
		if st.grade != Parked && c.leader != 0 && !c.contradicted && (c.term > term || c.term == term && c.leader < leader) {
			leader, term = c.leader, c.term
		}
	}
	for _, s := range sights { // the others got as far
		c := &j.standings[s.address].claim
		c.contradicted = c.contradicted && c.term > term
	}
	if leader != j.leader {
		j.leading = now
	}
	if leader == 0 {
		j.leading = time.Time{}
	}
	j.leader, j.leadTerm = leader, term
}
