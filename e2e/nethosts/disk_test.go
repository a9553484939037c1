//go:build linux

package nethosts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() { Register("appender", appender) }

// appender appends to the file named and makes every piece durable, and prints
// a line for each: how long it took.
func appender() int {
	f, err := os.OpenFile(os.Args[1], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for {
		began := time.Now()
		_, err := f.WriteString("x")
		if err == nil {
			err = unix.Fdatasync(int(f.Fd()))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(time.Since(began).Nanoseconds())
		time.Sleep(5 * time.Millisecond)
	}
}

// diskLab is a lab of one host with a disk, or the test is skipped.
func diskLab(t *testing.T) (*Lab, *Host, *Disk) {
	t.Helper()
	l, h := oneHost(t)
	d, err := h.Disk(32 << 20)
	skipUnavailable(t, err)
	return l, h, d
}

// oneHost is a lab of one host, closed with the test.
func oneHost(t *testing.T) (*Lab, *Host) {
	t.Helper()
	Need(t)
	l, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close of the lab: %v", err)
		}
	})
	h, err := l.Host("m1")
	if err != nil {
		t.Fatal(err)
	}
	return l, h
}

// What the machine lacks for disks skips a scenario that needs them, so it has to be told from
// mistakes.
func TestDiskThatTheMachineCannotHaveIsUnavailableWithTheWayOut(t *testing.T) {
	old := theGuard
	defer func() { theGuard = old }()
	bin := t.TempDir()
	for _, row := range []struct {
		name  string
		guard int    // its socket
		mkfs  string // "": there is none
		path  string
		size  int64
		none  bool // the machine cannot
		says  string
	}{
		{"nobody would thaw it", -1, "", t.TempDir() + "/d", minDisk, true, "call nethosts.Enter first"},
		{"there is no mkfs", 0, "", t.TempDir() + "/d", minDisk, true, "install the package e2fsprogs"},
		{"mkfs fails", 0, "#!/bin/sh\necho no such feature; exit 1\n", t.TempDir() + "/d", minDisk, true, "no such feature"},
		{"too small", 0, "", t.TempDir() + "/d", minDisk - 1, false, "want at least"},
		{"nowhere", 0, "", bin + "/nowhere/d", minDisk, false, "the file under a disk"},
	} {
		theGuard = &guard{socket: row.guard}
		_ = os.Remove(bin + "/mkfs.ext4")
		if row.mkfs != "" {
			if err := os.WriteFile(bin+"/mkfs.ext4", []byte(row.mkfs), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", bin)
		_, err := newDisk(row.path, row.size, nil)
		if u := new(UnavailableError); err == nil || errors.As(err, &u) != row.none || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %v; want an error that says %q; that the machine cannot: %v", row.name, err, row.says, row.none)
		}
	}
}

func skipUnavailable(t *testing.T, err error) {
	t.Helper()
	var u *UnavailableError
	if errors.As(err, &u) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// writes are the times of the appender's writes.
type writes chan time.Duration

// append starts the appender on a disk and waits for its first write.
func startAppender(t *testing.T, h *Host, d *Disk) writes {
	t.Helper()
	out, in := io.Pipe()
	t.Cleanup(func() { out.Close() })
	_, err := h.StartSelf("appender", Command{Args: []string{filepath.Join(d.Path(), "log")}, Stdout: in, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	w := make(writes, 10000)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var took time.Duration
			_, _ = fmt.Sscan(lines.Text(), &took)
			w <- took
		}
	}()
	w.next(t)
	return w
}

// next waits for one more write.
func (w writes) next(t *testing.T) time.Duration {
	t.Helper()
	select {
	case took := <-w:
		return took
	case <-time.After(soon):
		t.Fatalf("no write came back within %v", soon)
		return 0
	}
}

// during collects the writes that come back within d.
func (w writes) during(d time.Duration) []time.Duration {
	var all []time.Duration
	for end := time.After(d); ; {
		select {
		case took := <-w:
			all = append(all, took)
		case <-end:
			return all
		}
	}
}

// drain takes what came back before, until nothing comes any more: on a busy machine the
// news of it take their time.
func (w writes) drain() {
	for end := time.Now().Add(soon); len(w.during(300*time.Millisecond)) > 0 && time.Now().Before(end); {
	}
}

func TestWritesWaitWhileADiskHangsAndReturnAfter(t *testing.T) {
	_, h, d := diskLab(t)
	w := startAppender(t, h, d)
	for range 2 { // twice: a resumed disk can hang again
		if err := d.Hang(); err != nil {
			t.Fatal(err)
		}
		if err := d.Hang(); err != nil {
			t.Errorf("Hang of a hung disk: %v, want nothing to happen", err)
		}
		w.drain()
		if n := len(w.during(400 * time.Millisecond)); n > 0 {
			t.Errorf("%d writes came back from a hung disk, want none", n)
		}
		if _, err := os.ReadFile(filepath.Join(d.Path(), "log")); err != nil {
			t.Errorf("reading from a hung disk what is in memory: %v", err)
		}
		if err := d.Resume(); err != nil {
			t.Fatal(err)
		}
		if took := w.next(t); took < 400*time.Millisecond {
			t.Errorf("the first write after Resume took %v, want it to have waited since Hang", took)
		}
		w.next(t)
	}
	if err := d.Resume(); err != nil {
		t.Errorf("Resume of a disk that works: %v, want nothing to happen", err)
	}
}

func TestSlowDiskHangsInTurns(t *testing.T) {
	_, h, d := diskLab(t)
	w := startAppender(t, h, d)
	stop, err := d.Slow(150*time.Millisecond, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	slow := 0
	for _, took := range w.during(2 * time.Second) {
		if took > 100*time.Millisecond {
			slow++
		}
	}
	if slow < 5 || slow > 15 { // a busy machine adds some of its own
		t.Errorf("%d writes waited for more than 100ms in 2s, want about 10: one a turn", slow)
	}
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := stop(); err != nil {
		t.Errorf("stop again: %v, want nothing to happen", err)
	}
	w.during(300 * time.Millisecond) // what came back before
	best := 0
	for i := 0; i < 4 && best < 20; i++ { // of them, as the machine may be busy
		best = max(best, len(w.during(500*time.Millisecond)))
	}
	if best < 20 {
		t.Errorf("%d writes in 500ms at best after stop, want the disk as fast as before", best)
	}
}

func TestDiskThatHangsStaysSoWhenASlowTimeEnds(t *testing.T) {
	_, h, d := diskLab(t)
	w := startAppender(t, h, d)
	stop, err := d.Slow(20*time.Millisecond, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Hang(); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	w.drain()
	if n := len(w.during(200 * time.Millisecond)); n > 0 {
		t.Errorf("%d writes came back from a hung disk, want none: only Resume ends a hang", n)
	}
}

// loopOf is the loop device under a disk.
func loopOf(t *testing.T, d *Disk) string {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(d.Path(), &st); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/sys/dev/block/%d:%d/loop/backing_file", unix.Major(st.Dev), unix.Minor(st.Dev))
}

// gone waits until a file is not there any more.
func gone(path string, atMost time.Duration) bool {
	for end := time.Now().Add(atMost); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(path); err != nil {
			return true
		}
	}
	return false
}

func TestClosedDiskLeavesNothingAlsoWhenItHangsAndIsUsed(t *testing.T) {
	for name, closing := range map[string]func(l *Lab, h *Host, d *Disk) error{
		"disk": func(_ *Lab, _ *Host, d *Disk) error { return d.Close() },
		"host": func(_ *Lab, h *Host, _ *Disk) error { return h.Remove() },
		"lab":  func(l *Lab, _ *Host, _ *Disk) error { return l.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			l, h, d := diskLab(t)
			w := startAppender(t, h, d)
			device := loopOf(t, d)
			if _, err := d.Slow(30*time.Millisecond, 10*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if err := d.Hang(); err != nil {
				t.Fatal(err)
			}
			w.during(50 * time.Millisecond)
			began := time.Now()
			if err := closing(l, h, d); err != nil {
				t.Errorf("closing the %s: %v", name, err)
			}
			if took := time.Since(began); took > soon {
				t.Errorf("closing the %s took %v, want it not to wait for the disk", name, took)
			}
			if _, err := os.Stat(d.Path()); err == nil {
				t.Errorf("%s is there after the %s was closed, want it removed", d.Path(), name)
			}
			if err := d.Hang(); err == nil {
				t.Error("a closed disk hangs, want an error")
			}
			if err := d.Close(); err != nil {
				t.Errorf("closing a closed disk: %v, want nothing to happen", err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if !gone(device, soon) {
				t.Errorf("%s is there after the lab was closed, want the loop device free", device)
			}
		})
	}
}

// TestVictim is what the next test crashes: another harness with a hung disk
// under a process that writes.
func TestVictim(t *testing.T) {
	if os.Getenv("QUORUMWISE_LAB_VICTIM") == "" {
		return // by itself there is nothing to test
	}
	_, h, d := diskLab(t)
	w := startAppender(t, h, d)
	if err := d.Hang(); err != nil {
		t.Fatal(err)
	}
	w.during(50 * time.Millisecond)
	fmt.Println("victim", loopOf(t, d), h.equipment.groups.groups[0].tree.dir)
	time.Sleep(time.Minute)
}

// A process that writes to a hung disk cannot be killed: without the guard the
// namespaces, the mount and the loop device would stay for ever.
func TestCrashedHarnessLeavesNothingThoughADiskHung(t *testing.T) {
	Need(t)
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestVictim$", "-test.v")
			cmd.Env = append(os.Environ(), "QUORUMWISE_LAB_VICTIM=1")
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var told []string
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if told = strings.Fields(lines.Text()); len(told) > 0 && told[0] == "victim" {
					break
				}
				told = nil
			}
			if len(told) != 3 {
				_ = cmd.Process.Kill()
				t.Fatalf("the other harness ended with %v before its disk hung", cmd.Wait())
			}
			if _, err := os.Stat(told[1]); err != nil {
				t.Errorf("before the crash: %v, want the loop device of the other harness", err)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			for _, path := range told[1:] {
				if !gone(path, soon) {
					t.Errorf("%v after %v %s is there, want nothing left", soon, sig, path)
				}
			}
			_ = cmd.Wait()
		})
	}
}

func TestDiskOfASizeThatCannotBeIsRefused(t *testing.T) {
	if _, err := newDisk(filepath.Join(t.TempDir(), "disk"), 1<<20, nil); err == nil || !strings.Contains(err.Error(), "1048576") {
		t.Errorf("got %v, want an error that names the size and the least", err)
	}
}
