//go:build linux

package nethosts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() { Register("spinner", spinner) }

// spinner keeps all cores busy for a second and prints the CPU time that it got.
func spinner() int {
	end := time.Now().Add(time.Second)
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			for time.Now().Before(end) {
			}
		})
	}
	wg.Wait()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 1
	}
	fmt.Println(used.Utime.Nano() + used.Stime.Nano())
	return 0
}

// spin runs the spinner on a host and returns its CPU time.
func spin(t *testing.T, h *Host) time.Duration {
	t.Helper()
	var out bytes.Buffer
	p, err := h.StartSelf("spinner", Command{Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	var used time.Duration
	if _, err := fmt.Sscan(out.String(), &used); err != nil {
		t.Fatalf("the spinner ended with %v and said %q", p.Err(), out.String())
	}
	return used
}

// throttled is how many times the kernel stopped a host for its limit. Unlike the
// time that a busy host gets, it does not depend on what else the machine does.
func throttled(t *testing.T, h *Host) int {
	t.Helper()
	g, err := h.equipment.groups.group(controlCPU)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(filepath.Join(g.dir, "cpu.stat"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), "nr_throttled ")
	n := 0
	_, _ = fmt.Sscan(rest, &n)
	return n
}

func TestStarvedHostGetsItsShareOfTheCPUOnly(t *testing.T) {
	l, h := oneHost(t)
	limit, err := h.LimitCPU(0.2)
	skipUnavailable(t, err)
	wider, err := h.LimitCPU(0.9)
	if err != nil {
		t.Fatal(err)
	}
	if faults := l.Faults(); len(faults) != 2 {
		t.Errorf("faults %q, want both limits", faults)
	}
	// One period more than a second's worth can start and be running.
	starved := spin(t, h)
	if starved > 350*time.Millisecond {
		t.Errorf("with 0.2 cores a busy second got %v of CPU, want at most about 200ms", starved)
	}
	other, err := l.Host("m2")
	if err != nil {
		t.Fatal(err)
	}
	// On a machine that has no more to give, nobody meets a limit.
	if throttled(t, h) == 0 && starved > 150*time.Millisecond {
		t.Errorf("the starved host got %v of CPU and was never stopped, want it stopped at its limit", starved)
	}
	if spin(t, other); throttled(t, other) > 0 {
		t.Errorf("the kernel stopped the host beside %d times, want it untouched", throttled(t, other))
	}
	for _, f := range []*Fault{limit, wider} {
		if err := f.Lift(); err != nil {
			t.Fatal(err)
		}
	}
	before := throttled(t, h)
	if spin(t, h); throttled(t, h) > before {
		t.Errorf("the kernel stopped the host %d times after the limit was lifted, want none", throttled(t, h)-before)
	}
	for _, cores := range []float64{0, -1} {
		if _, err := h.LimitCPU(cores); err == nil {
			t.Errorf("%v cores: no error, want one", cores)
		}
	}
}

// count is how many processes are in a host's group.
func count(t *testing.T, h *Host, c controller) int {
	t.Helper()
	g, err := h.equipment.groups.group(c)
	if err != nil {
		t.Fatal(err)
	}
	pids, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for pid := range strings.FieldsSeq(string(pids)) {
		if pid != strconv.Itoa(os.Getpid()) { // by a thread that forked, and ends
			n++
		}
	}
	return n
}

func TestRunningProgramsAreStarvedTooAndOnlyMeanwhile(t *testing.T) {
	_, h := oneHost(t)
	idle, err := h.Start(Command{Path: "sleep", Args: []string{"60"}})
	if err != nil {
		t.Fatal(err)
	}
	limit, err := h.LimitCPU(0.5)
	skipUnavailable(t, err)
	if n := count(t, h, controlCPU); n != 1 {
		t.Errorf("%d processes are limited, want the one that ran already", n)
	}
	later, err := h.Start(Command{Path: "sleep", Args: []string{"60"}})
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, h, controlCPU); n != 2 {
		t.Errorf("%d processes are limited, want also the one that was started since", n)
	}
	if err := limit.Lift(); err != nil {
		t.Fatal(err)
	}
	if g, _ := h.equipment.groups.group(controlCPU); h.equipment.groups.late(g) {
		if n := count(t, h, controlCPU); n != 0 {
			t.Errorf("%d processes are in the group after the limit, want none: it would be one process's share of a busy machine", n)
		}
	}
	for _, p := range []*Process{idle, later} {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	}
}
