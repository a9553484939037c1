package cluster

import (
	"context"
	"fmt"
	"time"
)

// Leader is the member that a majority names as leader at the highest term among
// them; nil while there is none. An isolated leader that still names itself is
// therefore not it.
func (c *Cluster) Leader() *Member {
	leader, _ := c.leader()
	return leader
}

// leader also returns the term.
func (c *Cluster) leader() (*Member, uint64) {
	type claim struct{ leader, term uint64 }
	votes := make(map[claim]int)
	byID := make(map[uint64]*Member)
	for _, m := range c.members {
		if s := m.Server(); s != nil {
			votes[claim{uint64(s.Leader()), s.Term()}]++
			byID[uint64(s.MemberID())] = m
		}
	}
	for cl, n := range votes {
		if cl.leader != 0 && n > len(c.members)/2 {
			return byID[cl.leader], cl.term
		}
	}
	return nil, 0
}

// WaitLeader returns the leader as soon as there is one.
func (c *Cluster) WaitLeader(ctx context.Context) (*Member, error) {
	var leader *Member
	err := poll(ctx, "a leader", func() bool { leader = c.Leader(); return leader != nil })
	return leader, err
}

// WaitOtherLeader returns the leader as soon as there is one that is not old.
func (c *Cluster) WaitOtherLeader(ctx context.Context, old *Member) (*Member, error) {
	var leader *Member
	err := poll(ctx, "a leader other than "+old.name, func() bool {
		leader = c.Leader()
		return leader != nil && leader != old
	})
	return leader, err
}

// Followers are the running members that are not the leader, in order of names.
func (c *Cluster) Followers() []*Member {
	leader := c.Leader()
	var followers []*Member
	for _, m := range c.members {
		if m != leader && m.Server() != nil {
			followers = append(followers, m)
		}
	}
	return followers
}

// transferTime is when a transfer was dropped: raft gives one up after an election
// timeout, and its caller is not told.
const transferTime = 3 * time.Second

// TransferLeader makes the running leader hand over to another member, and
// returns when a majority has accepted it. No member loses its quorum. A transfer
// that is dropped, as on a busy machine, is begun again.
func (c *Cluster) TransferLeader(ctx context.Context, to *Member) error {
	for {
		from, err := c.WaitLeader(ctx)
		if err != nil || from == to {
			return err
		}
		attempt, cancel := context.WithTimeout(ctx, transferTime)
		err = c.transfer(attempt, from, to)
		dropped := attempt.Err() != nil && ctx.Err() == nil
		cancel()
		if !dropped {
			return err
		}
	}
}

func (c *Cluster) transfer(ctx context.Context, from, to *Member) error {
	s := from.Server()
	if s == nil {
		return fmt.Errorf("cluster: leader %s stopped during the transfer to %s", from.name, to.name)
	}
	if err := s.MoveLeader(ctx, from.ID(), to.ID()); err != nil {
		return fmt.Errorf("cluster: transfer from %s to %s: %w", from.name, to.name, err)
	}
	return poll(ctx, to.name+" to lead", func() bool { return c.Leader() == to })
}

// ForceElection takes the peer network away from all members alike until the
// leader has given up, and returns when a new one is elected, at a higher term. No
// member is better off than another meanwhile.
func (c *Cluster) ForceElection(ctx context.Context) (*Member, error) {
	var old *Member
	var term uint64
	if err := poll(ctx, "a leader to depose", func() bool { old, term = c.leader(); return old != nil }); err != nil {
		return nil, err
	}
	c.network.Hold(c.allPeers()...)
	err := poll(ctx, old.name+" to step down", func() bool {
		s := old.Server()
		return s == nil || uint64(s.Leader()) != old.ID()
	})
	c.network.Heal(c.allPeers()...)
	if err != nil {
		return nil, err
	}
	var leader *Member
	err = poll(ctx, "a leader of a later term", func() bool {
		var now uint64
		leader, now = c.leader()
		return leader != nil && now > term
	})
	return leader, err
}

// Settled waits until every running member names the same leader and answers a
// linearizable read, and has done so for d without a break.
func (c *Cluster) Settled(ctx context.Context, d time.Duration) error {
	since := time.Now()
	return poll(ctx, "all members to have quorum", func() bool {
		for _, m := range c.members {
			if !m.proves(ctx) {
				since = time.Now()
			}
		}
		return time.Since(since) >= d
	})
}

// proves says whether a linearizable read through the member completes soon. A
// stopped member is not asked.
func (m *Member) proves(ctx context.Context) bool {
	s := m.Server()
	if s == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return s.LinearizableReadNotify(ctx) == nil
}
