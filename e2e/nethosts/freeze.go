package nethosts

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var errEnded = errors.New("it has ended")

// Freeze stops the process and its children where they are, as SIGSTOP does, and
// returns when they have stopped. Their connections stay open, and their kernel
// goes on to acknowledge what it receives.
func (p *Process) Freeze() error {
	if !p.signal(-p.Pid(), syscall.SIGSTOP) {
		return p.failed("freeze", errEnded)
	}
	p.setFrozen(true)
	if err := p.awaitStop(); err != nil {
		return p.failed("freeze", err)
	}
	p.host.lab.logChange("process frozen", "host", p.host.name, "program", p.name, "pid", p.Pid())
	return nil
}

// Thaw lets a frozen process and its children go on.
func (p *Process) Thaw() error {
	if !p.signal(-p.Pid(), syscall.SIGCONT) {
		return p.failed("thaw", errEnded)
	}
	p.setFrozen(false)
	p.host.lab.logChange("process thawed", "host", p.host.name, "program", p.name, "pid", p.Pid())
	return nil
}

func (p *Process) setFrozen(frozen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = frozen
}

func (p *Process) failed(what string, err error) error {
	return fmt.Errorf("nethosts: %s: %s of %s (pid %d): %w", p.host.name, what, p.name, p.Pid(), err)
}

// awaitStop waits until no process of the group runs.
func (p *Process) awaitStop() error {
	deadline := time.Now().Add(freezing)
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		state := processState(p.Pid())
		switch {
		case state == "T" || state == "t":
			return nil
		case state == "" || state == "Z" || state == "X":
			return errEnded
		case time.Now().After(deadline):
			return fmt.Errorf("still in state %s %v after SIGSTOP", state, freezing)
		}
		time.Sleep(pause)
	}
}

// processState is the letter of the process's state in /proc, "" if there is no
// such process.
func processState(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The name stands in parentheses and may hold anything.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	state, _, _ := strings.Cut(rest, " ")
	return state
}
