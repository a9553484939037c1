//go:build linux

package realetcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// retryPause is how long a change that etcd has refused for now waits for its next try. etcd refuses
// changes while its members have not been connected to each other for five seconds.
const retryPause = 200 * time.Millisecond

// AddLearner adds a member without a vote on a new host, and returns when it serves.
func (c *Cluster) AddLearner(ctx context.Context) (*Member, error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	m, err := c.newMember()
	if err != nil {
		return nil, err
	}
	m.setLearner(true)
	m.settings.joins = true
	m.settings.initial = initialCluster(append(c.Members(), m))
	if err := c.change(ctx, "add "+m.name, nil, m.add); err != nil {
		return nil, errors.Join(err, m.conn.Close(), m.host.Remove())
	}
	c.setMembers(append(c.Members(), m))
	c.cfg.Logger.Info("learner added", "member", m.name)
	return m, m.Start(ctx)
}

// add is complete when the list has it: the answer may have been lost.
func (m *Member) add(ctx context.Context, through *Member) (bool, error) {
	_, err := pb.NewClusterClient(through.conn).MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: []string{peerURL(m.address())}, IsLearner: true})
	listed, errList := memberList(ctx, through)
	for _, l := range listed {
		if slices.Contains(l.GetPeerURLs(), peerURL(m.address())) {
			m.setID(l.GetID())
			return true, nil
		}
	}
	return false, errors.Join(err, errList)
}

func (m *Member) setID(id uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.id = id
}

// Promote gives a learner its vote as soon as it has caught up, and returns when it
// has quorum.
func (c *Cluster) Promote(ctx context.Context, m *Member) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	if err := c.change(ctx, "promote "+m.name, nil, m.promote); err != nil {
		return err
	}
	m.setLearner(false)
	c.cfg.Logger.Info("learner promoted", "member", m.name)
	return m.WaitServes(ctx)
}

func (m *Member) promote(ctx context.Context, through *Member) (bool, error) {
	_, err := pb.NewClusterClient(through.conn).MemberPromote(ctx, &pb.MemberPromoteRequest{ID: m.ID()})
	if err == nil {
		return true, nil
	}
	listed, errList := memberList(ctx, through)
	promoted := slices.ContainsFunc(listed, func(l *pb.Member) bool { return l.GetID() == m.ID() && !l.GetIsLearner() })
	return promoted, errors.Join(err, errList)
}

// Remove takes a member out of the cluster, and returns when its processes have
// ended: etcd ends by itself then, at times by a panic, when it is asked for its
// status at that moment. Its host stays until Close, without a server.
func (c *Cluster) Remove(ctx context.Context, m *Member) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	if p := m.Etcd(); p != nil {
		m.lives.ask(p)
	}
	if err := c.change(ctx, "remove "+m.name, m, m.remove); err != nil {
		return err
	}
	c.mu.Lock()
	c.members = slices.DeleteFunc(slices.Clone(c.members), func(o *Member) bool { return o == m })
	c.gone = append(c.gone, m)
	c.mu.Unlock()
	c.cfg.Logger.Info("member removed", "member", m.name)
	if p := m.Etcd(); p != nil {
		select {
		case <-p.Done():
		case <-time.After(5 * time.Second): // one that is cut off does not hear of it
		case <-ctx.Done():
		}
	}
	return m.Stop(ctx)
}

func (m *Member) remove(ctx context.Context, through *Member) (bool, error) {
	_, err := pb.NewClusterClient(through.conn).MemberRemove(ctx, &pb.MemberRemoveRequest{ID: m.ID()})
	if err == nil {
		return true, nil
	}
	listed, errList := memberList(ctx, through)
	listed = slices.DeleteFunc(listed, func(l *pb.Member) bool { return l.GetID() != m.ID() })
	return errList == nil && len(listed) == 0, errors.Join(err, errList)
}

// change tries until the change is complete or ctx ends, through the leader, or through a follower
// where the leader is not to be asked.
func (c *Cluster) change(ctx context.Context, what string, not *Member, try func(context.Context, *Member) (bool, error)) error {
	return poll(ctx, retryPause, what, func() (bool, error) {
		through, _ := c.leads(ctx)
		if through != nil && through == not {
			through = c.find(func(m *Member) bool { return m != not && m.Running() && !m.isLearner() })
		}
		if through == nil {
			return false, fmt.Errorf("nobody to ask to %s: no leader that a majority names", what)
		}
		ctx, cancel := context.WithTimeout(ctx, 7*time.Second)
		defer cancel()
		return try(ctx, through)
	})
}

// Replace puts a new member on a new host, with a new address, in the place of one:
// the new one learns and is promoted, then the old one is removed.
func (c *Cluster) Replace(ctx context.Context, m *Member) (*Member, error) {
	added, err := c.AddLearner(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.Promote(ctx, added); err != nil {
		return added, err
	}
	return added, c.Remove(ctx, m)
}

// RollingRestart stops and starts all members one after the other, the leader last,
// each as soon as all have been settled for a while; on another binary if one is
// given: an upgrade.
func (c *Cluster) RollingRestart(ctx context.Context, binary string, settled time.Duration) error {
	leader, err := c.Leader(ctx)
	if err != nil {
		return err
	}
	order := slices.DeleteFunc(c.Members(), func(m *Member) bool { return m == leader })
	for _, m := range append(order, leader) {
		if err := c.Settled(ctx, settled); err != nil {
			return err
		}
		if err := m.Restart(ctx, binary); err != nil {
			return err
		}
	}
	return c.Settled(ctx, settled)
}
