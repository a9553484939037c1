//go:build linux

package nethosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// What init gets from the one outside.
const (
	lifelineFD = 4 // ends when the one outside does
	reportFD   = 5
)

// runInit is process 1 of the namespaces. It is not the harness, because process
// 1 has to bury every orphan, and a harness that did so would take away from
// os/exec the children that it waits for.
func runInit(part string) int {
	network, lifeline, report := os.NewFile(outsideFD, "network outside"), os.NewFile(lifelineFD, "lifeline"), os.NewFile(reportFD, "report")
	for _, fd := range []int{outsideFD, lifelineFD, reportFD} {
		syscall.CloseOnExec(fd)
	}
	go func() {
		_, _ = io.Copy(io.Discard, lifeline)
		os.Exit(1)
	}()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, endings...)
	missing := prepare()
	err := json.NewEncoder(report).Encode(missing)
	if err != nil || len(missing) > 0 || part == partProbe {
		return 1
	}
	report.Close()
	pid, err := startHarness(network)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		for s := range signals {
			_ = syscall.Kill(pid, s.(syscall.Signal))
		}
	}()
	return bury(pid)
}

func startHarness(network *os.File) (int, error) {
	defer network.Close()
	files := []uintptr{0, 1, 2, network.Fd()}
	guard, err := strconv.Atoi(os.Getenv(guardSockEnv))
	_ = os.Unsetenv(guardSockEnv) // of a variable that is there twice, the first counts
	env := append(os.Environ(), partEnv+"="+partHarness)
	if err == nil {
		// Whoever else holds it, a program on a host for one, keeps the guard waiting.
		syscall.CloseOnExec(guard)
		defer syscall.Close(guard)
		env = append(env, guardSockEnv+"="+strconv.Itoa(len(files)))
		files = append(files, uintptr(guard))
	}
	pid, err := syscall.ForkExec("/proc/self/exe", os.Args, &syscall.ProcAttr{Env: env, Files: files})
	if err != nil {
		return 0, fmt.Errorf("nethosts: start of %s inside the new namespaces: %w", os.Args[0], err)
	}
	return pid, nil
}

// bury reaps all children until the harness is one of them, and returns its
// status. With the return of process 1 everything else ends.
func bury(harness int) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1
		case pid == harness:
			return exitStatus(status)
		}
	}
}
