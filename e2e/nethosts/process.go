//go:build linux

package nethosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command says what to start.
type Command struct {
	Path string   // looked up in PATH if it has no slash
	Args []string // without the program's name
	// Env is the whole environment. Default: the harness's without its proxies,
	// which no host can reach.
	Env []string
	Dir string // default: the host's directory
	// Stdin, Stdout and Stderr: an *os.File is handed over as it is, anything else
	// is copied. A writer that is slow or blocks does not hold the program up:
	// 4 MiB wait for it, what is more is lost. Default: the null device.
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Process is a program that was started on a host, together with all processes
// that it starts and that stay in its process group. They end with it.
type Process struct {
	host    *Host
	name    string
	cmd     *exec.Cmd
	outputs []*output
	done    chan struct{}

	mu     sync.Mutex
	frozen bool
	asked  syscall.Signal // what Stop or Kill sent last
	ended  bool           // the pid may be somebody else's from now on
	err    error
}

const (
	deathTime = 10 * time.Second       // between SIGKILL and the report that it does not help
	freezing  = 2 * time.Second        // between SIGSTOP and the report that it does not help
	lastWords = 500 * time.Millisecond // for output that is held by a process which left the group
)

// Start starts a program on the host.
func (h *Host) Start(c Command) (*Process, error) {
	path, err := exec.LookPath(c.Path)
	if err != nil {
		return nil, fmt.Errorf("nethosts: %s: %w", h.name, err)
	}
	return h.start(filepath.Base(path), path, append([]string{path}, c.Args...), c)
}

// StartSelf starts a program that was given to [Register]: this binary again, or
// the one at c.Path, which must be another build of it. The program finds its
// arguments in os.Args[1:].
func (h *Host) StartSelf(program string, c Command) (*Process, error) {
	if _, ok := programs[program]; !ok {
		return nil, fmt.Errorf("nethosts: %s: no program is registered as %q", h.name, program)
	}
	path := c.Path
	if path == "" {
		path = "/proc/self/exe"
	}
	if c.Env == nil {
		c.Env = hostEnvironment(os.Environ())
	}
	c.Env = append(slices.Clone(c.Env), partEnv+"="+partProgram+program)
	return h.start(program, path, append([]string{program}, c.Args...), c)
}

func (h *Host) start(name, path string, args []string, c Command) (*Process, error) {
	if c.Env == nil {
		c.Env = hostEnvironment(os.Environ())
	}
	if c.Dir == "" {
		c.Dir = h.dir
	}
	p := &Process{host: h, name: name, done: make(chan struct{}), cmd: &exec.Cmd{
		Path: path, Args: args, Env: c.Env, Dir: c.Dir, Stdin: c.Stdin,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		WaitDelay:   lastWords, // for a reader that is given as standard input and blocks
	}}
	if err := p.attach(c.Stdout, c.Stderr); err != nil {
		return nil, fmt.Errorf("nethosts: %s: %s: %w", h.name, name, err)
	}
	err := h.fork(p)
	for _, o := range p.outputs {
		o.started(err == nil)
	}
	if err != nil {
		return nil, fmt.Errorf("nethosts: %s: start of %s: %w", h.name, name, err)
	}
	h.lab.log.Info("process started", "host", h.name, "program", name, "pid", p.Pid())
	go p.attend()
	return p, nil
}

// hostEnvironment leaves the proxies out.
func hostEnvironment(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		key, _, _ := strings.Cut(kv, "=")
		return strings.HasSuffix(strings.ToLower(key), "_proxy")
	})
}

// fork starts the process among those of the host. The host is not removed
// meanwhile.
func (h *Host) fork(p *Process) error {
	h.starting.RLock()
	defer h.starting.RUnlock()
	h.mu.Lock()
	gone, first := h.gone, slices.Clone(h.atStart)
	h.mu.Unlock()
	if gone {
		return errors.New("the host was removed")
	}
	do := h.network.do
	if len(first) > 0 {
		do = h.network.doOnce
	}
	err := do(func() error {
		for _, f := range first {
			if err := f(p.cmd.SysProcAttr); err != nil {
				return err
			}
		}
		return p.cmd.Start()
	})
	if err == nil {
		h.mu.Lock()
		h.processes = append(h.processes, p)
		h.mu.Unlock()
	}
	return err
}

// Processes returns the processes that run.
func (h *Host) Processes() []*Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.processes)
}

// attend waits for the end of the process and of all that it has started.
func (p *Process) attend() {
	pid := p.Pid()
	// Until the process is reaped, nobody else gets its number.
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	err := p.cmd.Wait()
	p.awaitGroup(pid)
	for _, o := range p.outputs {
		o.finish(lastWords)
	}
	p.conclude(err)
}

// awaitGroup waits until the last of the group is gone, and with it all ports
// that it held.
func (p *Process) awaitGroup(pid int) {
	for pause := 100 * time.Microsecond; syscall.Kill(-pid, 0) == nil; pause = min(2*pause, 20*time.Millisecond) {
		time.Sleep(pause)
	}
}

func (p *Process) conclude(err error) {
	p.mu.Lock()
	p.frozen = false
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) && !p.wasAsked() {
		p.err = fmt.Errorf("nethosts: %s: %s (pid %d) ended: %w%s", p.host.name, p.name, p.Pid(), err, p.said())
	}
	p.mu.Unlock()
	p.host.mu.Lock()
	p.host.processes = slices.DeleteFunc(p.host.processes, func(o *Process) bool { return o == p })
	p.host.mu.Unlock()
	p.host.lab.log.Info("process ended", "host", p.host.name, "program", p.name, "pid", p.Pid(), "status", p.cmd.ProcessState)
	close(p.done)
}

// wasAsked tells if the process ended by the signal that Stop or Kill sent.
func (p *Process) wasAsked() bool {
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return p.asked != 0 && status.Signaled() && (status.Signal() == p.asked || status.Signal() == syscall.SIGKILL)
}

// Pid is the process id in the lab's own process namespace.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process and all that it has started ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the process ended, with the end of what it wrote to standard
// error: nil while it runs, after exit status 0, and after an end by the signal of
// Stop or Kill.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Frozen tells if the process is frozen.
func (p *Process) Frozen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen
}

// String is the host's name and the program's.
func (p *Process) String() string { return p.host.name + "/" + p.name }

// Stop asks the process to end by SIGTERM and waits for it. A frozen one thaws
// for it. When ctx ends first, the process is killed, which is no error.
func (p *Process) Stop(ctx context.Context) error {
	p.ask(syscall.SIGTERM)
	p.signal(p.Pid(), syscall.SIGTERM)
	if p.Frozen() {
		if err := p.Thaw(); err != nil && !errors.Is(err, errEnded) { // by itself, just now
			return err
		}
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return p.Kill()
	}
}

// Kill ends the process and its children at once and waits until they are gone.
func (p *Process) Kill() error {
	p.ask(syscall.SIGKILL)
	p.signal(-p.Pid(), syscall.SIGKILL)
	select {
	case <-p.done:
		return nil
	case <-time.After(deathTime):
		return fmt.Errorf("nethosts: %s: %s (pid %d) lives %v after SIGKILL in state %s: a disk that hangs does not let its processes go", p.host.name, p.name, p.Pid(), deathTime, processState(p.Pid()))
	}
}

func (p *Process) ask(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = s
}

// signal signals the process, or its group where pid is negative, and tells if
// there was one to signal.
func (p *Process) signal(pid int, s syscall.Signal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.ended && syscall.Kill(pid, s) == nil
}
