package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/quorumwise/quorumwise/e2e/relay"
)

// startTimeout bounds the start of one member and of the whole cluster.
const startTimeout = 60 * time.Second

// Cluster is a set of running members.
type Cluster struct {
	cfg     Config
	dir     string
	ownDir  bool
	network *relay.Network
	ports   *block    // nil until planned
	members []*Member // fixed after Start

	mu    sync.Mutex
	views []string // names of the views that were opened
}

// Start runs a cluster and returns when it has a leader and every member serves.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c := &Cluster{cfg: cfg, dir: cfg.Dir, network: relay.NewNetwork(cfg.Logger)}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "quorumwise-e2e-")
		if err != nil {
			return err
		}
		c.dir, c.ownDir = dir, true
	}
	if err := c.plan(); err != nil {
		return err
	}
	if err := c.together(func(m *Member) error { return m.Start(ctx) }); err != nil {
		return err
	}
	_, err := c.WaitLeader(ctx)
	return err
}

// plan gives every member its name, addresses and peer door.
func (c *Cluster) plan() error {
	names := make([]string, c.cfg.Members)
	for i := range names {
		names[i] = fmt.Sprintf("m%d", i+1)
	}
	certFile, keyFile, err := writePeerCertificate(c.dir, names)
	if err != nil {
		return err
	}
	if c.ports, err = claimBlock(); err != nil {
		return err
	}
	for _, name := range names {
		m := &Member{cluster: c, name: name, peerTLS: peerTLS(certFile, keyFile, name)}
		for _, addr := range []*string{&m.peerAddr, &m.clientAddr, &m.shimAddr} {
			if *addr, err = c.ports.freeAddr(); err != nil {
				return err
			}
		}
		if m.peerDoor, err = c.network.Listen(name, m.peerAddr, relay.FromServerName()); err != nil {
			return err
		}
		c.members = append(c.members, m)
	}
	return nil
}

// Close stops every member and shim and removes the directory if the cluster made
// it.
func (c *Cluster) Close() error {
	// Members say good-bye to each other while they stop: let them.
	c.network.Heal()
	// The leader last: one that stops while its followers do waits for them to
	// take over until its request timeout.
	leader := c.Leader()
	err := c.together(func(m *Member) error {
		if m == leader {
			return nil
		}
		return m.Stop()
	})
	if leader != nil {
		err = errors.Join(err, leader.Stop())
	}
	c.network.Close()
	err = errors.Join(err, c.ports.release())
	if c.ownDir {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}

// together does the same with all members at once.
func (c *Cluster) together(do func(*Member) error) error {
	errs := make([]error, len(c.members))
	var all sync.WaitGroup
	for i, m := range c.members {
		all.Go(func() { errs[i] = do(m) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Members lists the members in order of their names, m1 first.
func (c *Cluster) Members() []*Member { return append([]*Member(nil), c.members...) }

// Member returns the member of that name, nil if there is none.
func (c *Cluster) Member(name string) *Member {
	for _, m := range c.members {
		if m.name == name {
			return m
		}
	}
	return nil
}

// Endpoints are the members' own client ports, which no fault touches.
func (c *Cluster) Endpoints() []string {
	var eps []string
	for _, m := range c.members {
		eps = append(eps, m.clientAddr)
	}
	return eps
}

// Config is what the cluster runs with, defaults filled in.
func (c *Cluster) Config() Config { return c.cfg }

// others are the members that are not m.
func (c *Cluster) others(m *Member) []*Member {
	var others []*Member
	for _, o := range c.members {
		if o != m {
			others = append(others, o)
		}
	}
	return others
}
