//go:build linux

package nethosts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// machine is what one sees from outside of a lab.
type machine map[string]bool

func look(t *testing.T) machine {
	t.Helper()
	m := machine{}
	for _, process := range glob("/proc/[0-9]*") {
		if s := readStat(process); s.state == "" || s.state == "Z" {
			continue
		}
		name, _ := os.ReadFile(process + "/comm")
		m[fmt.Sprintf("process %s %s", filepath.Base(process), name)] = true
		for _, kind := range []string{"net", "mnt", "pid", "user"} {
			if ns, err := os.Readlink(process + "/ns/" + kind); err == nil {
				m["namespace "+ns] = true
			}
		}
	}
	for _, path := range []string{"/proc/self/mountinfo", "/proc/net/dev", "/proc/net/tcp"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			key, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			if path == "/proc/self/mountinfo" {
				key = line
			}
			m[path+" "+key] = true
		}
	}
	ruleset, err := exec.Command("nft", "list", "ruleset").Output()
	if err != nil {
		t.Fatal(err)
	}
	m["ruleset "+string(ruleset)] = true
	for _, dir := range []string{os.TempDir(), "/run/netns", "/var/run/netns", "/dev/shm", "/dev/net", workRoot} {
		for _, path := range glob(dir + "/*") {
			m["file "+path] = true
		}
	}
	return m
}

// more is what m has and before had not.
func (m machine) more(before machine) []string {
	left := maps.Clone(m)
	maps.DeleteFunc(left, func(what string, _ bool) bool {
		return before[what] || strings.HasPrefix(what, "file "+os.TempDir()) && !strings.Contains(what, "quorumwise")
	})
	return slices.Sorted(maps.Keys(left))
}

// descendant follows first children: 1 is process 1 of the other namespaces, 2
// its harness.
func descendant(t *testing.T, pid, generation int) int {
	t.Helper()
	for range generation {
		found := 0
		for _, path := range glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) {
			text, _ := os.ReadFile(path)
			for _, child := range strings.Fields(string(text)) {
				if ns, err := os.Readlink("/proc/" + child + "/ns/pid"); err == nil && ns != ownNamespace("pid") {
					found, _ = strconv.Atoi(child)
				}
			}
		}
		if pid = found; pid == 0 {
			t.Fatal("no child in other namespaces")
		}
	}
	return pid
}

func ownNamespace(kind string) string {
	ns, _ := os.Readlink("/proc/self/ns/" + kind)
	return ns
}

// beyond lists of what there is while a lab is held all that is neither a process nor a
// namespace: nothing, or the lab has touched what is not its own.
func beyond(during []string) []string {
	return slices.DeleteFunc(slices.Clone(during), func(what string) bool {
		return strings.HasPrefix(what, "process ") || strings.HasPrefix(what, "namespace ")
	})
}

// ownOnly fails the test unless the lab that is held can be seen, in processes and namespaces of its
// own only.
func ownOnly(t *testing.T, during []string) {
	t.Helper()
	if len(during) < 8 {
		t.Fatalf("while the lab is held, only %q is seen of it: what is looked at is not enough", during)
	}
	if touched := beyond(during); len(touched) > 0 {
		t.Errorf("while the lab is held, outside of it there are %q: it has touched what is not its own", touched)
	}
}

