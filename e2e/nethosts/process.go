package nethosts

import (
	"context"
	"io"
)

// Command says what to start.
type Command struct {
	Path string   // looked up in PATH if it has no slash
	Args []string // without the program's name
	// Env is the whole environment. Default: the harness's without proxies, which
	// no host can reach.
	Env    []string
	Dir    string // default: the host's directory
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Process is a program that was started on a host, with all processes that it
// starts in turn.
type Process struct{}

// Pid is the process id in the lab's own process namespace.
func (p *Process) Pid() int { return 0 }

// Stop asks the process to end and waits. When ctx ends first, it is killed.
func (p *Process) Stop(ctx context.Context) error { return errNotYet }

// Kill ends the process and its children at once.
func (p *Process) Kill() error { return errNotYet }

// Freeze stops the process and its children where they are.
func (p *Process) Freeze() error { return errNotYet }

// Thaw lets them go on.
func (p *Process) Thaw() error { return errNotYet }

// Frozen tells if Freeze was called and Thaw was not.
func (p *Process) Frozen() bool { return false }

// Done is closed when the process ended.
func (p *Process) Done() <-chan struct{} { return nil }

// Err says how the process ended: nil while it runs and after exit status 0 or
// an end that Stop or Kill asked for.
func (p *Process) Err() error { return nil }
