//go:build linux

package nethosts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Disk is a file system of a host's own, on a loop device over a file without a
// name. It is mounted in the harness's mount namespace only. Its methods may be
// called at once.
//
// A hung disk stops whoever writes, in a way that not even SIGKILL ends; what is
// in the page cache can still be read. Closing the disk or the lab thaws it, and
// so does a guard process when the harness crashes.
type Disk struct {
	path string
	id   string   // what the guard calls it
	root *os.File // keeps hold of the file system whatever happens to its path

	mu       sync.Mutex
	hung     bool
	slow     func()      // ends the duty cycle, nil without one
	holds    int         // by Hang and by the duty cycle; frozen where above 0
	closed   bool        // no more holds
	released bool        // root is closed
	gone     func(*Disk) // tells the owner, once
}

// formatting is how long a file system may take to make: a tenth of a second is usual.
const formatting = time.Minute

// minDisk is the smallest disk: an ext4 file system with a journal, in bytes.
const minDisk = 16 << 20

// newDisk makes a disk of size bytes and mounts it at path, which it creates.
func newDisk(path string, size int64, gone func(*Disk)) (*Disk, error) {
	if size < minDisk {
		return nil, fmt.Errorf("nethosts: a disk of %d bytes: want at least %d, for a file system with a journal", size, minDisk)
	}
	if !theGuard.present() {
		return nil, noDisk(errNoGuard)
	}
	backing, err := unnamedFile(filepath.Dir(path), size)
	if err != nil {
		return nil, fmt.Errorf("nethosts: the file under a disk: %w", err)
	}
	defer backing.Close()
	if err := format(backing); err != nil {
		return nil, noDisk(err)
	}
	device, err := attachLoop(backing)
	if err != nil {
		return nil, noDisk(fmt.Errorf("%w: it takes root and the kernel's loop devices (modprobe loop)", err))
	}
	defer device.Close()
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, fmt.Errorf("nethosts: where a disk is mounted: %w", err)
	}
	if err := unix.Mount(device.Name(), path, "ext4", unix.MS_NOATIME, ""); err != nil {
		_ = os.Remove(path)
		return nil, noDisk(fmt.Errorf("mounting %s: %w: it takes root and ext4 in the kernel", device.Name(), err))
	}
	d := &Disk{path: path, id: theGuard.newID(), gone: gone}
	if d.root, err = os.Open(path); err != nil {
		_ = unmount(path)
		return nil, fmt.Errorf("nethosts: a disk just mounted: %w", err)
	}
	_ = os.Remove(filepath.Join(path, "lost+found")) // an empty disk is empty
	return d, nil
}

func noDisk(why error) error {
	return &UnavailableError{What: "a disk of a host's own", Why: why.Error()}
}

// unnamedFile is a file in dir that goes with its last user.
func unnamedFile(dir string, size int64) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600)
	if err != nil {
		// Not every file system has unnamed files.
		if f, err = os.CreateTemp(dir, "disk-"); err != nil {
			return nil, err
		}
		if err := os.Remove(f.Name()); err != nil {
			f.Close()
			return nil, err
		}
	}
	if err := f.Truncate(size); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// format makes an ext4 file system in a file without a name. Nothing is left for
// the kernel to initialise later: that would be load on the disk from nowhere.
func format(f *os.File) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), formatting, fmt.Errorf("not done within %v", formatting))
	defer cancel()
	cmd := exec.CommandContext(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", "/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{f}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("mkfs.ext4 is missing: install the package e2fsprogs")
	}
	if err != nil {
		return fmt.Errorf("mkfs.ext4: %w: %s", errors.Join(err, context.Cause(ctx)), strings.TrimSpace(string(out)))
	}
	return nil
}

// Path is where the disk is mounted, for the harness and all its hosts.
func (d *Disk) Path() string { return d.path }

var errDiskClosed = fmt.Errorf("nethosts: the disk is closed: %w", fs.ErrClosed)

// Hang makes every write to the disk wait until [Disk.Resume]. It returns when
// what was being written is on the disk and the next write waits. A disk that
// hangs stays so.
func (d *Disk) Hang() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hung {
		return nil
	}
	err := d.hold()
	d.hung = err == nil
	return err
}

