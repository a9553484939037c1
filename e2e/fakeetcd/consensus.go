package fakeetcd

import "time"

// none is the index of no member.
const none = -1

// timing says how long raft takes to notice things.
type timing struct {
	loss     time.Duration // silence of the leader until a member says that it knows none
	election time.Duration // a leader without quorum until another is elected; negative: never by itself
}

// node is one member as consensus sees it, and what that member sees itself.
type node struct {
	learner, removed bool

	// Faults; each stops the member from taking part.
	killed, frozen, stalled, cut, mute bool
	back                               time.Time // takes part from this moment on, faults permitting

	leader int    // as the member sees it; none while it sees none
	term   uint64 // newest term that it has heard of
	epoch  uint64 // counts the leaders it has seen: a change fails its reads in flight

	silent time.Time // since when it has heard no leader; zero while it hears one
	lost   time.Time // since when leader is none; zero while it is not

	revision int64  // newest revision that it has applied
	index    uint64 // and its place in the log
}

// voter reports whether the member counts towards a majority.
func (n *node) voter() bool { return !n.learner && !n.removed }

// runs reports whether the member's raft loop turns.
func (n *node) runs() bool { return !n.killed && !n.frozen && !n.stalled }

// takesPart reports whether messages can leave and reach the member at all.
func (n *node) takesPart(now time.Time) bool {
	return n.runs() && !n.cut && !n.removed && !now.Before(n.back)
}

// consensus decides who leads and who hears whom. It stands for raft: one log, one leader at a
// time, and members that stop following when they are cut off. No lock, no clock.
type consensus struct {
	timing timing
	nodes  []node
	links  map[[2]int]bool // cut links, from and to

	leader int
	term   uint64
	lost   time.Time // since when leader has had no quorum; zero while it has

	// A planned election: no leader until planAt, then plan. planAt is zero when there is none.
	plan   int
	planAt time.Time
}

// newConsensus returns n voters that follow the first of them at term 2.
func newConsensus(n int, t timing) *consensus {
	c := &consensus{timing: t, nodes: make([]node, n), links: make(map[[2]int]bool), term: 2}
	for i := range c.nodes {
		c.nodes[i] = node{term: 2, epoch: 1, revision: 1, index: 8}
	}
	return c
}

// delivers reports whether a message of one member reaches another.
func (c *consensus) delivers(from, to int, now time.Time) bool {
	f, t := &c.nodes[from], &c.nodes[to]
	return f.takesPart(now) && t.takesPart(now) && !f.mute && !c.links[[2]int{from, to}]
}

// linked reports whether two members hear each other.
func (c *consensus) linked(a, b int, now time.Time) bool {
	return c.delivers(a, b, now) && c.delivers(b, a, now)
}

// majority reports whether a voter and those linked with it are more than half of the voters.
func (c *consensus) majority(of int, now time.Time) bool {
	voters, with := 0, 0
	for i := range c.nodes {
		if !c.nodes[i].voter() {
			continue
		}
		voters++
		if i == of && c.nodes[i].takesPart(now) || i != of && c.linked(of, i, now) {
			with++
		}
	}
	return c.nodes[of].voter() && with > voters/2
}

// leads reports whether there is a leader that can commit.
func (c *consensus) leads(now time.Time) bool {
	return c.leader != none && c.majority(c.leader, now)
}

// live reports whether a linearizable read, a proposal, an entry gets through by way of a member.
func (c *consensus) live(i int, now time.Time) bool {
	return c.leads(now) && (i == c.leader || c.linked(i, c.leader, now))
}

// hears reports whether heartbeats of a leader reach a member.
func (c *consensus) hears(i int, now time.Time) bool {
	switch {
	case c.leader == none:
		return false
	case i == c.leader:
		return c.leads(now)
	default:
		return c.delivers(c.leader, i, now)
	}
}

// schedule plans an election: no leader from now until at, then the given one.
func (c *consensus) schedule(leader int, now, at time.Time) {
	c.plan, c.planAt = leader, at
	c.leader, c.lost = none, now
}

// tick brings everything up to now, and reports whether a leader was elected.
func (c *consensus) tick(now time.Time) bool {
	c.judgeLeader(now)
	elected := c.elect(now)
	for i := range c.nodes {
		c.perceive(i, now)
	}
	return elected
}

// judgeLeader keeps the moment since when the leader has had no quorum.
func (c *consensus) judgeLeader(now time.Time) {
	switch {
	case c.leads(now):
		c.lost = time.Time{}
	case c.lost.IsZero():
		c.lost = now
	}
}

// elect installs the planned leader when its time has come, else, when the old one has been lost
// for long enough, the first voter that has a majority.
func (c *consensus) elect(now time.Time) bool {
	next := none
	switch {
	case !c.planAt.IsZero():
		if now.Before(c.planAt) {
			return false
		}
		next, c.planAt = c.plan, time.Time{}
	case c.timing.election < 0 || c.lost.IsZero() || now.Before(c.lost.Add(c.timing.election)):
		return false
	default:
		c.leader = none // it stepped down: a leader that hears no majority does
		next = c.candidate(now)
	}
	if next == none {
		return false
	}
	c.leader, c.lost = next, time.Time{}
	c.term++
	c.judgeLeader(now)
	return true
}

// candidate returns the first voter that has a majority.
func (c *consensus) candidate(now time.Time) int {
	for i := range c.nodes {
		if c.majority(i, now) {
			return i
		}
	}
	return none
}

// perceive keeps what one member knows of the leader. A member whose loop stands still keeps its
// last view for ever: that is what makes it look healthy.
func (c *consensus) perceive(i int, now time.Time) {
	n := &c.nodes[i]
	switch {
	case n.killed:
		n.leader, n.silent, n.lost = none, now, now
	case n.frozen || n.stalled:
	case c.hears(i, now):
		if n.leader != c.leader || n.term != c.term {
			n.leader, n.term = c.leader, c.term
			n.epoch++
		}
		n.silent, n.lost = time.Time{}, time.Time{}
	case n.silent.IsZero():
		n.silent = now
	case n.leader != none && !now.Before(n.silent.Add(c.timing.loss)):
		n.leader, n.lost = none, now
	}
}

// next returns the first moment after now at which tick has something to do; zero: none.
func (c *consensus) next(now time.Time) time.Time {
	var first time.Time
	consider := func(t time.Time) {
		if t.After(now) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	consider(c.planAt)
	if c.timing.election >= 0 && !c.lost.IsZero() {
		consider(c.lost.Add(c.timing.election))
	}
	for i := range c.nodes {
		n := &c.nodes[i]
		consider(n.back)
		if !n.silent.IsZero() {
			consider(n.silent.Add(c.timing.loss))
		}
		if !n.lost.IsZero() {
			consider(n.lost.Add(streamPatience))
		}
	}
	return first
}
