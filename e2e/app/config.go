//go:build linux

package app

import (
	"fmt"
	"time"
)

// Config describes an application. Name and Endpoints are required.
type Config struct {
	// Name appears in keys and violations. Applications of one cluster need
	// different ones.
	Name string
	// Official takes the official client; default quorumwise's.
	Official bool
	// Endpoints are the members' client addresses.
	Endpoints []string
	// ShimAddresses gives the address of the shim beside each endpoint. An endpoint
	// that is not in it has none. nil: the client's own default (port 2378).
	ShimAddresses map[string]string
	// Observer are members that no fault touches: how long leases have is read
	// there. Default Endpoints.
	Observer []string
	// Seed decides what the histories do; default 1.
	Seed int64
	// Zero is the moment that durations of the record count from; default the start
	// of the process.
	Zero time.Time

	// LeaseTTL of leases and sessions; default 5 s, whole seconds.
	LeaseTTL time.Duration
	// RequestTimeout of the load's calls; default 5 s. One worker of each kind has
	// no deadline at all.
	RequestTimeout time.Duration
	// Spread is how many members must each carry a watch and a lease stream before
	// the load counts as started; default all endpoints.
	Spread int

	// Poll, Hold, ElectionTimeout, KeepaliveOverdue and Rebalance are the client's
	// settings of these names; 0: its defaults. The official client has none.
	Poll, Hold, ElectionTimeout, KeepaliveOverdue, Rebalance time.Duration

	// Quiet leaves out the load's Gets and Puts: watches and leases only.
	Quiet bool
	// Histories adds operations on small groups of keys.
	Histories bool
	// Callers is how many work on each generation of groups; default 6.
	Callers int
	// Watches adds watches of every kind over the keys of the histories and the
	// reference.
	Watches bool
	// Big is how often a transaction is written whose event does not fit into one
	// response, with watches that ask for fragments; 0: never. Each adds some
	// megabytes to the record.
	Big time.Duration
	// ManyWatchers adds so many watchers of one key of the reference, ten on a
	// stream.
	ManyWatchers int
	// Locks adds mutexes, each with two sessions that want it.
	Locks bool
	// Elections adds an election with two candidates.
	Elections bool
	// Counters adds counters, each with two callers.
	Counters bool

	// Binary is the program to run instead of this one: one that Stepped has built,
	// whose wall clock StepClock can step. It does not cross to the process.
	Binary string `json:"-"`
}

// Keys of what an application does beside its load, all below workload's root. Those
// of one application continue with its name.
const (
	historyPrefix  = "/e2e/history/"
	bigPrefix      = "/e2e/big/"
	lockPrefix     = "/e2e/locks/"
	guardedPrefix  = "/e2e/guarded/"
	electionPrefix = "/e2e/elections/"
	counterPrefix  = "/e2e/counters/"
)

// Prefix is what all keys of applications and of the reference begin with.
const Prefix = "/e2e/"

func (c Config) withDefaults() Config {
	if len(c.Observer) == 0 {
		c.Observer = c.Endpoints
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	if c.LeaseTTL == 0 {
		c.LeaseTTL = 5 * time.Second
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = 5 * time.Second
	}
	if c.Spread == 0 {
		c.Spread = len(c.Endpoints)
	}
	if c.Callers == 0 {
		c.Callers = 6
	}
	return c
}

func (c Config) check() error {
	switch {
	case c.Name == "":
		return fmt.Errorf("app: Config.Name is empty: it keeps the keys of applications apart")
	case len(c.Endpoints) == 0:
		return fmt.Errorf("app %s: Config.Endpoints is empty: there is nothing to connect to", c.Name)
	case c.RequestTimeout < 0:
		return fmt.Errorf("app %s: Config.RequestTimeout is %v, want none (5 s) or a positive one", c.Name, c.RequestTimeout)
	case c.LeaseTTL < time.Second || c.LeaseTTL%time.Second != 0:
		return fmt.Errorf("app %s: Config.LeaseTTL is %v, want whole seconds", c.Name, c.LeaseTTL)
	default:
		return nil
	}
}
