//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
)

// machine is what can be left over of a run: processes, namespaces and mounts. The test has a
// /proc and mounts of its own, so that nobody else's are among them.
type machine map[string]bool

func look(t *testing.T) machine {
	t.Helper()
	m := machine{}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		stat, err := os.ReadFile(process + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			continue
		}
		m["process "+filepath.Base(process)] = true
		for _, kind := range []string{"net", "mnt", "pid", "user"} {
			if ns, err := os.Readlink(process + "/ns/" + kind); err == nil {
				m["namespace "+ns] = true
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for mount := range strings.Lines(string(mounts)) {
		m["mount "+mount] = true
	}
	return m
}

// more is what m has and before had not.
func (m machine) more(before machine) (what []string) {
	for w := range m {
		if !before[w] {
			what = append(what, w)
		}
	}
	return what
}

// whole is the command as a user runs it, in a process group as a shell makes one.
type whole struct {
	cmd   *exec.Cmd
	out   bytes.Buffer // to be read when it has ended
	ended chan struct{}
}

func startWhole(t *testing.T, args ...string) *whole {
	t.Helper()
	w := &whole{cmd: exec.Command("/proc/self/exe"), ended: make(chan struct{})}
	w.cmd.Args = append([]string{"partition"}, args...)
	w.cmd.Env = append(os.Environ(), wholeEnv+"=1")
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w.cmd.Stdout, w.cmd.Stderr = &w.out, &w.out
	w.cmd.WaitDelay = 10 * time.Second
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		defer close(w.ended)
		_ = w.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // too late is no error
		<-w.ended
	})
	return w
}

// await waits until the log has a line; the command goes on meanwhile.
func (w *whole) await(t *testing.T, log, line string) {
	t.Helper()
	const patience = 2 * time.Minute
	for began := time.Now(); ; {
		text, _ := os.ReadFile(log)
		if strings.Contains(string(text), line) {
			return
		}
		select {
		case <-w.ended:
			t.Fatalf("it ended before it did %q: %v\n%s", line, w.cmd.ProcessState, w.out.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Since(began) > patience {
			t.Fatalf("it did not %q within %v; its log:\n%s", line, patience, text)
		}
	}
}

// signal sends what a terminal would, to the whole group, and gives the exit status.
func (w *whole) signal(t *testing.T, s syscall.Signal) int {
	t.Helper()
	if err := syscall.Kill(-w.cmd.Process.Pid, s); err != nil {
		t.Fatal(err)
	}
	const patience = 30 * time.Second
	select {
	case <-w.ended:
		return w.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("%v after %v it still runs", patience, s)
		return 0
	}
}

// etcdServer is a server built where there is a network.
func etcdServer(t *testing.T) (path string) {
	t.Helper()
	err := nethosts.Outside(func() (err error) {
		path, err = realetcd.Build(t.Context(), "")
		return err
	})
	if _, ok := errors.AsType[*nethosts.UnavailableError](err); ok {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The whole command, on real hosts, is ended while a member is cut off: nothing is left of it, and
// after Ctrl-C there is a report.
func TestNothingIsLeftOfARunThatIsEndedInTheMiddle(t *testing.T) {
	nethosts.Need(t)
	etcd := etcdServer(t)
	for _, row := range []struct {
		signal   syscall.Signal
		status   int
		reported bool
	}{
		{syscall.SIGINT, statusInterrupted, true},
		{syscall.SIGTERM, statusInterrupted, true},
		{syscall.SIGKILL, -1, false},
	} {
		t.Run(row.signal.String(), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "report")
			before := look(t)
			w := startWhole(t, "run", "follower-cut-3-sidecar", "--seed", "7", "--etcd", etcd, "--report", dir)
			w.await(t, logPath(dir), "msg=cut ")
			if during := look(t).more(before); len(during) < 20 {
				t.Fatalf("while three members run, only %q is seen of them: what is looked at is not enough", during)
			}
			if got := w.signal(t, row.signal); got != row.status {
				t.Errorf("exit status %d, want %d; it said:\n%s", got, row.status, w.out.String())
			}
			if row.reported {
				interrupted(t, dir, w.out.String())
			}
			const soon = 10 * time.Second
			ended := time.Now()
			for left := look(t).more(before); len(left) > 0; left = look(t).more(before) {
				if time.Since(ended) > soon {
					t.Fatalf("%v after the end there are %q", soon, left)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// interrupted fails the test unless the report says that the run was, and all of it is there.
func interrupted(t *testing.T, dir, out string) {
	t.Helper()
	const why = "interrupted: 1 of 1 scenarios were not played"
	if run := readReport(t, dir); run.Ended != why || run.Seed != 7 || len(run.Scenarios) != 0 {
		t.Errorf("the report is of %d scenarios with seed %d, ended %q; want none, seed 7, %q", len(run.Scenarios), run.Seed, run.Ended, why)
	}
	for _, name := range []string{report.PageName, report.JSONName, report.JUnitName} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s is not in the report, or empty (%v)", name, err)
		}
	}
	if want := why + "; everything is stopped and removed"; !strings.Contains(out, want) {
		t.Errorf("it does not say %q:\n%s", want, out)
	}
}
