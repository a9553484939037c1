//go:build linux

package nethosts

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// equipment is what a host has besides its network and its processes: control
// groups and disks.
type equipment struct {
	groups *hostGroups

	mu    sync.Mutex
	disks []*Disk
	made  int // numbers the disks
}

// labEquipment is a lab's share of it. It is made with the first host.
type labEquipment struct {
	once   sync.Once
	groups *labGroups
}

// equip makes the equipment of a host that is called name.
func (l *labEquipment) equip(name string) *equipment {
	l.once.Do(func() { l.groups = newLabGroups() })
	return &equipment{groups: l.groups.newHostGroups(name)}
}

// close takes away what is left when all hosts are stripped.
func (l *labEquipment) close() error {
	if l.groups == nil {
		return nil
	}
	return l.groups.close()
}

// join is called on the thread that forks a process of the host.
func (e *equipment) join(attr *syscall.SysProcAttr) error {
	if err := e.groups.join(attr); err != nil {
		return fmt.Errorf("nethosts: into the host's control groups: %w", err)
	}
	return nil
}

// free is called before the host's processes are ended: those that wait for a
// disk cannot be, and starved ones take long to go.
func (e *equipment) free() error {
	err := e.groups.free()
	for _, d := range e.list() {
		err = errors.Join(err, d.free())
	}
	return err
}

// strip is called when the processes have ended.
func (e *equipment) strip() error {
	var err error
	for _, d := range e.list() {
		err = errors.Join(err, d.Close())
	}
	return errors.Join(err, e.groups.close())
}

func (e *equipment) list() []*Disk {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.disks)
}

func (e *equipment) forget(d *Disk) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.disks = slices.DeleteFunc(e.disks, func(other *Disk) bool { return other == d })
}

// disk makes a disk of size bytes in dir.
func (e *equipment) disk(dir string, size int64) (*Disk, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made++
	d, err := newDisk(filepath.Join(dir, fmt.Sprintf("disk%d", e.made)), size, e.forget)
	if err != nil {
		return nil, err
	}
	e.disks = append(e.disks, d)
	return d, nil
}

// Disk gives the host a disk of size bytes, at least 16 MiB, which goes with the
// host. An [UnavailableError] where it cannot be had.
func (h *Host) Disk(size int64) (*Disk, error) { return h.equipment.disk(h.dir, size) }

// equip gives a host that has just been made its equipment.
func (h *Host) equip() {
	h.equipment = h.lab.equipment.equip(h.name)
	h.onStart(h.equipment.join)
	h.onRelease(h.equipment.free)
	h.onRemove(h.equipment.strip)
}
