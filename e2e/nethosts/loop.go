//go:build linux

package nethosts

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// attachLoop makes a loop device of a file. The device frees itself when its
// last user is gone: after a crash nobody has to.
func attachLoop(backing *os.File) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("a free loop device: %w", err)
		}
		device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		config := &unix.LoopConfig{Fd: uint32(backing.Fd())}
		config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
		err = unix.IoctlLoopConfigure(int(device.Fd()), config)
		if err == nil {
			return device, nil
		}
		device.Close()
		// Somebody else took the same free device: the next one.
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("configuring /dev/loop%d: %w", n, err)
		}
	}
}

// Numbers of ioctl(2) that package unix does not have.
const (
	fifreeze = 0xc0045877 // _IOWR('X', 119, int)
	fithaw   = 0xc0045878 // _IOWR('X', 120, int)
)

// freeze stops every write to the file system of fd, after it has written out
// what is under way. It is EBUSY where it is frozen already.
func freeze(fd int) error { return unix.IoctlSetInt(fd, fifreeze, 0) }

// thaw undoes freeze; a file system that is not frozen is thawed.
func thaw(fd int) error {
	if err := unix.IoctlSetInt(fd, fithaw, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
