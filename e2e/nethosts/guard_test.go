//go:build linux

package nethosts

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// The guard holds what it was told to until it is told otherwise or the
// harness's end is closed.
func TestGuardHoldsDescriptorsUntilItIsToldOtherwise(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); guardLoop(ends[0]) }()
	g := &guard{socket: ends[1]}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	for _, id := range []string{g.newID(), g.newID(), "1"} { // the last one again
		if err := g.hold(id, pipe[1]); err != nil {
			t.Fatal(err)
		}
	}
	unix.Close(pipe[1])
	closed := func() bool {
		n, err := unix.Read(pipe[0], make([]byte, 1))
		return n == 0 && !errors.Is(err, unix.EAGAIN)
	}
	if err := g.drop("1"); err != nil {
		t.Fatal(err)
	}
	if closed() {
		t.Error("the guard let both go, want only the one that it was told to")
	}
	if err := g.drop("2"); err != nil {
		t.Fatal(err)
	}
	if !closed() {
		t.Error("the guard still holds a descriptor that it was told to drop")
	}
	if err := g.drop("3"); err != nil {
		t.Errorf("dropping what it never had: %v, want nothing to happen", err)
	}
	unix.Close(ends[1])
	<-ended
	unix.Close(ends[0])
}

func TestGuardThatIsGoneIsToldBeforeADiskHangs(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[1])
	unix.Close(ends[0])
	g := &guard{socket: ends[1]}
	if err := g.hold("1", 0); err == nil {
		t.Error("got no error, want one: the disk would stay frozen after a crash")
	}
	if err := (&guard{socket: -1}).hold("1", 0); !errors.Is(err, errNoGuard) {
		t.Errorf("got %v, want errNoGuard", err)
	}
}
