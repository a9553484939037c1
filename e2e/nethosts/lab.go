//go:build linux

package nethosts

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Config describes a lab. Its zero value works.
type Config struct {
	// Logger gets one line for every host, process and fault that comes or goes.
	// Default: nothing is logged.
	Logger *slog.Logger
	// Dir is the work directory; hosts have their directories below it. Default: a
	// new directory in memory, in a file system that nobody outside sees, removed
	// by Close. A directory that is given is made if it is not there, and stays.
	Dir string
}

// Lab is a set of hosts at one switch.
type Lab struct {
	cfg    Config
	log    *slog.Logger
	number int    // of the subnet, and in the names of links
	bridge string // the switch
	dir    string
	ownDir bool
	wire   *wire

	equipment labEquipment // control groups

	once sync.Once // for Close
	err  error     // of Close

	making sync.RWMutex // read: a host is being made. Close waits for it.

	mu     sync.Mutex
	closed bool
	made   int // hosts ever made: no address is given twice
	hosts  []*Host
	faults []*Fault // that act
}

var (
	errNotInside = errors.New("nethosts: no lab before Enter: it has to be called first in main or TestMain")
	errClosed    = errors.New("nethosts: the lab is closed")
)

// New makes a lab without hosts. Outside of the namespaces that [Enter] makes
// there is none, so that nothing of the machine's own network is ever touched.
func New(cfg Config) (*Lab, error) {
	if inside == nil {
		return nil, errNotInside
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	number, err := takeSubnet()
	if err != nil {
		return nil, err
	}
	l := &Lab{cfg: cfg, log: cfg.Logger, number: number, bridge: fmt.Sprintf("sw%d", number)}
	l.wire = newWire(l)
	if err := l.open(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) open() error {
	if err := l.openDir(); err != nil {
		return err
	}
	return ip("the switch", nil,
		"link add "+l.bridge+" type bridge stp_state 0 mcast_snooping 0",
		fmt.Sprintf("addr add %s/%d dev %s", l.Address(), subnetBits, l.bridge),
		"link set "+l.bridge+" up")
}

func (l *Lab) openDir() (err error) {
	if l.dir = l.cfg.Dir; l.dir != "" {
		if l.dir, err = filepath.Abs(l.dir); err == nil {
			err = os.MkdirAll(l.dir, 0o755)
		}
	} else {
		l.dir, err = os.MkdirTemp(workRoot, "lab-")
		l.ownDir = err == nil
	}
	if err != nil {
		return fmt.Errorf("nethosts: work directory: %w", err)
	}
	return nil
}

// Hosts returns the hosts in the order in which they were made.
func (l *Lab) Hosts() []*Host {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.hosts)
}

// Address is the harness's own address at the switch. It reaches every host,
// and no fault of the network touches packets from it or to it.
func (l *Lab) Address() netip.Addr {
	a, _ := address(l.number, 1)
	return a
}

// Dir is the work directory.
func (l *Lab) Dir() string { return l.dir }

// Close lifts all faults, ends all processes and removes all hosts. Calling it
// again returns what the first call did.
func (l *Lab) Close() error {
	l.once.Do(func() { l.err = l.close() })
	return l.err
}

func (l *Lab) close() error {
	l.making.Lock()
	defer l.making.Unlock()
	l.mu.Lock()
	l.closed = true
	faults, hosts := slices.Clone(l.faults), slices.Clone(l.hosts)
	l.mu.Unlock()
	var errs []error
	for _, f := range slices.Backward(faults) {
		if !f.network {
			errs = append(errs, f.Lift())
		}
	}
	errs = append(errs, together(hosts, (*Host).end)...)
	errs = append(errs, l.wire.close(), l.removeLinks(hosts))
	for _, h := range hosts {
		errs = append(errs, h.forget())
	}
	errs = append(errs, l.equipment.close())
	if l.ownDir {
		errs = append(errs, os.RemoveAll(l.dir))
	}
	returnSubnet(l.number)
	return errors.Join(errs...)
}

// removeLinks takes the switch away, and every link to it.
func (l *Lab) removeLinks(hosts []*Host) error {
	var lines []string
	for _, h := range hosts {
		lines = append(lines, "link del "+h.port)
	}
	if _, err := os.Stat("/proc/sys/net/ipv4/conf/" + l.bridge); err == nil {
		lines = append(lines, "link del "+l.bridge)
	}
	if len(lines) == 0 {
		return nil
	}
	return ip("the switch", nil, lines...)
}

// together does f to all at once.
func together[T any](all []T, f func(T) error) []error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, one := range all {
		wg.Go(func() { errs[i] = f(one) })
	}
	wg.Wait()
	return errs
}
