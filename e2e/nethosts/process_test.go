//go:build linux

package nethosts

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func sh(t *testing.T, h *Host, script string, stdout *bytes.Buffer) *Process {
	t.Helper()
	c := Command{Path: "sh", Args: []string{"-c", script}}
	if stdout != nil {
		c.Stdout = stdout
	}
	p, err := h.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// end waits for the end of the process.
func end(t *testing.T, p *Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(soon):
		t.Fatalf("%v does not end", p)
	}
}

func TestProcessErrorHoldsStatusAndLastWords(t *testing.T) {
	_, hosts := lab(t, "m1")
	var out bytes.Buffer
	p := sh(t, hosts[0], "echo hello; echo oh dear >&2; exit 3", &out)
	end(t, p)
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "m1: sh (pid") || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "oh dear") {
		t.Errorf("Err() = %v, want host, program, status and what it wrote last", err)
	}
	if out.String() != "hello\n" {
		t.Errorf("standard output is %q, want all of it when Done is closed", out.String())
	}
	if got := hosts[0].Processes(); len(got) != 0 {
		t.Errorf("Processes() = %v after the end", got)
	}
	if _, err := hosts[0].Start(Command{Path: "no-such-program"}); err == nil || !strings.Contains(err.Error(), "m1: ") {
		t.Errorf("start of what is not there: %v, want an error with the host", err)
	}
}

func TestStopAsksThenKills(t *testing.T) {
	_, hosts := lab(t, "m1")
	dir := hosts[0].Dir()
	polite := sh(t, hosts[0], "trap 'touch bye; exit 0' TERM; touch here; while :; do sleep 0.01; done", nil)
	awaitFile(t, dir+"/here")
	if err := polite.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + "/bye"); err != nil || polite.Err() != nil {
		t.Errorf("%v, Err() = %v; want a process that could say goodbye", err, polite.Err())
	}
	deaf := sh(t, hosts[0], "trap '' TERM; touch deaf; while :; do sleep 0.01; done", nil)
	awaitFile(t, dir+"/deaf")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := deaf.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	end(t, deaf)
	if err := deaf.Err(); err != nil {
		t.Errorf("Err() = %v after Stop had to kill, want nil", err)
	}
	crash := sh(t, hosts[0], "trap 'exit 7' TERM; touch crash; while :; do sleep 0.01; done", nil)
	awaitFile(t, dir+"/crash")
	if err := crash.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := crash.Err(); err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("Err() = %v after a stop that went wrong, want its status", err)
	}
}

