package nethosts

import "net/netip"

// Host is a network namespace with one address at the switch.
type Host struct {
	lab  *Lab
	name string
	addr netip.Addr
	dir  string

	equipment *equipment // disks and control groups
}

// Name is the name given to Lab.Host.
func (h *Host) Name() string { return h.name }

// Addr is the host's address at the switch. No other host of the lab ever gets it.
func (h *Host) Addr() netip.Addr { return h.addr }

// Dir is a directory for the host's files.
func (h *Host) Dir() string { return h.dir }

// Remove takes the host away without a word to anybody who is connected to it.
func (h *Host) Remove() error { return errNotYet }

// Do runs f on an operating system thread inside the host's network namespace.
// Sockets that f opens belong to the host for good. What f starts in other
// goroutines does not: those run wherever they like.
func (h *Host) Do(f func() error) error { return errNotYet }

// Start starts a program on the host.
func (h *Host) Start(c Command) (*Process, error) { return nil, errNotYet }

// StartSelf starts a program that was given to Register: this binary again, or
// c.Path where it is another build of it.
func (h *Host) StartSelf(program string, c Command) (*Process, error) { return nil, errNotYet }

// Connections counts the established TCP connections of the host that have port
// at either end. A connection of the host with itself counts once.
func (h *Host) Connections(port uint16) (int, error) { return 0, errNotYet }

// Processes returns the processes that run.
func (h *Host) Processes() []*Process { return nil }

// onStart has f called before each program of the host starts, on the very
// thread that forks it: a control group that the thread joins is the program's
// too. After f the thread ends. The function returned takes f away again.
func (h *Host) onStart(f func() error) (cancel func()) { return func() {} }

// onRemove has f called when the host goes, after its processes ended.
// The last one given runs first.
func (h *Host) onRemove(f func() error) {}
