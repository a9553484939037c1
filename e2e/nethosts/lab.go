package nethosts

import (
	"errors"
	"log/slog"
	"net/netip"
	"sync"
)

// Config describes a lab. Its zero value works.
type Config struct {
	// Logger gets one line for every host, process and fault that comes or goes.
	// Default: nothing is logged.
	Logger *slog.Logger
	// Dir is the work directory; hosts have their directories below it. Default:
	// a new directory in memory, in a file system of the lab's own, removed by
	// Close. A directory that is given is left where it is, as are its files.
	Dir string
}

// Lab is a set of hosts at one switch.
type Lab struct {
	cfg Config
	dir string

	mu     sync.Mutex
	hosts  []*Host
	faults []*Fault
}

var errNotYet = errors.New("nethosts: not yet")

// New makes a lab without hosts.
func New(cfg Config) (*Lab, error) { return nil, errNotYet }

// Host adds a host to the switch.
func (l *Lab) Host(name string) (*Host, error) { return nil, errNotYet }

// Hosts returns the hosts in the order in which they were made.
func (l *Lab) Hosts() []*Host { return nil }

// Address is the harness's own address at the switch. It reaches every host,
// and no fault touches packets from it or to it.
func (l *Lab) Address() netip.Addr { return netip.Addr{} }

// Dir is the work directory.
func (l *Lab) Dir() string { return l.dir }

// Close ends all processes and removes all hosts. Calling it again does nothing.
func (l *Lab) Close() error { return nil }