// cleanSoon waits until there is nothing that was not there before; ended is when the lab's end began.
func cleanSoon(t *testing.T, before machine, ended time.Time) {
	t.Helper()
	for left := look(t).more(before); len(left) > 0; left = look(t).more(before) {
		if time.Since(ended) > soon {
			t.Fatalf("%v after the end there are %q", time.Since(ended), left)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("clean after %v", time.Since(ended))
}

func TestWhatIsNeitherProcessNorNamespaceIsOutsideOfALab(t *testing.T) {
	own := []string{"process 7 etcd\n", "process 8 sleep\n", "namespace net:[4026532000]", "namespace mnt:[4026532001]"}
	if got := beyond(own); len(got) > 0 {
		t.Errorf("%q is taken for something outside of the lab", got)
	}
	for _, planted := range []string{
		"ruleset table inet filter {\n}\n", "/proc/net/dev eth7", "/proc/self/mountinfo 36 35 0:32 / /mnt rw - tmpfs tmpfs rw\n",
		"file /run/netns/m1", "file /var/run/netns/m1", "file /dev/shm/x", "/proc/net/tcp 3",
	} {
		if got := beyond(append(slices.Clone(own), planted)); !slices.Equal(got, []string{planted}) {
			t.Errorf("%q is found to be outside of the lab; want %q", got, planted)
		}
	}
}

// Without this the tests below would pass a lab that touches the machine.
func TestWhatALabWouldDoOutsideIsSeen(t *testing.T) {
	Need(t)
	before := look(t)
	// A harness has mounts and a network of its own: nothing of this is seen outside of them.
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount("/run", unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	for _, err := range []error{
		os.Mkdir("/run/netns", 0o755), os.WriteFile("/run/netns/planted", nil, 0o644),
		ip("a test", nil, "link add planted0 type veth peer name planted1"),
		nft("a test", "table inet planted { }\n"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := errors.Join(ip("a test", nil, "link del planted0"), nft("a test", "delete table inet planted\n")); err != nil {
			t.Error(err)
		}
	})
	seen := beyond(look(t).more(before))
	for _, want := range []string{"ruleset ", "/proc/net/dev planted0", "/proc/self/mountinfo ", "file /run/netns/planted"} {
		if !slices.ContainsFunc(seen, func(what string) bool { return strings.HasPrefix(what, want) }) {
			t.Errorf("%q is not seen, only %q", want, seen)
		}
	}
}

// However a harness ends, nothing is left of it.
func TestNothingIsLeftOfAHarnessHoweverItEnds(t *testing.T) {
	Need(t)
	t.Setenv("TMPDIR", t.TempDir()) // other tests leave files of theirs in the common one
	for name, c := range map[string]struct {
		signal     syscall.Signal
		generation int
		group      bool // as a terminal does: to all processes of the group
	}{
		"interrupted":        {syscall.SIGINT, 0, true},
		"hung up":            {syscall.SIGHUP, 0, true},
		"outside killed":     {syscall.SIGKILL, 0, false},
		"outside terminated": {syscall.SIGTERM, 0, false},
		"outside quit":       {syscall.SIGQUIT, 0, false},
		"process 1 killed":   {syscall.SIGKILL, 1, false},
		"harness killed":     {syscall.SIGKILL, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := look(t)
			cmd, out := trial(t, "hold", func(cmd *exec.Cmd) { cmd.SysProcAttr.Setpgid = true })
			awaitReady(t, out)
			ownOnly(t, look(t).more(before))
			victim := descendant(t, cmd.Process.Pid, c.generation)
			if c.group {
				victim = -victim
			}
			if err := syscall.Kill(victim, c.signal); err != nil {
				t.Fatal(err)
			}
			died := time.Now()
			if got := status(cmd); got == 0 {
				t.Error("exit status 0 after a harness was killed")
			}
			cleanSoon(t, before, died)
		})
	}
}

// namespaces are those of a process.
func namespaces(pid int) (names []string) {
	for _, kind := range []string{"net", "mnt", "pid"} {
		if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind)); err == nil {
			names = append(names, "namespace "+ns)
		}
	}
	return names
}

// Labs of two harnesses have the same names and addresses. Neither the start of one nor its end,
// however it comes, is noticed by the other.
func TestTwoHarnessesAtOnceDoNotCollide(t *testing.T) {
	Need(t)
	t.Setenv("TMPDIR", t.TempDir())
	for _, end := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(end.String(), func(t *testing.T) {
			before := look(t)
			var cmds [2]*exec.Cmd
			var outs [2]*bufio.Reader
			var tell [2]io.WriteCloser
			for i := range cmds {
				cmds[i], outs[i] = trial(t, "twice", func(cmd *exec.Cmd) {
					cmd.SysProcAttr.Setpgid = true
					var err error
					if tell[i], err = cmd.StdinPipe(); err != nil {
						t.Fatal(err)
					}
				})
			}
			for _, out := range outs {
				awaitReady(t, out)
			}
			ownOnly(t, look(t).more(before))
			first := namespaces(descendant(t, cmds[0].Process.Pid, 1))
			if err := syscall.Kill(-cmds[0].Process.Pid, end); err != nil {
				t.Fatal(err)
			}
			ended := time.Now()
			if got := status(cmds[0]); got == 0 {
				t.Error("exit status 0 after a harness was ended by a signal")
			}
			for m := look(t); slices.ContainsFunc(first, func(ns string) bool { return m[ns] }); m = look(t) {
				if time.Since(ended) > soon {
					t.Fatalf("%v after the end of the first harness, one of its %q is there", time.Since(ended), first)
				}
				time.Sleep(10 * time.Millisecond)
			}
			for _, step := range []string{"use the lab again", "close it"} {
				if _, err := io.WriteString(tell[1], step+"\n"); err != nil {
					t.Fatalf("the second harness ended with the first: %s", remainder(outs[1]))
				}
				if step == "use the lab again" {
					awaitReady(t, outs[1])
					ownOnly(t, look(t).more(before))
				}
			}
			ended = time.Now()
			if got := status(cmds[1]); got != 0 {
				t.Errorf("exit status %d of the second harness: %s", got, remainder(outs[1]))
			}
			cleanSoon(t, before, ended)
		})
	}
}

func TestCloseLeavesNothingAndTwiceIsOnce(t *testing.T) {
	Need(t)
	t.Setenv("TMPDIR", t.TempDir()) // other tests leave files of theirs in the common one
	before := look(t)
	l, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.Host("a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Host("b")
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Start(Command{Path: "sleep", Args: []string{"1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	fault, err := l.Rate(100_000, Between(a, b)...)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := fault.Lift(); err != nil {
		t.Errorf("a fault is lifted after Close: %v", err)
	}
	if _, err := l.Drop(Between(a, b)...); err != errClosed {
		t.Errorf("a fault in a closed lab: %v, want %v", err, errClosed)
	}
	cleanSoon(t, before, time.Now())
	if _, err := l.Host("c"); err != errClosed {
		t.Errorf("a host of a closed lab: %v, want %v", err, errClosed)
	}
}