// Resume undoes [Disk.Hang]. Writes that waited go on.
func (d *Disk) Resume() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.hung {
		return nil
	}
	d.hung = false
	return d.release()
}

// Slow makes the disk hang for hold, work for gap, and so on until stop is
// called. A second call replaces the first one's times.
func (d *Disk) Slow(hold, gap time.Duration) (stop func() error, err error) {
	if hold <= 0 || gap <= 0 {
		return nil, fmt.Errorf("nethosts: a disk that hangs for %v and works for %v in turn: want both above 0", hold, gap)
	}
	d.endSlow()
	quit, done := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	end := func() { once.Do(func() { close(quit) }) }
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errDiskClosed
	}
	if err := d.hold(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	d.slow = func() { end(); <-ended }
	go func() {
		defer close(ended)
		done <- d.dutyCycle(hold, gap, quit)
		close(done)
	}()
	return func() error { end(); return <-done }, nil
}

// dutyCycle owns one hold when it is called and none when it returns.
func (d *Disk) dutyCycle(hold, gap time.Duration, quit <-chan struct{}) error {
	for {
		ended := rest(hold, quit)
		if err := d.locked(d.release); err != nil || ended {
			return err
		}
		if rest(gap, quit) {
			return nil
		}
		if err := d.locked(d.hold); err != nil {
			return err
		}
	}
}

// rest sleeps, and reports whether it was told to quit.
func rest(d time.Duration, quit <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-quit:
		return true
	}
}

func (d *Disk) locked(f func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return f()
}

// endSlow ends a duty cycle and waits for its last thaw.
func (d *Disk) endSlow() {
	d.mu.Lock()
	slow := d.slow
	d.slow = nil
	d.mu.Unlock()
	if slow != nil {
		slow()
	}
}

// hold freezes the disk for one more reason. The guard has the disk before it is
// frozen: there is no moment at which a crash could leave it so. d.mu is held.
func (d *Disk) hold() error {
	if d.closed {
		return errDiskClosed
	}
	if d.holds == 0 {
		if err := theGuard.hold(d.id, int(d.root.Fd())); err != nil {
			return fmt.Errorf("nethosts: hanging the disk %s: %w", d.path, err)
		}
		if err := freeze(int(d.root.Fd())); err != nil {
			_ = theGuard.drop(d.id)
			return fmt.Errorf("nethosts: hanging the disk %s: %w", d.path, err)
		}
	}
	d.holds++
	return nil
}

// release takes one reason away, and thaws the disk with the last. d.mu is held.
func (d *Disk) release() error {
	if d.holds == 0 {
		return nil
	}
	if d.holds--; d.holds > 0 {
		return nil
	}
	return d.thaw()
}

func (d *Disk) thaw() error {
	d.holds = 0
	err := thaw(int(d.root.Fd()))
	if err != nil {
		return fmt.Errorf("nethosts: resuming the disk %s: %w", d.path, err)
	}
	// Without a guard there is nothing to drop: thawed is what counts.
	_ = theGuard.drop(d.id)
	return nil
}

// free ends every fault of the disk: processes that wait for it go on, and can
// be ended.
func (d *Disk) free() error {
	d.endSlow()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.released {
		return nil
	}
	d.hung = false
	return d.thaw()
}

// Close thaws the disk, always, and takes it away with all that is on it. Files
// that processes still have open stay usable by them until they end. Closing
// again does nothing.
func (d *Disk) Close() error {
	d.mu.Lock()
	closed := d.closed
	d.closed = true
	d.mu.Unlock()
	if closed {
		return nil
	}
	err := d.free()
	d.mu.Lock()
	d.released = true
	err = errors.Join(err, d.root.Close(), unmount(d.path))
	d.mu.Unlock()
	if d.gone != nil {
		d.gone(d)
	}
	return err
}

// unmount takes a mount and its directory away, also from under those that use
// it.
func unmount(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EBUSY) {
		err = unix.Unmount(path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
	}
	if err != nil {
		return fmt.Errorf("nethosts: unmounting the disk %s: %w", path, err)
	}
	return os.Remove(path)
}
