//go:build linux

package app

import (
	"log/slog"
	"maps"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// connection is the client under test, of either kind, and what it tells of itself.
type connection struct {
	*clientv3.Client
	ours  *client.Client // nil: the official one
	trace *workload.Trace
	clock clock

	fragments fragments

	mu    sync.Mutex
	shims map[string]string // nil: the client's default
	moves []Move
}

// connect makes the client. Both kinds have the same settings but for what
// quorumwise adds.
func connect(cfg Config, clock clock, log *slog.Logger) (*connection, error) {
	c := &connection{trace: new(workload.Trace), clock: clock, shims: maps.Clone(cfg.ShimAddresses)}
	official := officialConfig(cfg.Endpoints, c.trace.DialOption())
	if cfg.Big > 0 {
		official.DialOptions = append(official.DialOptions, c.fragments.dialOption())
	}
	if cfg.Official {
		cli, err := clientv3.New(official)
		c.Client = cli
		return c, err
	}
	health := client.Health{
		Poll: cfg.Poll, Hold: cfg.Hold, ElectionTimeout: cfg.ElectionTimeout,
		KeepaliveOverdue: cfg.KeepaliveOverdue, Rebalance: cfg.Rebalance,
		Logger: log, OnMove: c.moved,
	}
	if cfg.ShimAddresses != nil {
		health.ShimAddress = c.shim
	}
	cli, err := client.New(client.Config{Config: official, Health: health})
	if err != nil {
		return nil, err
	}
	c.ours, c.Client = cli, cli.Client
	return c, nil
}

func officialConfig(endpoints []string, opts ...grpc.DialOption) clientv3.Config {
	return clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialOptions: opts}
}

func (c *connection) shim(address string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shims[address]
}

func (c *connection) moved(m client.Move) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moves = append(c.moves, Move{At: c.clock.wall(m.At), Class: m.Class, Endpoint: m.Endpoint, Reason: m.Reason})
}

// setEndpoints changes the members. What is known of the shims of others is kept:
// calls on them may not have ended.
func (c *connection) setEndpoints(endpoints []string, shims map[string]string) {
	c.mu.Lock()
	if c.shims != nil {
		maps.Copy(c.shims, shims)
	}
	c.mu.Unlock()
	c.SetEndpoints(endpoints...)
}

// observed are the observer's members when the cluster's change: those of them that
// are left, and all members where none is.
func observed(before, members []string) []string {
	left := slices.DeleteFunc(slices.Clone(before), func(e string) bool { return !slices.Contains(members, e) })
	if len(left) == 0 {
		return members
	}
	return left
}

// allMoves is a copy of what was moved.
func (c *connection) allMoves() []Move {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Move(nil), c.moves...)
}

// close ends the client.
func (c *connection) close() {
	if c.ours != nil {
		c.ours.Close()
		return
	}
	c.Close()
}
