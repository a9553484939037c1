//go:build linux

package suites

import (
	"context"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumwise/quorumwise/e2e/report"
)

func TestLatenessIsKeptOfEachProcessor(t *testing.T) {
	const ms = time.Millisecond
	quick := []waking{{at(10 * ms), ms}, {at(20 * ms), 2 * ms}, {at(30 * ms), ms}, {at(40 * ms), 2 * ms}, {at(50 * ms), 2 * ms}}
	slow := []waking{{at(10 * ms), 12 * ms}, {at(50 * ms), 10 * ms}, {at(100 * ms), 600 * ms}, {at(800 * ms), 2 * ms}}
	got := summary([][]waking{quick, slow})
	if want := (report.Lateness{Typical: 2 * ms, Worst: 600 * ms}); got.Lateness != want {
		t.Errorf("lateness %v; want %v", got.Lateness, want)
	}
	if want := []Stall{{at(100 * ms), at(700 * ms)}}; !slices.Equal(got.stalls, want) {
		t.Errorf("stalls %v; want %v, though another processor woke in time", got.stalls, want)
	}
	if len(got.pauses) != 0 {
		t.Errorf("pauses %v; want none: another processor woke in time", got.pauses)
	}
	if len(got.lags) != 2 || len(got.lags[0]) != 0 || !slices.Equal(got.lags[1], []Stall{{at(12 * ms), at(22 * ms)}, {at(102 * ms), at(700 * ms)}}) {
		t.Errorf("lags %v; want none of the first processor, and of the second what was above the typical", got.lags)
	}
	if got := summary(nil); got.Lateness != (report.Lateness{}) || got.stalls != nil {
		t.Errorf("of nothing: %v; want nothing", got)
	}
}

func TestOnlyWhatAllProcessorsStallIsAPause(t *testing.T) {
	const ms = time.Millisecond
	a := []waking{{at(100 * ms), 200 * ms}, {at(310 * ms), 300 * ms}, {at(900 * ms), 500 * ms}}
	b := []waking{{at(50 * ms), 150 * ms}, {at(210 * ms), 200 * ms}, {at(950 * ms), 110 * ms}, {at(1100 * ms), 200 * ms}}
	c := []waking{{at(0), 1050 * ms}, {at(1300 * ms), 800 * ms}}
	for _, row := range []struct {
		of   [][]waking
		want []Stall
	}{
		{nil, nil},
		{[][]waking{a, {{at(100 * ms), 99 * ms}}}, nil},
		{[][]waking{b[:1]}, []Stall{{at(50 * ms), at(200 * ms)}}},
		{[][]waking{a, b}, []Stall{{at(100 * ms), at(200 * ms)}, {at(210 * ms), at(300 * ms)}, {at(310 * ms), at(410 * ms)}, {at(950 * ms), at(1060 * ms)}, {at(1100 * ms), at(1300 * ms)}}},
		{[][]waking{a, b, c}, []Stall{{at(100 * ms), at(200 * ms)}, {at(210 * ms), at(300 * ms)}, {at(310 * ms), at(410 * ms)}, {at(950 * ms), at(1050 * ms)}}},
	} {
		if got := summary(row.of).pauses; !slices.Equal(got, row.want) {
			t.Errorf("pauses %v; want %v", got, row.want)
		}
	}
}

func TestOnlyTheWorstProcessorCountsAndOnlyWhatItTookInTime(t *testing.T) {
	const ms = time.Millisecond
	ls := lags{
		{{at(100 * ms), at(190 * ms)}, {at(300 * ms), at(390 * ms)}},
		{{at(0), at(60 * ms)}, {at(350 * ms), at(400 * ms)}},
	}
	for _, row := range []struct{ from, to, want time.Duration }{
		{0, 1000 * ms, 180 * ms}, {150 * ms, 350 * ms, 90 * ms}, {0, 90 * ms, 60 * ms}, {500 * ms, 900 * ms, 0},
	} {
		if got := ls.taken(at(row.from), at(row.to)); got != row.want {
			t.Errorf("from %v to %v: %v; want %v", row.from, row.to, got, row.want)
		}
	}
}

func TestEveryProcessorIsSleptOn(t *testing.T) {
	var mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		t.Fatal(err)
	}
	cpus := processors()
	if len(cpus) != min(mine.Count(), processorsMost) {
		t.Errorf("processors %v; want %d of them", cpus, mine.Count())
	}
	for _, cpu := range cpus {
		done := make(chan struct{})
		go func() {
			defer close(done)
			var set unix.CPUSet
			onProcessor(cpu, func() {
				if err := unix.SchedGetaffinity(0, &set); err != nil || set.Count() != 1 || !set.IsSet(cpu) {
					t.Errorf("on %d: the thread may run on %d processors, on this one %v (%v)", cpu, set.Count(), set.IsSet(cpu), err)
				}
			})
		}()
		<-done
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	got := measureLateness(ctx)
	if took := time.Since(began); got.Worst <= 0 || len(got.lags) != len(cpus) || took > 20*time.Second {
		t.Errorf("after %v: at worst %v, of %d processors; want some lateness of %d, at once", took, got.Worst, len(got.lags), len(cpus))
	}
	var after unix.CPUSet
	if err := unix.SchedGetaffinity(unix.Getpid(), &after); err != nil || after != mine {
		t.Errorf("afterwards this process may run on %d processors (%v); want %d", after.Count(), err, mine.Count())
	}
}
