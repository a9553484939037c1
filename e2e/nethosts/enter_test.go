//go:build linux

package nethosts

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// trial starts this binary as a harness of its own, which does what its name says
// in main_test.go. What this test runs in is the outside for it.
func trial(t *testing.T, name string, set func(*exec.Cmd)) (cmd *exec.Cmd, out *bufio.Reader) {
	t.Helper()
	Need(t)
	cmd = exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "QUORUMWISE_LAB_TRIAL="+name)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if set != nil {
		set(cmd)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	cmd.Stdout, cmd.Stderr = w, w
	err = startUncovered(cmd)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd, bufio.NewReader(r)
}

// startUncovered starts a process to which this lab's /proc hides nothing: the
// kernel does not let others than root mount a /proc that would show more than
// the one they have.
func startUncovered(cmd *exec.Cmd) error {
	return onThread(func() (bool, error) {
		if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
			return false, err
		}
		if err := unix.Unmount(workRoot, unix.MNT_DETACH); err != nil {
			return true, err
		}
		return true, cmd.Start()
	})
}

func awaitReady(t *testing.T, out *bufio.Reader) {
	t.Helper()
	for {
		line, err := out.ReadString('\n')
		if line == "ready\n" {
			return
		}
		if err != nil {
			t.Fatalf("the other harness ended before it was ready: %v", err)
		}
		t.Log(strings.TrimSpace(line))
	}
}

func status(cmd *exec.Cmd) int {
	_ = cmd.Wait()
	return exitStatus(cmd.ProcessState.Sys().(syscall.WaitStatus))
}

func remainder(out *bufio.Reader) string {
	text, _ := io.ReadAll(out)
	return string(text)
}

func TestExitStatusPassesThrough(t *testing.T) {
	cmd, out := trial(t, "status", nil)
	if got := status(cmd); got != 7 {
		t.Errorf("exit status %d, want the harness's own 7; output: %s", got, remainder(out))
	}
}

func TestSignalsReachTheHarnessOnce(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		// A terminal signals the whole process group.
		cmd, out := trial(t, "signal", func(cmd *exec.Cmd) { cmd.SysProcAttr.Setpgid = true })
		awaitReady(t, out)
		if err := syscall.Kill(-cmd.Process.Pid, s); err != nil {
			t.Fatal(err)
		}
		if got := status(cmd); got != 3 {
			t.Errorf("%v: exit status %d, want the 3 of a harness that got it once; output: %s", s, got, remainder(out))
		}
	}
}

// A command that hangs must not make a harness that cannot be interrupted.
func TestSignalEndsAHarnessThatIsStillPreparing(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(bin+"/nft", []byte("#!/bin/sh\ntouch "+bin+"/hangs\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd, out := trial(t, "lab", func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH")) })
	awaitFile(t, bin+"/hangs")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan int, 1)
	go func() { ended <- status(cmd) }()
	select {
	case got := <-ended:
		if text := remainder(out); got != 2 || !strings.Contains(text, "terminated while the new namespaces were prepared") {
			t.Errorf("exit status %d, %q; want 2 and what has ended it", got, text)
		}
	case <-time.After(15 * time.Second):
		t.Fatal("it does not end")
	}
}

func TestOrphansAreBuriedAndOwnChildrenAreNotStolen(t *testing.T) {
	cmd, out := trial(t, "orphan", nil)
	if got := status(cmd); got != 0 {
		t.Errorf("exit status %d: %s", got, remainder(out))
	}
}

// nobody makes the other harness one without root.
func nobody(cmd *exec.Cmd) {
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	cmd.Dir = "/"
}

func TestOutsideNeedsRoot(t *testing.T) {
	cmd, out := trial(t, "outside", nobody)
	if got, text := status(cmd), remainder(out); got != 0 || !strings.Contains(text, "run as root, or fetch what is needed before") {
		t.Errorf("exit status %d, %q; want an UnavailableError with the way out", got, text)
	}
}

func TestNothingIsMissingWhereThereIsALab(t *testing.T) {
	for who, set := range map[string]func(*exec.Cmd){"root": nil, "nobody": nobody} {
		_, out := trial(t, "missing", set)
		// Outside, then inside what Enter says too.
		if got := remainder(out); got != "<nil>\n<nil>\n<nil>\n" {
			t.Errorf("%s: Missing and Enter say %q, want nothing", who, got)
		}
	}
}

