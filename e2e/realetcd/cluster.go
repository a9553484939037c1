//go:build linux

package realetcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/version"
)

// linked is the version of etcd that is part of this program.
var linked, _ = parseRelease(version.Version)

// Cluster is a cluster of etcd servers on hosts of a lab.
type Cluster struct {
	cfg   Config
	token string

	changing sync.Mutex // serialises changes of membership

	mu       sync.Mutex
	members  []*Member // present ones; replaced whole
	gone     []*Member // removed ones
	made     int       // members so far
	versions map[string]release
}

// Start makes hosts m1 to mN and a cluster on them, and returns when every member
// has quorum and, if it has a shim, that says so.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, token: "lab-" + cfg.Lab.Address().String(), versions: make(map[string]release)}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if c.cfg.Binary == "" && c.cfg.Shim != ShimInProcess {
		var err error
		if c.cfg.Binary, err = Build(ctx, ""); err != nil {
			return err
		}
	}
	for range c.cfg.Members {
		m, err := c.newMember()
		if err != nil {
			return err
		}
		c.setMembers(append(slices.Clone(c.Members()), m))
	}
	initial := initialCluster(c.Members())
	if err := each(c.Members(), func(m *Member) error {
		m.settings.initial = initial
		return m.Launch(ctx)
	}); err != nil {
		return err
	}
	if err := each(c.Members(), func(m *Member) error { return m.WaitServes(ctx) }); err != nil {
		return err
	}
	if err := c.learnIDs(ctx); err != nil {
		return err
	}
	return c.Settled(ctx, 0)
}

// newMember makes a host and what a member needs there; nothing runs yet.
func (c *Cluster) newMember() (*Member, error) {
	c.mu.Lock()
	c.made++
	m := &Member{cluster: c, name: "m" + strconv.Itoa(c.made), binary: c.cfg.Binary, kind: c.cfg.Shim}
	c.mu.Unlock()
	var err error
	if m.host, err = c.cfg.Lab.Host(m.name); err != nil {
		return nil, fmt.Errorf("realetcd: host of %s: %w", m.name, err)
	}
	var disk string
	if c.cfg.Disks {
		if m.disk, err = m.host.Disk(c.cfg.DiskBytes); err != nil {
			return nil, errors.Join(fmt.Errorf("realetcd: disk of %s: %w", m.name, err), m.host.Remove())
		}
		disk = m.disk.Path()
	}
	if m.conn, err = dial(m.Endpoint()); err != nil {
		return nil, errors.Join(fmt.Errorf("realetcd: %s: %w", m.name, err), m.host.Remove())
	}
	data, log := c.cfg.places(m.host.Dir(), disk)
	m.settings = settings{
		name: m.name, address: m.address(), data: data, log: log, token: c.token,
		fsync: c.cfg.Disks, quotaBytes: c.cfg.QuotaBytes, snapshotCount: c.cfg.SnapshotCount, more: c.cfg.Args,
	}
	return m, nil
}

// initialCluster is etcd's form of who belongs to the cluster, name=url,...
func initialCluster(members []*Member) string {
	var pairs []string
	for _, m := range members {
		pairs = append(pairs, m.name+"="+peerURL(m.address()))
	}
	return strings.Join(pairs, ",")
}

// learnIDs asks each member for its own id.
func (c *Cluster) learnIDs(ctx context.Context) error {
	return each(c.Members(), func(m *Member) error {
		a, err := m.ask(ctx)
		if err != nil {
			return fmt.Errorf("realetcd: id of %s: %w", m.name, err)
		}
		m.setID(a.member)
		return nil
	})
}

// Members are the present members, in the order in which they joined.
func (c *Cluster) Members() []*Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.members)
}

func (c *Cluster) setMembers(members []*Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = members
}

// Member returns a present member by its name; nil if there is none.
func (c *Cluster) Member(name string) *Member {
	return c.find(func(m *Member) bool { return m.name == name })
}

func (c *Cluster) byID(id uint64) *Member {
	return c.find(func(m *Member) bool { return m.ID() == id })
}

func (c *Cluster) find(match func(*Member) bool) *Member {
	members := c.Members()
	if i := slices.IndexFunc(members, match); i >= 0 {
		return members[i]
	}
	return nil
}

// Endpoints are the client ports of the present members, host:port.
func (c *Cluster) Endpoints() []string {
	var endpoints []string
	for _, m := range c.Members() {
		endpoints = append(endpoints, m.Endpoint())
	}
	return endpoints
}

// ShimAddress is where the sidecar beside an endpoint is, whether or not there is
// one: port 2378 of the same host.
func (c *Cluster) ShimAddress(endpoint string) string {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(ShimPort))
}

// Arrivals is how often mutations have reached servers.
type Arrivals struct {
	// Counts is by the value that a mutation puts, once for each request that carries it.
	// Values longer than 1 KiB are not counted.
	Counts map[string]int
	// Gaps say why the counts may be too low, and at which member. None: they are not.
	Gaps []string
}

// Arrived counts the mutations that have reached servers by their client ports until now. Members
// that were killed or removed count too.
func (c *Cluster) Arrived() (Arrivals, error) {
	c.mu.Lock()
	all := slices.Concat(c.members, c.gone)
	c.mu.Unlock()
	arrived := Arrivals{Counts: make(map[string]int)}
	for _, m := range all {
		if err := countArrivals(arrived.Counts, m.arrivals()); err != nil {
			return Arrivals{}, err
		}
		for _, gap := range m.wire.addTo(arrived.Counts) {
			arrived.Gaps = append(arrived.Gaps, fmt.Sprintf("the count at %s is incomplete: %s", m.name, gap))
		}
	}
	return arrived, nil
}

// versionOf asks each binary once.
func (c *Cluster) versionOf(ctx context.Context, binary string) (release, error) {
	c.mu.Lock()
	r, known := c.versions[binary]
	c.mu.Unlock()
	if known {
		return r, nil
	}
	text, err := Version(ctx, binary)
	if err != nil {
		return release{}, err
	}
	if r, err = parseRelease(text); err != nil {
		return release{}, fmt.Errorf("%s: %w", binary, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versions[binary] = r
	return r, nil
}

// Close kills all that runs and removes the hosts, with what is on them, also where
// a disk hangs.
func (c *Cluster) Close() error {
	c.mu.Lock()
	all := slices.Concat(c.members, c.gone)
	c.members, c.gone = nil, nil
	c.mu.Unlock()
	return each(all, func(m *Member) error { return errors.Join(m.conn.Close(), m.host.Remove()) })
}

// memberList is the cluster's own list, through a member that has quorum.
func memberList(ctx context.Context, through *Member) ([]*pb.Member, error) {
	list, err := pb.NewClusterClient(through.conn).MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
	return list.GetMembers(), err
}
