//go:build linux

package nethosts

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Host is a network namespace with one address at the switch.
type Host struct {
	lab     *Lab
	name    string
	addr    netip.Addr
	dir     string
	port    string // the switch's end of the link
	network *namespace

	equipment *equipment // control groups and disks

	starting sync.RWMutex // read: a process is being started. The end of the host waits for it.

	mu        sync.Mutex
	gone      bool
	processes []*Process // that run
	atStart   []func(*syscall.SysProcAttr) error
	atRelease []func() error
	atRemoval []func() error
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Host adds a host to the switch. The name is one word of letters, digits, dots,
// dashes and underscores, and no other host of the lab has it.
func (l *Lab) Host(name string) (*Host, error) {
	l.making.RLock()
	defer l.making.RUnlock()
	h, err := l.plan(name)
	if err != nil {
		return nil, err
	}
	if err := h.make(); err != nil {
		l.strike(h)
		return nil, err
	}
	l.log.Info("host", "name", name, "address", h.addr)
	return h, nil
}

// plan gives the host its place among the others.
func (l *Lab) plan(name string) (*Host, error) {
	if !hostName.MatchString(name) {
		return nil, fmt.Errorf("nethosts: host name %q: letters, digits, dots, dashes and underscores are allowed", name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	if slices.ContainsFunc(l.hosts, func(h *Host) bool { return h.name == name }) {
		return nil, fmt.Errorf("nethosts: host %s exists already", name)
	}
	addr, ok := address(l.number, l.made+2)
	if !ok {
		return nil, fmt.Errorf("nethosts: host %s: all addresses of the lab were given away", name)
	}
	l.made++
	h := &Host{lab: l, name: name, addr: addr, dir: filepath.Join(l.dir, name), port: fmt.Sprintf("p%d.%d", l.number, l.made)}
	l.hosts = append(l.hosts, h)
	return h, nil
}

// strike is the opposite of plan.
func (l *Lab) strike(h *Host) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosts = slices.DeleteFunc(l.hosts, func(o *Host) bool { return o == h })
}

func (h *Host) make() (err error) {
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		return fmt.Errorf("nethosts: directory of host %s: %w", h.name, err)
	}
	if h.network, err = newNamespace(hostSettings); err != nil {
		return fmt.Errorf("nethosts: host %s: %w", h.name, err)
	}
	if err := h.link(); err != nil {
		return errors.Join(err, h.network.close())
	}
	h.equip()
	return nil
}

// link connects the host to the switch. What passes the switch as one packet,
// and is lost as one, is at most eight segments of a TCP connection in bulk: with
// one, as on a real wire, the lab is fifteen times as slow as with no bound.
func (h *Host) link() error {
	err := ip("the switch", h.network.file,
		"link add "+h.port+" type veth peer name eth0 netns /proc/self/fd/3",
		"link set "+h.port+" master "+h.lab.bridge+" up")
	if err != nil {
		return err
	}
	return h.network.do(func() error {
		return ip(h.name, nil,
			"link set lo up",
			fmt.Sprintf("addr add %s/%d dev eth0", h.addr, subnetBits),
			"link set eth0 gso_max_segs 8 up")
	})
}

// Name is the name given to [Lab.Host].
func (h *Host) Name() string { return h.name }

// Addr is the host's address at the switch. No other host of the lab ever gets it.
func (h *Host) Addr() netip.Addr { return h.addr }

// Dir is a directory for the host's files.
func (h *Host) Dir() string { return h.dir }

// String is the name.
func (h *Host) String() string { return h.name }

// Do runs f on an operating system thread inside the host's network namespace.
// Sockets that f opens belong to the host for good, and so do programs that it
// starts. What f starts in other goroutines does not: those run anywhere. With
// an address in figures, net.Dial and net.Listen do all of their work in the
// goroutine that calls them.
func (h *Host) Do(f func() error) error { return h.network.do(f) }

// Remove ends the host's processes and takes it off the switch, all without a
// word to anybody who is connected to it.
func (h *Host) Remove() error {
	// The link goes first: processes that are killed must not say goodbye.
	unplugged, err := h.lab.wire.unplug(h)
	if !unplugged {
		return err
	}
	errs := []error{err, h.end(), h.forget()}
	h.lab.strike(h)
	h.lab.log.Info("host removed", "name", h.name, "address", h.addr)
	return errors.Join(errs...)
}

// end ends all processes of the host, for good, and frees what it has.
func (h *Host) end() error {
	h.starting.Lock()
	h.mu.Lock()
	h.gone = true
	release, removal := h.atRelease, h.atRemoval
	h.atRelease, h.atRemoval = nil, nil
	h.mu.Unlock()
	h.starting.Unlock()
	errs := together(release, func(f func() error) error { return f() })
	errs = append(errs, together(h.Processes(), (*Process).Kill)...)
	errs = append(errs, h.endStrays())
	for _, f := range slices.Backward(removal) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// endStrays ends the processes in the host's network that left their group.
func (h *Host) endStrays() error {
	own, err := os.Stat(fmt.Sprintf("/proc/self/fd/%d", h.network.file.Fd()))
	if err != nil {
		return fmt.Errorf("nethosts: %s: %w", h.name, err)
	}
	all, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return err
	}
	for _, path := range all {
		pid, err := strconv.Atoi(strings.Split(path, "/")[2])
		if err != nil || pid == os.Getpid() {
			continue // the harness visits
		}
		if network, err := os.Stat(path); err == nil && os.SameFile(network, own) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return nil
}

// forget lets the namespace go.
func (h *Host) forget() error {
	errs := []error{h.network.close()}
	if h.lab.ownDir {
		errs = append(errs, os.RemoveAll(h.dir))
	}
	return errors.Join(errs...)
}

// onStart has f called before each program of the host starts, on the very
// thread that forks it, with how it will be forked: a control group that the
// thread joins is the program's too. After the start the thread ends.
func (h *Host) onStart(f func(*syscall.SysProcAttr) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.atStart = append(h.atStart, f)
}

// onRelease has f called when the host goes, before its processes are ended: a
// process that a disk holds cannot be.
func (h *Host) onRelease(f func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.atRelease = append(h.atRelease, f)
}

// onRemove has f called when the host goes, after its processes ended. The last
// one given runs first.
func (h *Host) onRemove(f func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.atRemoval = append(h.atRemoval, f)
}
