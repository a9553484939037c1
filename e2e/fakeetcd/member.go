package fakeetcd

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// clusterID is the id of every fake cluster.
const clusterID uint64 = 0xfa4ec1057e000001

// Member is one member of the cluster, and the host that it runs on.
type Member struct {
	ID          uint64
	Name        string
	Address     string // of etcd's client port
	ShimAddress string // of the port beside it, where a sidecar listens if there is one

	c      *Cluster
	index  int
	link   gate // between the host and all clients
	etcd   *port
	beside *port
	// life is held while etcd or the shim is started or stopped. It guards health and server.
	life   sync.Mutex
	health *shim        // nil while none runs
	server *grpc.Server // of etcd; nil while killed

	// Guarded by c.mu.
	cluster uint64
	urls    []string      // that it advertises to clients
	latency time.Duration // of everything
	disk    time.Duration // of consensus
	rejects *rejection
	refusal *status.Status  // of watches that are to be created; nil: they are
	drops   map[string]bool // methods whose answers are withheld
	breaks  map[string]bool // methods whose next answer is a reset of the connections
	tokens  map[string]bool
	streams map[*openStream]struct{}
}

func newMember(c *Cluster, index int) *Member {
	host := c.opts.Host(index)
	m := &Member{
		ID: 0xfa4e000000000001 + uint64(index), Name: host,
		Address: host + ":2379", ShimAddress: host + ":2378",
		c: c, index: index, cluster: clusterID, urls: []string{"http://" + host + ":2379"},
		drops: make(map[string]bool), breaks: make(map[string]bool), tokens: make(map[string]bool),
		streams: make(map[*openStream]struct{}),
	}
	m.etcd, m.beside = newPort(m.Address, &m.link), newPort(m.ShimAddress, &m.link)
	return m
}

// node returns what consensus knows of the member. c.mu is held.
func (m *Member) node() *node { return &m.c.consensus.nodes[m.index] }

// Index returns the member's place in the cluster, counted from 0.
func (m *Member) Index() int { return m.index }

// Streams returns the number of open streams of a method, named as for [Cluster.Requests].
func (m *Member) Streams(method string) int {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	open := 0
	for s := range m.streams {
		if named(s.method, method) {
			open++
		}
	}
	return open
}

// Connections returns the number of connections on etcd's port.
func (m *Member) Connections() int { return m.etcd.open() }

// Live reports whether a linearizable read by way of the member would complete.
func (m *Member) Live() bool {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	return m.c.consensus.live(m.index, time.Now())
}

// await waits until done, called with c.mu held and again after every change, is true. It ends
// early with the context's error, or with late when the time is over.
func (m *Member) await(ctx context.Context, limit time.Duration, late error, done func() (bool, error)) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		m.c.mu.Lock()
		ok, err := done()
		changed := m.c.changed
		m.c.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-timer.C:
			return late
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}
