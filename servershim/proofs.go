package servershim

import "time"

// maxOutstanding bounds the proofs that have not come back. The deadline keeps
// them to 16 at the default interval; the bound is for a source that does
// not keep to the deadline.
const maxOutstanding = 32

// proofs knows which proofs are out and which is the newest that completed.
type proofs struct {
	out    map[int]proof
	lastID int
	newest time.Time // begin of the newest completed one; never goes back
}

// proof is one linearizable read under way.
type proof struct {
	begin time.Time
	// tainted: the loop was late while it was out. Its duration and its failure
	// are no evidence. Its completion is: the read did happen after begin.
	tainted bool
}

// start opens a proof. It reports false when too many are out.
func (p *proofs) start(now time.Time) (id int, ok bool) {
	if len(p.out) >= maxOutstanding {
		return 0, false
	}
	if p.out == nil {
		p.out = make(map[int]proof)
	}
	p.lastID++
	p.out[p.lastID] = proof{begin: now}
	return p.lastID, true
}

// finish closes a proof, and reports false for one that is not out.
func (p *proofs) finish(id int) (proof, bool) {
	one, ok := p.out[id]
	delete(p.out, id)
	return one, ok
}

// completed takes in a proof that succeeded. It counts from when it began, so an
// older one that comes later changes nothing.
func (p *proofs) completed(begin time.Time) {
	if begin.After(p.newest) {
		p.newest = begin
	}
}

// taint marks everything that is out.
func (p *proofs) taint() {
	for id, one := range p.out {
		one.tainted = true
		p.out[id] = one
	}
}