func TestStopOfAFrozenProcessThatEndsMeanwhileIsNoError(t *testing.T) {
	done := make(chan struct{})
	close(done)
	p := &Process{
		host: &Host{name: "m1"}, name: "p", cmd: &exec.Cmd{Process: &os.Process{Pid: math.MaxInt32}}, done: done,
		frozen: true, ended: true, // as between its end and the news of it
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("Stop = %v, want nil: it is gone, as wanted", err)
	}
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func TestKillTakesTheChildrenAlong(t *testing.T) {
	_, hosts := lab(t, "m1")
	p := sh(t, hosts[0], "sleep 1000 & echo $! > child; mv child child.pid; wait", nil)
	awaitFile(t, hosts[0].Dir()+"/child.pid")
	child := readPid(t, hosts[0].Dir()+"/child.pid")
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	if state := processState(child); state != "T" {
		t.Errorf("the child of a frozen process is in state %q, want T", state)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if state := processState(child); state != "" {
		t.Errorf("the child is in state %q after Kill, want it gone: it may hold ports", state)
	}
	if err := p.Freeze(); err == nil || !strings.Contains(err.Error(), "it has ended") {
		t.Errorf("Freeze of a dead process: %v, want an error that says so", err)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("second Kill: %v", err)
	}
}

func TestChildrenEndWithTheirParent(t *testing.T) {
	_, hosts := lab(t, "m1")
	p := sh(t, hosts[0], "sleep 1000 & echo $! > child; exit 0", nil)
	end(t, p)
	child := readPid(t, hosts[0].Dir()+"/child")
	if state := processState(child); state != "" || p.Err() != nil {
		t.Errorf("the child is in state %q, Err() = %v; want it gone and no error", state, p.Err())
	}
}

func readPid(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// A process that left its group holds the pipe of its parent's output.
func TestStrayNeitherDelaysDoneNorOutlivesTheHost(t *testing.T) {
	l := ForTest(t, Config{Dir: t.TempDir()})
	h, err := l.Host("m1")
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.Start(Command{
		Path:   "sh",
		Args:   []string{"-c", "setsid sh -c 'echo $$ > pid; mv pid stray; sleep 1000' & while [ ! -e stray ]; do sleep 0.01; done"},
		Stdout: new(bytes.Buffer),
	})
	if err != nil {
		t.Fatal(err)
	}
	end(t, p)
	stray := readPid(t, h.Dir()+"/stray")
	if state := processState(stray); state == "" {
		t.Fatalf("process %d is gone with its parent, want one that left the group", stray)
	}
	if err := h.Remove(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(soon); processState(stray) != ""; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the stray is in state %q after its host was removed", processState(stray))
		}
	}
}

func TestFrozenProcessKeepsItsConnectionsAndAnswersLater(t *testing.T) {
	_, hosts := lab(t, "m1", "c1")
	p, address := echo(t, hosts[0])
	c := dial(t, hosts[1], address)
	mustPing(t, c, "it runs")
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	if !p.Frozen() {
		t.Error("Frozen() = false")
	}
	mustBeMute(t, c, "the server is frozen")
	if err := p.Thaw(); err != nil {
		t.Fatal(err)
	}
	mustPing(t, c, "the server has thawed")
	if p.Frozen() {
		t.Error("Frozen() = true after Thaw")
	}
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(t.Context()); err != nil { // without a bound
		t.Fatal(err)
	}
}

func TestKilledServerBindsAgainAtOnce(t *testing.T) {
	_, hosts := lab(t, "m1", "c1")
	for range 10 {
		p, address := echo(t, hosts[0])
		mustPing(t, dial(t, hosts[1], address), "it serves")
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
}

// blocked is a writer that takes nothing.
type blocked chan struct{}

func (b blocked) Write(p []byte) (int, error) { <-b; return len(p), nil }

func TestWriterThatBlocksDoesNotHoldTheProcessUp(t *testing.T) {
	_, hosts := lab(t, "m1")
	b := make(blocked)
	p, err := hosts[0].Start(Command{Path: "sh", Args: []string{"-c", "head -c 20000000 /dev/zero"}, Stdout: b})
	if err != nil {
		t.Fatal(err)
	}
	end(t, p)
	close(b)
}

// countingWriter fails the test if it is called twice at once.
type countingWriter struct {
	mu sync.Mutex
	n  int
	t  *testing.T
}

func (w *countingWriter) Write(p []byte) (int, error) {
	if !w.mu.TryLock() {
		w.t.Error("the writer is called twice at once")
		return len(p), nil
	}
	defer w.mu.Unlock()
	w.n += len(p)
	return len(p), nil
}

func TestOneWriterForBothOutputsIsCalledOnceAtATime(t *testing.T) {
	_, hosts := lab(t, "m1")
	w := &countingWriter{t: t}
	p, err := hosts[0].Start(Command{
		Path: "sh", Args: []string{"-c", "i=0; while [ $i -lt 500 ]; do echo 1; echo 2 >&2; i=$((i+1)); done"}, Stdout: w, Stderr: w,
	})
	if err != nil {
		t.Fatal(err)
	}
	end(t, p)
	if w.n != 2000 {
		t.Errorf("%d bytes came, want 2000", w.n)
	}
}

func TestHostsSeeNoProxyAndRegisteredProgramsOnlyRunOnce(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	_, hosts := lab(t, "m1")
	var out bytes.Buffer
	end(t, sh(t, hosts[0], "env | grep -i _proxy=; exit 0", &out))
	if out.Len() > 0 {
		t.Errorf("a host's environment holds %q, want no proxy: gRPC would ask it", out.String())
	}
	if _, err := hosts[0].StartSelf("unheard-of", Command{}); err == nil || !strings.Contains(err.Error(), "unheard-of") {
		t.Errorf("start of a program that is not registered: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a name is registered twice, want a panic")
		}
	}()
	Register("echo", func() int { return 0 })
}

func TestDoReturnsWhatItWasGivenAndSurvivesGoexit(t *testing.T) {
	_, hosts := lab(t, "m1")
	want := fmt.Errorf("mine")
	if got := hosts[0].Do(func() error { return want }); got != want {
		t.Errorf("Do = %v, want %v", got, want)
	}
	if got := hosts[0].Do(func() error { runtime.Goexit(); return nil }); got != errNoReturn {
		t.Errorf("Do = %v for a function that left its goroutine, want an error that says so", got)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if c, err := tryDial(hosts[0], l.Addr().String(), time.Second); err == nil {
		c.Close()
		t.Error("a host reaches the harness's loopback")
	}
}
