//go:build linux

package nethosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// minMemory is less than any program runs in, in bytes: below it a limit is a
// mistake of the unit.
const minMemory = 1 << 20

// LimitMemory squeezes all processes of the host, also those started later, into
// so many bytes: heap, page cache and what the kernel holds for them. It is meant
// to slow them down and not to kill them. What is in the page cache goes first,
// and has to be read again; who needs more memory than that frees waits, and gets
// it slowly (about 20 MB/s), also beyond the limit. Where the host needs more
// the limit is the least that it can do with, four times a second.
//
// Files in a lab directory in memory cannot be given back, and count: a host
// that is to be squeezed keeps its files on a [Disk].
//
// Of several limits the tightest is in force. An [UnavailableError] where the
// machine has no control groups for it.
func (h *Host) LimitMemory(bytes int64) (*Fault, error) {
	if bytes < minMemory {
		return nil, fmt.Errorf("nethosts: %s with %d bytes of memory: want at least %d", h.Name(), bytes, minMemory)
	}
	group, err := h.equipment.groups.group(controlMemory)
	if err != nil {
		return nil, &UnavailableError{What: "a host with too little memory", Why: err.Error()}
	}
	lift, err := h.equipment.groups.tighten(controlMemory, float64(bytes))
	if err != nil {
		return nil, fmt.Errorf("nethosts: limiting the memory of %s to %d bytes: %w", h.Name(), bytes, err)
	}
	stop := func() {}
	if group.tree.version == 1 {
		stop = h.press(group, bytes)
	}
	return h.lab.addFault(fmt.Sprintf("%s has %d bytes of memory", h.Name(), bytes), func() error {
		stop()
		return lift()
	}), nil
}

// limitMemory sets the limit of a group, none where bytes is 0. Version 2 has a
// limit that throttles; version 1 has only one that kills, and a switch that
// makes processes wait instead.
func (g hostGroup) limitMemory(bytes float64) error {
	if g.tree.version == 2 {
		if bytes == 0 {
			return write(g.dir, "memory.high", "max")
		}
		return write(g.dir, "memory.high", strconv.FormatInt(int64(bytes), 10))
	}
	if bytes == 0 {
		return errors.Join(write(g.dir, "memory.limit_in_bytes", "-1"), write(g.dir, "memory.oom_control", "0"))
	}
	if err := write(g.dir, "memory.oom_control", "1"); err != nil {
		return err
	}
	return g.squeeze(bytes)
}

// squeeze gives a group the least that it can do with, so many bytes or more.
func (g hostGroup) squeeze(bytes float64) error {
	for {
		err := write(g.dir, "memory.limit_in_bytes", strconv.FormatInt(int64(bytes), 10))
		// Busy: the kernel could not free that much.
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		bytes *= 1.05
	}
}

// press gives more memory, little by little, to processes that wait for it, and takes back what
// they can do without again, until stop is called: one that needs no more than it had at first
// would not feel the limit.
func (h *Host) press(g hostGroup, bytes int64) (stop func()) {
	const every, squeezeEvery = 50 * time.Millisecond, 5
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for round := 1; !rest(every, quit); round++ {
			h.equipment.groups.mu.Lock()
			switch waits, err := g.waits(); {
			case err != nil: // the next round tries again
			case waits:
				g.relieve()
			case round%squeezeEvery == 0:
				_ = g.squeeze(max(float64(bytes), float64(g.used())/2))
			}
			h.equipment.groups.mu.Unlock()
		}
	}()
	return func() { close(quit); <-ended }
}

// used is how many bytes a group has; 0 where that cannot be read.
func (g hostGroup) used() int64 {
	text, err := os.ReadFile(filepath.Join(g.dir, "memory.usage_in_bytes"))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}

// waits says whether processes of a group wait for memory.
func (g hostGroup) waits() (bool, error) {
	state, err := os.ReadFile(filepath.Join(g.dir, "memory.oom_control"))
	return strings.Contains(string(state), "under_oom 1"), err
}

func (g hostGroup) relieve() {
	text, err := os.ReadFile(filepath.Join(g.dir, "memory.limit_in_bytes"))
	if err != nil {
		return
	}
	now, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return
	}
	// Where it fails the next round tries again.
	_ = write(g.dir, "memory.limit_in_bytes", strconv.FormatInt(now+1<<20, 10))
}