func TestLabWithoutRootWhereUserNamespacesWork(t *testing.T) {
	cmd, out := trial(t, "lab", nobody)
	if got := status(cmd); got != 0 {
		t.Errorf("exit status %d: %s", got, remainder(out))
	}
}

// jail takes even user namespaces away: the kernel grants none to a process
// whose root directory is not that of its mounts.
func jail(t *testing.T) func(*exec.Cmd) {
	Need(t)
	root := t.TempDir()
	if err := unix.Mount("/", root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(root, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return func(cmd *exec.Cmd) {
		nobody(cmd)
		cmd.SysProcAttr.Chroot = root
	}
}

func TestMissingPermissionIsNamedWithTheWayOut(t *testing.T) {
	_, out := trial(t, "missing", jail(t))
	lines := strings.Split(strings.TrimSpace(remainder(out)), "\n")
	if len(lines) != 2 || lines[0] != lines[1] {
		t.Fatalf("Missing and Enter say %q, want the same of both", lines)
	}
	for _, want := range []string{"permission to make namespaces", "operation not permitted", "run as root", "--privileged", "user.max_user_namespaces"} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("%q does not say %q", lines[0], want)
		}
	}
}

func TestTestsThatNeedALabAreSkippedOrFailAsToldWithTheReason(t *testing.T) {
	for _, c := range []struct {
		flag, env string
		status    int
		verdict   string
	}{
		{"-lab=", "", 0, "--- SKIP"},
		{"-lab=required", "", 1, "--- FAIL"},
		{"", "QUORUMWISE_LAB=required", 1, "--- FAIL"},
	} {
		inJail := jail(t)
		cmd, out := trial(t, "", func(cmd *exec.Cmd) {
			inJail(cmd)
			cmd.Args = slices.DeleteFunc([]string{"test", "-test.run=^TestTwoLabsDoNotMeet$", "-test.v", c.flag}, func(s string) bool { return s == "" })
			cmd.Env = append(cmd.Env, c.env)
		})
		got, text := status(cmd), remainder(out)
		if got != c.status || !strings.Contains(text, c.verdict) || !strings.Contains(text, "run as root") {
			t.Errorf("%s %s: status %d, want %d and %q with the reason; output:\n%s", c.flag, c.env, got, c.status, c.verdict, text)
		}
	}
}

func TestMissingCommandsAreNamedWithTheirPackages(t *testing.T) {
	old := sbin
	defer func() { sbin = old }()
	sbin = nil
	t.Setenv("PATH", t.TempDir())
	err := &MissingError{What: missingPrograms()}
	for _, want := range []string{"the command ip: install the package iproute2", "the command nft: install the package nftables", "apt-get install nftables"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if err := ip("m1", nil, "link show"); err == nil || !strings.Contains(err.Error(), "m1: ip") {
		t.Errorf("ip without ip: %v", err)
	}
}

func TestCommandThatHangsIsToldInsteadOfWaitedFor(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(bin+"/nft", []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	old := toolTime
	defer func() { toolTime = old }()
	toolTime = 50 * time.Millisecond
	if err := nft("the switch", "list ruleset"); err == nil || !strings.Contains(err.Error(), "the switch: ") || !strings.Contains(err.Error(), "did not end within 50ms") {
		t.Errorf("got %v, want an error that names the command and says that it hangs", err)
	}
}

func TestMissingFeatureIsNamedWithTheWayOut(t *testing.T) {
	Need(t)
	old := features
	defer func() { features = old }()
	features = append(slices.Clone(old), feature{"warp in the kernel", "a kernel with CONFIG_WARP", func() error {
		return nft("a trial", "table warp x { }\n")
	}})
	missing := missingFeatures()
	if len(missing) != 1 || !strings.Contains(missing[0], "warp in the kernel (nethosts: a trial: ") || !strings.HasSuffix(missing[0], ": a kernel with CONFIG_WARP") {
		t.Errorf("missing: %q, want only what the kernel has not, what nft said, and the way out", missing)
	}
}

func TestOutsideIsAnotherNetwork(t *testing.T) {
	Need(t)
	links := func() string {
		text, err := os.ReadFile("/proc/thread-self/net/dev")
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	l := ForTest(t, Config{})
	if got := links(); !strings.Contains(got, l.bridge+":") {
		t.Fatalf("the switch is not among the harness's own links: %s", got)
	}
	err := Outside(func() error {
		if got := links(); strings.Contains(got, l.bridge+":") {
			t.Errorf("the switch is seen outside: %s", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
