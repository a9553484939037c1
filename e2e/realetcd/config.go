//go:build linux

package realetcd

import (
	"fmt"
	"log/slog"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

// Ports on every member's host.
const (
	ClientPort = 2379
	PeerPort   = 2380
	ShimPort   = 2378 // of a sidecar
	adminPort  = 2377 // of the in-process kind, for the harness
)

// Shim is what reports the health of a member.
type Shim int

// The kinds of shim.
const (
	ShimNone      Shim = iota // nothing: clients judge by themselves
	ShimSidecar               // the command quorumshim, a process of its own on the member's host
	ShimInProcess             // inside the member, on etcd's own client port
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
	default:
		return fmt.Sprintf("Shim(%d)", int(s))
	}
}

// Config describes a cluster. Only Lab is required.
type Config struct {
	// Lab has the hosts.
	Lab *nethosts.Lab
	// Members is how many, 1 to 9; default 3.
	Members int
	// Binary is the path of the etcd server; default what Build makes of version "".
	// Members with the in-process kind are this program itself and do not use it.
	Binary string
	// Shim is what stands beside each member; default nothing.
	Shim Shim
	// Disks gives every member a disk of its own, and it writes synchronously.
	// Default: data lie in the host's directory and nothing is written synchronously.
	Disks bool
	// OnlyWAL puts only the write-ahead log on each of the Disks; the store stays in the
	// host's directory. A member whose disk hangs then stands still in its raft loop and
	// goes on answering what takes no consensus, its Status above all; with the store on
	// that disk too it soon answers nothing. Default false. Either way all is written
	// synchronously.
	OnlyWAL bool
	// DiskBytes is the size of each; default 512 MiB.
	DiskBytes int64
	// QuotaBytes is the limit of the store's size; default etcd's own (2 GiB).
	QuotaBytes int64
	// SnapshotCount is how many applied entries trigger a snapshot, and how many are
	// kept for members that lag; default etcd's own. A small number makes a member
	// that was cut off need a snapshot.
	SnapshotCount uint64
	// Args are further flags of the server, as its newest version spells them:
	// --experimental- is put in front where an older one wants that.
	Args []string
	// Logger gets one line for each start, stop and change of membership; default none.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Members == 0 {
		c.Members = 3
	}
	if c.DiskBytes == 0 {
		c.DiskBytes = 512 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Lab == nil:
		return c, fmt.Errorf("realetcd: Lab is nil: members need hosts: give one of nethosts.New")
	case c.Members < 1 || c.Members > 9:
		return c, fmt.Errorf("realetcd: Members = %d: want 1 to 9", c.Members)
	case c.Shim < ShimNone || c.Shim > ShimInProcess:
		return c, fmt.Errorf("realetcd: Shim = %v: want one of the constants", c.Shim)
	case c.DiskBytes < 256<<20 && c.Disks:
		return c, fmt.Errorf("realetcd: DiskBytes = %d: etcd wants at least 256 MiB for its logs and its store", c.DiskBytes)
	case c.OnlyWAL && !c.Disks:
		return c, fmt.Errorf("realetcd: OnlyWAL = true without Disks: want both, or neither: it says what is on them")
	case c.QuotaBytes < 0:
		return c, fmt.Errorf("realetcd: QuotaBytes = %d: want 0 for etcd's own, or more", c.QuotaBytes)
	}
	return c, nil
}

// places are where a member keeps its data and its write-ahead log, given the host's
// directory and its disk's. "": the log is with the data.
func (c Config) places(host, disk string) (data, log string) {
	switch {
	case !c.Disks:
		return host, ""
	case c.OnlyWAL:
		return host, disk
	default:
		return disk, ""
	}
}
