//go:build linux

package nethosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// endings are the signals that ask a program to end: they are handed on.
var endings = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP}

// guardTime bounds the wait for disks to be thawed after everything is over.
const guardTime = 10 * time.Second

// goInside plays the part outside. It returns only if there can be no lab.
func goInside() error {
	// The kernel kills init when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g, err := startGuard()
	if err != nil {
		return err
	}
	o, err := startInit(partInit, g)
	g.passed()
	if err != nil {
		g.wait(guardTime)
		return err
	}
	status := o.wait()
	g.wait(guardTime)
	os.Exit(status)
	return nil
}

// outer is the process outside's view of init.
type outer struct {
	cmd      *exec.Cmd
	lifeline *os.File // init ends when it is closed, as it is by our end
	signals  chan os.Signal
}

// startInit starts init and returns when the namespaces are prepared. The calling
// thread must be locked until wait returned.
func startInit(part string, g *guardian) (*outer, error) {
	if missing := missingPrograms(); len(missing) > 0 {
		return nil, &MissingError{What: missing}
	}
	o := &outer{signals: make(chan os.Signal, 8)}
	signal.Notify(o.signals, endings...)
	report, err := o.start(part, g)
	if err == nil {
		err = o.prepared(report)
	}
	if err != nil {
		o.end()
		return nil, err
	}
	return o, nil
}

// start starts init: as root in plain namespaces, otherwise (or where root may
// not) as root of a user namespace.
func (o *outer) start(part string, g *guardian) (report *os.File, err error) {
	flags := uintptr(syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET)
	if os.Geteuid() == 0 {
		if report, err = o.startWith(part, flags, g); err == nil || !errors.Is(err, syscall.EPERM) {
			return report, err
		}
	}
	report, err = o.startWith(part, flags|syscall.CLONE_NEWUSER, g)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EINVAL) {
		return nil, &MissingError{What: []string{missingRoot(err)}}
	}
	return report, err
}

func (o *outer) startWith(part string, flags uintptr, g *guardian) (*os.File, error) {
	network, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("nethosts: own network namespace: %w", err)
	}
	defer network.Close()
	lifeline, ourLifeline, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("nethosts: %w", err)
	}
	defer lifeline.Close()
	report, theirReport, err := os.Pipe()
	if err != nil {
		ourLifeline.Close()
		return nil, fmt.Errorf("nethosts: %w", err)
	}
	defer theirReport.Close()
	// Through /proc, because the file may have been removed since.
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: os.Args,
		Env:   append(os.Environ(), partEnv+"="+part),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		ExtraFiles:  []*os.File{network, lifeline, theirReport}, // outsideFD, lifelineFD, reportFD
		SysProcAttr: attributes(flags),
	}
	if g != nil {
		g.pass(cmd)
	}
	if err := cmd.Start(); err != nil {
		ourLifeline.Close()
		report.Close()
		return nil, err
	}
	o.cmd, o.lifeline = cmd, ourLifeline
	return report, nil
}

func attributes(flags uintptr) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{
		Cloneflags: flags,
		Pdeathsig:  syscall.SIGKILL,
		// A group of its own: a terminal sends its signals to the whole group of the
		// one outside, which hands them on. They must not come twice.
		Setpgid: true,
	}
	if flags&syscall.CLONE_NEWUSER != 0 {
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return a
}

// prepared waits for init's report: what is missing, in JSON. A signal that asks to end
// is not handed on yet: it ends the wait, however long a command of init's hangs.
func (o *outer) prepared(report *os.File) error {
	defer report.Close()
	var text []byte
	var err error
	read := make(chan struct{})
	go func() { // ends with init
		defer close(read)
		text, err = io.ReadAll(report)
	}()
	select {
	case <-read:
	case s := <-o.signals:
		return fmt.Errorf("nethosts: %v while the new namespaces were prepared", s)
	}
	if err != nil {
		return fmt.Errorf("nethosts: report of the new namespaces: %w", err)
	}
	var missing []string
	if err := json.Unmarshal(text, &missing); err != nil {
		return fmt.Errorf("nethosts: the first process of the new namespaces ended without a report, with exit status %d", o.wait())
	}
	if len(missing) > 0 {
		return &MissingError{What: missing}
	}
	return nil
}

// wait hands signals on until init ends, and returns its exit status.
func (o *outer) wait() int {
	ended := make(chan error, 1)
	go func() { ended <- o.cmd.Wait() }()
	for {
		select {
		case s := <-o.signals:
			_ = o.cmd.Process.Signal(s) // too late is no error
		case <-ended:
			status := o.cmd.ProcessState.Sys().(syscall.WaitStatus)
			o.end()
			return exitStatus(status)
		}
	}
}

// end ends init, if there is one, and gives the signals back.
func (o *outer) end() {
	signal.Stop(o.signals)
	if o.cmd == nil {
		return
	}
	o.lifeline.Close()
	if o.cmd.ProcessState == nil {
		_ = o.cmd.Process.Kill()
		_ = o.cmd.Wait()
	}
	o.cmd = nil
}

// exitStatus is what a shell would make of it.
func exitStatus(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
