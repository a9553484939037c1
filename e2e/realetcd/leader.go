//go:build linux

package realetcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// elect returns the leader that a majority of the voters names at one term; 0 while there is none.
// An isolated leader that still names itself is therefore not it.
func elect(claims []claim, voters int) (leader, term uint64) {
	type vote struct{ leader, term uint64 }
	votes := make(map[vote]int)
	for _, c := range claims {
		if c.leader == 0 || c.learner {
			continue
		}
		v := vote{c.leader, c.term}
		if votes[v]++; votes[v] > voters/2 {
			return v.leader, v.term
		}
	}
	return 0, 0
}

// leads asks all members at once; it does not wait for more answers than it needs.
func (c *Cluster) leads(ctx context.Context) (*Member, uint64) {
	members := c.Members()
	voters := 0
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	answers := make(chan claim, len(members))
	for _, m := range members {
		if !m.isLearner() {
			voters++
		}
		asking.Go(func() {
			var a claim
			if m.Running() {
				a, _ = m.ask(ctx) // who does not answer claims nothing
			}
			answers <- a
		})
	}
	var claims []claim
	for range members {
		claims = append(claims, <-answers)
		if id, term := elect(claims, voters); id != 0 {
			return c.byID(id), term
		}
	}
	return nil, 0
}

// Leader returns the member that a majority of the voters names as leader at one
// term, as soon as there is one. An isolated leader that still names itself is not it.
func (c *Cluster) Leader(ctx context.Context) (*Member, error) {
	return c.waitLeader(ctx, "a leader", func(*Member) bool { return true })
}

// WaitOtherLeader returns the leader as soon as there is one that is not old.
func (c *Cluster) WaitOtherLeader(ctx context.Context, old *Member) (*Member, error) {
	return c.waitLeader(ctx, "a leader other than "+old.name, func(m *Member) bool { return m != old })
}

func (c *Cluster) waitLeader(ctx context.Context, what string, wanted func(*Member) bool) (*Member, error) {
	var leader *Member
	err := poll(ctx, 10*time.Millisecond, what, func() (bool, error) {
		leader, _ = c.leads(ctx)
		return leader != nil && wanted(leader), nil
	})
	if err != nil {
		return nil, err
	}
	return leader, nil
}

// Followers are the running voters that are not the leader, in order of names.
func (c *Cluster) Followers(ctx context.Context) ([]*Member, error) {
	leader, err := c.Leader(ctx)
	if err != nil {
		return nil, err
	}
	var followers []*Member
	for _, m := range c.Members() {
		if m != leader && m.Running() && !m.isLearner() {
			followers = append(followers, m)
		}
	}
	return followers, nil
}

// TransferLeader makes the leader hand over to another member, and returns when a
// majority has accepted it. No member loses its quorum. What fails because of an
// election is tried again until ctx ends.
func (c *Cluster) TransferLeader(ctx context.Context, to *Member) error {
	return poll(ctx, 20*time.Millisecond, to.name+" to lead", func() (bool, error) {
		from, _ := c.leads(ctx)
		if from == nil || from == to {
			return from == to, nil
		}
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		_, err := pb.NewMaintenanceClient(from.conn).MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: to.ID()})
		if err != nil {
			return false, fmt.Errorf("transfer from %s to %s: %w", from.name, to.name, err)
		}
		return false, nil
	})
}

// Settled waits until every running member has what its role allows, quorum and the
// same leader for voters and a shim that says so, and has had it for d without a break.
func (c *Cluster) Settled(ctx context.Context, d time.Duration) error {
	since := time.Now()
	return poll(ctx, 50*time.Millisecond, "all members to be settled", func() (bool, error) {
		err := c.unsettled(ctx)
		if err != nil {
			since = time.Now()
		}
		return err == nil && time.Since(since) >= d, err
	})
}

// unsettled is why the cluster is not settled now.
func (c *Cluster) unsettled(ctx context.Context) error {
	leader, term := c.leads(ctx)
	if leader == nil {
		return errors.New("no leader that a majority names")
	}
	return each(c.Members(), func(m *Member) error {
		if !m.Running() {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		a, err := m.ask(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", m.name, err)
		case a.leader != leader.ID() || a.term != term:
			return fmt.Errorf("%s names %x at term %d as leader, others %x at term %d", m.name, a.leader, a.term, leader.ID(), term)
		case m.isLearner():
			return nil
		}
		if _, err := m.prove(ctx); err != nil {
			return fmt.Errorf("%s has no quorum: %w", m.name, err)
		}
		return m.shimServes(ctx)
	})
}

// shimServes asks the shim, if there is one and it has not been taken away.
func (m *Member) shimServes(ctx context.Context) error {
	if kind := m.ShimKind(); kind == ShimNone || kind == ShimSidecar && m.Shim() == nil {
		return nil
	}
	switch news, err := m.askShim(ctx); {
	case err != nil:
		return fmt.Errorf("the shim of %s: %w", m.name, err)
	case news.Status != healthsvc.StatusServing:
		return fmt.Errorf("the shim of %s says %v (%s)", m.name, news.Status, news.Reason)
	default:
		return nil
	}
}

// askShim asks the shim once.
func (m *Member) askShim(ctx context.Context) (healthsvc.News, error) {
	conn, err := dial(m.ShimAddr())
	if err != nil {
		return healthsvc.News{}, err
	}
	defer conn.Close()
	news := healthsvc.Ask(ctx, conn, healthsvc.ServiceServing)
	return news, news.Err
}

// each runs f for all members at once.
func each(members []*Member, f func(*Member) error) error {
	errs := make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() { errs[i] = f(m) })
	}
	all.Wait()
	return errors.Join(errs...)
}
