package nethosts

import (
	"bytes"
	"fmt"
	"runtime"
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
	if starved > 350*time.Millisecond || starved < 50*time.Millisecond {
		t.Errorf("with 0.2 cores a busy second got %v of CPU, want about 200ms", starved)
	}
	other, err := l.Host("m2")
	if err != nil {
		t.Fatal(err)
	}
	if free := spin(t, other); free < 2*starved {
		t.Errorf("the host beside got %v of CPU, the starved one %v: want it untouched", free, starved)
	}
	for _, f := range []*Fault{limit, wider} {
		if err := f.Lift(); err != nil {
			t.Fatal(err)
		}
	}
	if after := spin(t, h); after < 2*starved {
		t.Errorf("a busy second got %v of CPU after the limit and %v under it, want more", after, starved)
	}
	for _, cores := range []float64{0, -1} {
		if _, err := h.LimitCPU(cores); err == nil {
			t.Errorf("%v cores: no error, want one", cores)
		}
	}
}
