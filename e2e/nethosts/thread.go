//go:build linux

package nethosts

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

var errNoReturn = errors.New("nethosts: the function given left its goroutine instead of returning")

// onThread runs f on a thread that belongs to nobody else. f may spoil the
// thread if it says so: a spoilt one ends with f, any other is used again.
func onThread(f func() (spoilt bool, err error)) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		spoilt, err := true, errNoReturn
		defer func() {
			if !spoilt {
				runtime.UnlockOSThread()
			}
			result <- err
		}()
		if unix.Gettid() == unix.Getpid() {
			// The first thread of a process never ends, and is what others see of it.
			// While this goroutine keeps it, f gets another.
			spoilt, err = false, onThread(f)
			return
		}
		spoilt, err = f()
	}()
	return <-result
}

// do runs f on a thread inside the namespace.
func (n *namespace) do(f func() error) error {
	return onThread(func() (bool, error) {
		if err := n.enter(); err != nil {
			return false, err
		}
		err := f()
		return inside.enter() != nil, err
	})
}

// doOnce is do on a thread that ends afterwards, whatever f did to it.
func (n *namespace) doOnce(f func() error) error {
	return onThread(func() (bool, error) {
		if err := n.enter(); err != nil {
			return false, err
		}
		return true, f()
	})
}

// newNamespace makes a network namespace and prepares it.
func newNamespace(prepare func() error) (*namespace, error) {
	var n *namespace
	err := onThread(func() (bool, error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return false, fmt.Errorf("nethosts: a new network namespace: %w", err)
		}
		var err error
		if n, err = currentNamespace(); err == nil {
			err = prepare()
		}
		return inside == nil || inside.enter() != nil, err
	})
	if err != nil && n != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, err
}

// hostSettings prepares the calling thread's namespace for a host.
func hostSettings() error {
	// The machine may prefer a congestion control that takes long to learn a new
	// delay, as BBR does. A machine that does not allow the first to namespaces
	// allows the second.
	for _, name := range []string{"cubic", "reno"} {
		if os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte(name), 0) == nil {
			break
		}
	}
	return noIPv6()
}

// noIPv6 keeps interfaces that the calling thread's namespace will get from
// talking on their own. The loopback keeps its ::1.
func noIPv6() error {
	err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	if errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
		return nil
	}
	return err
}
