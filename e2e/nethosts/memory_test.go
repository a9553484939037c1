//go:build linux

package nethosts

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	Register("reader", reader)
	Register("hoarder", hoarder)
}

// reader writes a file of 48 MiB, reads it, and prints how much of it is in the
// page cache then, in bytes.
func reader() int {
	if err := cached(os.Args[1], 48<<20); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func cached(path string, size int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for range size >> 20 {
		if _, err := f.Write(piece); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, io.NewSectionReader(f, 0, int64(size))); err != nil {
		return err
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	pages := make([]byte, size/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(size), uintptr(unsafe.Pointer(&pages[0])))
	if errno != 0 {
		return errno
	}
	there := 0
	for _, p := range pages {
		there += int(p & 1)
	}
	fmt.Println(there * os.Getpagesize())
	return nil
}

// hoarder takes 64 MiB of memory and prints how long it took.
func hoarder() int {
	began := time.Now()
	hoard := make([]byte, 64<<20)
	for i := 0; i < len(hoard); i += os.Getpagesize() {
		hoard[i] = 1
	}
	fmt.Println(time.Since(began).Nanoseconds())
	return 0
}

// number runs a program on a host and returns the number that it prints.
func number(t *testing.T, h *Host, program string, args ...string) int64 {
	t.Helper()
	var out bytes.Buffer
	p, err := h.StartSelf(program, Command{Args: args, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		t.Fatalf("%s does not end within a minute: want it slowed down and not stopped", program)
	}
	var n int64
	if _, err := fmt.Sscan(out.String(), &n); err != nil || p.Err() != nil {
		t.Fatalf("%s ended with %v and said %q, want it alive", program, p.Err(), out.String())
	}
	return n
}

// cachedMost is how much of a file of 48 MiB stays in the page cache, at best: the kernel of a
// machine that is short of memory takes some back, from any host and at any time.
func cachedMost(t *testing.T, h *Host, file string) (most int64) {
	t.Helper()
	for n := 0; n < 3 && most < 48<<20; n++ {
		most = max(most, number(t, h, "reader", file))
	}
	return most
}

func TestSqueezedHostLosesItsPageCacheAndIsNotKilled(t *testing.T) {
	_, h := oneHost(t)
	d, err := h.Disk(128 << 20)
	skipUnavailable(t, err)
	file := filepath.Join(d.Path(), "file")
	if free := cachedMost(t, h, file); free != 48<<20 {
		t.Errorf("without a limit %d bytes of 48 MiB are cached, want all", free)
	}
	limit, err := h.LimitMemory(32 << 20)
	skipUnavailable(t, err)
	if squeezed := number(t, h, "reader", file); squeezed > 32<<20 {
		t.Errorf("with 32 MiB of memory %d bytes of a file are cached, want no more than there is memory", squeezed)
	}
	if took := time.Duration(number(t, h, "hoarder")); took < 200*time.Millisecond {
		t.Errorf("64 MiB were had in %v with 32 MiB of memory, want it to take long", took)
	}
	if err := limit.Lift(); err != nil {
		t.Fatal(err)
	}
	if free := cachedMost(t, h, file); free != 48<<20 {
		t.Errorf("after the limit %d bytes of 48 MiB are cached, want all", free)
	}
	if _, err := h.LimitMemory(32); err == nil || !strings.Contains(err.Error(), "32") {
		t.Errorf("a limit of 32 bytes: got %v, want an error that names it", err)
	}
}
