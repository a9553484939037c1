package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Config describes a cluster. The zero value works.
type Config struct {
	// Members is how many: 3 (default) or 5, any number from 1 to 9.
	Members int
	// Election and Heartbeat are raft's timeouts; default 1 s and 100 ms. etcd
	// wants the first at least five times the second.
	Election, Heartbeat time.Duration
	// SnapshotCount is how many applied entries trigger a snapshot, and how many
	// are kept for members that lag; default etcd's own (10,000). A small number
	// makes a member that was cut off need a snapshot.
	SnapshotCount uint64
	// Dir holds data and logs; default a temporary directory that Close removes.
	Dir string
	// Shim is what stands beside each member; default nothing.
	Shim Shim
	// Arrived, when set, is told of every unary request that reaches a member's
	// client port, before etcd handles it. It is called concurrently.
	Arrived func(Arrival)
	// Logger gets one line for each fault, start and stop; default none.
	Logger *slog.Logger
}

// Arrival is one unary request at one member.
type Arrival struct {
	Member  string
	Method  string // full gRPC method
	Request any    // the request as etcd's API types it
	At      time.Time
}

// Shim is what reports the health of a member.
type Shim int

// The kinds of shim.
const (
	ShimNone      Shim = iota // nothing: clients judge by themselves
	ShimSidecar               // a sidecar on a port of its own
	ShimInProcess             // inside the member, on etcd's own client port
	ShimLying                 // on a port of its own, NOT_SERVING whatever happens
)

// String names the kind.
func (s Shim) String() string {
	switch s {
	case ShimNone:
		return "none"
	case ShimSidecar:
		return "sidecar"
	case ShimInProcess:
		return "in process"
	case ShimLying:
		return "lying"
	default:
		return fmt.Sprintf("Shim(%d)", int(s))
	}
}

// standsBeside says whether the shim listens on a port of its own.
func (s Shim) standsBeside() bool { return s == ShimSidecar || s == ShimLying }

func (c Config) withDefaults() (Config, error) {
	if c.Members == 0 {
		c.Members = 3
	}
	if c.Election == 0 {
		c.Election = time.Second
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = c.Election / 10
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Members < 1 || c.Members > 9 {
		return c, fmt.Errorf("cluster: Members = %d: want 1 to 9", c.Members)
	}
	if c.Heartbeat < time.Millisecond || c.Election < 5*c.Heartbeat {
		return c, fmt.Errorf("cluster: Election = %v with Heartbeat = %v: etcd wants an election of at least 5 heartbeats and a heartbeat of at least 1ms", c.Election, c.Heartbeat)
	}
	if c.Shim < ShimNone || c.Shim > ShimLying {
		return c, fmt.Errorf("cluster: Shim = %v: want one of the constants", c.Shim)
	}
	return c, nil
}

// poll calls done every few milliseconds until it returns true or ctx ends.
func poll(ctx context.Context, what string, done func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("cluster: waiting for %s: %w", what, context.Cause(ctx))
		}
	}
	return nil
}
