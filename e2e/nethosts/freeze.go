//go:build linux

package nethosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var errEnded = errors.New("it has ended")

// Freeze stops the process and its children where they are, by SIGSTOP, and
// returns when none of their threads runs. The connections stay open, and the
// kernel goes on to acknowledge what it receives.
func (p *Process) Freeze() error {
	if !p.signal(-p.Pid(), syscall.SIGSTOP) {
		return p.failed("freeze", errEnded)
	}
	p.setFrozen(true)
	if err := p.awaitStop(); err != nil {
		return p.failed("freeze", err)
	}
	p.host.lab.log.Info("process frozen", "host", p.host.name, "program", p.name, "pid", p.Pid())
	return nil
}

// Thaw lets a frozen process and its children go on.
func (p *Process) Thaw() error {
	if !p.signal(-p.Pid(), syscall.SIGCONT) {
		return p.failed("thaw", errEnded)
	}
	p.setFrozen(false)
	p.host.lab.log.Info("process thawed", "host", p.host.name, "program", p.name, "pid", p.Pid())
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

// awaitStop waits until no thread of the group runs.
func (p *Process) awaitStop() error {
	deadline := time.Now().Add(freezing)
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		state := liveliest(p.Pid())
		switch {
		case state == "T":
			return nil
		case state == "":
			return errEnded
		case time.Now().After(deadline):
			return fmt.Errorf("a thread is still in state %s %v after SIGSTOP", state, freezing)
		}
		time.Sleep(pause)
	}
}

// liveliest is the letter of the state, as in /proc, of a thread of the group
// that is not stopped; T if all are, "" if there is none.
func liveliest(group int) string {
	found := ""
	for _, process := range glob("/proc/[0-9]*") {
		if readStat(process).group != group {
			continue
		}
		for _, thread := range glob(process + "/task/*") {
			switch state := readStat(thread).state; state {
			case "", "Z", "X": // ended
			case "T", "t":
				found = "T"
			default:
				return state
			}
		}
	}
	return found
}

func glob(pattern string) []string {
	paths, _ := filepath.Glob(pattern) // only a bad pattern is an error
	return paths
}

// stat is what /proc says of a process or thread; zero if there is none.
type stat struct {
	state string // a letter
	group int
}

func readStat(dir string) stat {
	text, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return stat{}
	}
	return parseStat(string(text))
}

// parseStat reads "pid (name) state parent group ...". The name may hold
// anything.
func parseStat(text string) stat {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 3 {
		return stat{}
	}
	group, err := strconv.Atoi(fields[2])
	if err != nil {
		return stat{}
	}
	return stat{state: fields[0], group: group}
}

// processState is the letter of a process's state, "" if there is no such process.
func processState(pid int) string { return readStat("/proc/" + strconv.Itoa(pid)).state }
