//go:build linux

package nethosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process that writes to a frozen file system cannot be killed, and a PID
// namespace waits for all of its processes before it goes. So a harness that
// died with a frozen disk would stay for ever, and with it its namespaces, the
// mount and the loop device. The guard prevents it: a process outside of the
// namespaces that holds a descriptor of every frozen disk and thaws them all
// when the harness is gone in whatever way, which it sees by the end of its
// socket. It takes the control groups away as well.
//
// [Enter] starts it (startGuard, in the process outside), hands its socket to
// the harness (pass), becomes it where it is asked to be (guardMain), and takes
// the socket over inside (adoptGuard). Only a guard that is killed as well, with
// SIGKILL, cannot keep its promise; it ignores what a terminal sends.

const (
	guardEnv     = "QUORUMWISE_LAB_GUARD"    // set: this process is the guard, its socket is descriptor 3
	guardSockEnv = "QUORUMWISE_LAB_GUARD_FD" // the descriptor of the harness's end
)

// guardian is the guard as the process outside sees it.
type guardian struct {
	cmd     *exec.Cmd
	harness *os.File // the harness's end, until pass
}

// startGuard starts the guard. It needs this executable and nothing else.
func startGuard() (*guardian, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("nethosts: a socket for the guard of disks: %w", err)
	}
	guardEnd, harnessEnd := os.NewFile(uintptr(ends[0]), "guard"), os.NewFile(uintptr(ends[1]), "harness")
	defer guardEnd.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), guardEnv+"=1")
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{guardEnd}
	// Out of the terminal's process group, and without the caller's standard
	// output, for whose end others may wait.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		harnessEnd.Close()
		return nil, fmt.Errorf("nethosts: the guard of disks: %w", err)
	}
	return &guardian{cmd: cmd, harness: harnessEnd}, nil
}

// pass hands the harness's end of the socket to the process that will be the
// harness. To be called before it is started, and passed after.
func (g *guardian) pass(cmd *exec.Cmd) {
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, guardSockEnv+"="+strconv.Itoa(3+len(cmd.ExtraFiles)))
	cmd.ExtraFiles = append(cmd.ExtraFiles, g.harness)
}

// passed is to be called when the harness has started, or has failed to: from
// then on the harness alone keeps the guard alive.
func (g *guardian) passed() { g.harness.Close() }

// wait waits until the guard has done its work: after it the machine is clean.
func (g *guardian) wait(atMost time.Duration) {
	done := make(chan struct{})
	go func() { defer close(done); _ = g.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(atMost):
	}
}

// The messages to the guard, each followed by the number of the disk. Hold
// carries the descriptor. Each is answered by itself.
const (
	guardHold = 'h'
	guardDrop = 'd'
)

// guardMain is the guard, where this process is to be one: it does not return
// then.
func guardMain() {
	if os.Getenv(guardEnv) == "" {
		return
	}
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGHUP, unix.SIGPIPE)
	guardLoop(3)
	// A lab that was not closed leaves its control groups, as soon as its last
	// process is gone.
	for end := time.Now().Add(5 * time.Second); sweepAll() != nil && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	os.Exit(0)
}

// guardLoop holds descriptors until the other end of the socket is closed, and
// thaws then what it holds.
func guardLoop(socket int) {
	held := map[string]int{}
	buf, oob := make([]byte, 64), make([]byte, unix.CmsgSpace(4))
	for {
		n, oobn, _, _, err := unix.Recvmsg(socket, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			break
		}
		message := string(buf[:n])
		if old, ok := held[message[1:]]; ok {
			_ = unix.Close(old)
			delete(held, message[1:])
		}
		if fd, ok := receivedDescriptor(oob[:oobn]); ok && message[0] == guardHold {
			held[message[1:]] = fd
		}
		_ = unix.Send(socket, buf[:n], unix.MSG_NOSIGNAL)
	}
	for _, fd := range held {
		_ = thaw(fd)
		_ = unix.Close(fd)
	}
}

func receivedDescriptor(oob []byte) (int, bool) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return 0, false
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, false
	}
	return fds[0], true
}

// guard is the guard as the harness sees it.
type guard struct {
	mu     sync.Mutex
	socket int // -1: there is none
	next   int // numbers disks
}

// theGuard guards all labs of this process.
var theGuard = &guard{socket: -1}

// adoptGuard takes over the socket that pass has handed to this process.
func adoptGuard() {
	fd, err := strconv.Atoi(os.Getenv(guardSockEnv))
	if err != nil {
		return
	}
	// Children must not keep the guard waiting.
	unix.CloseOnExec(fd)
	_ = os.Unsetenv(guardSockEnv)
	theGuard.mu.Lock()
	defer theGuard.mu.Unlock()
	theGuard.socket = fd
}

var errNoGuard = errors.New("no guard process outside of the lab's namespaces could thaw it after a crash: call nethosts.Enter first")

func (g *guard) present() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.socket >= 0
}

// hold makes the guard hold a disk: it returns when the guard has it.
func (g *guard) hold(id string, fd int) error {
	return g.say(guardHold, id, unix.UnixRights(fd))
}

// drop makes the guard let a disk go: it returns when it has.
func (g *guard) drop(id string) error { return g.say(guardDrop, id, nil) }

// newID is a name for a disk that the guard does not know yet.
func (g *guard) newID() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next++
	return strconv.Itoa(g.next)
}

func (g *guard) say(what byte, id string, oob []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.socket < 0 {
		return errNoGuard
	}
	if err := unix.Sendmsg(g.socket, append([]byte{what}, id...), oob, nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("the guard process is gone, nobody would thaw a disk after a crash: %w", err)
	}
	for {
		n, err := unix.Read(g.socket, make([]byte, 64))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return errors.New("the guard process is gone, nobody would thaw a disk after a crash")
		}
		return nil
	}
}
