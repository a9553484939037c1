//go:build linux

package suites

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// How late the machine may let the harness wake up without that being a reason for
// anything: once, where what follows may be late by as much and more (stallLeast), or again
// and again, where it adds up to what was late (lagLeast).
const (
	stallLeast = 100 * time.Millisecond
	lagLeast   = 10 * time.Millisecond
)

// Stall is a time in which the machine let the harness wait.
type Stall struct{ From, To time.Time }

// lags are, of each processor, the times by which it woke the harness later than it does as
// a rule, in order. Those below lagLeast are left out.
type lags [][]Stall

// taken is the time that one processor, the worst, has taken between two moments.
func (ls lags) taken(from, to time.Time) (most time.Duration) {
	for _, of := range ls {
		var sum time.Duration
		for _, l := range of {
			begin, end := l.From, l.To
			if begin.Before(from) {
				begin = from
			}
			if end.After(to) {
				end = to
			}
			sum += max(0, end.Sub(begin))
		}
		most = max(most, sum)
	}
	return most
}

// lateness is what the machine let the harness wait. It changes no bound: it tells whether a
// machine that was late is a likely reason for a bound that was missed just then.
type lateness struct {
	report.Lateness
	stalls []Stall // of any processor
	pauses []Stall // of all at the same time
	lags   lags
}

// waking is one that was late.
type waking struct {
	due  time.Time
	late time.Duration
}

// measureLateness sleeps on every processor until ctx ends: what is stopped with one of them
// is seen on that one only.
func measureLateness(ctx context.Context) lateness {
	cpus := processors()
	all := make([][]waking, len(cpus))
	var sleeping sync.WaitGroup
	for i, cpu := range cpus {
		sleeping.Go(func() { onProcessor(cpu, func() { all[i] = wakings(ctx) }) })
	}
	sleeping.Wait()
	return summary(all)
}

// wakings sleeps in short steps until ctx ends. The kernel wakes the thread, no timer of
// another thread's does.
func wakings(ctx context.Context) (all []waking) {
	const step = 10 * time.Millisecond
	for ctx.Err() == nil {
		due := time.Now().Add(step)
		pause := unix.NsecToTimespec(int64(step))
		if unix.Nanosleep(&pause, nil) != nil {
			continue // a signal came
		}
		all = append(all, waking{due, time.Since(due)})
	}
	return all
}

// summary is what wakings on each processor have shown.
func summary(all [][]waking) lateness {
	sorted := slices.Concat(all...)
	if len(sorted) == 0 {
		return lateness{}
	}
	slices.SortFunc(sorted, func(a, b waking) int { return cmp.Compare(a.late, b.late) })
	l := lateness{Lateness: report.Lateness{Typical: sorted[len(sorted)/2].late, Worst: sorted[len(sorted)-1].late}}
	for i, of := range all {
		var lags, stalls []Stall
		for _, w := range of {
			woke := w.due.Add(w.late)
			if w.late > stallLeast {
				stalls = append(stalls, Stall{w.due, woke})
			}
			if w.late > lagLeast {
				lags = append(lags, Stall{w.due.Add(max(0, l.Typical)), woke})
			}
		}
		l.lags = append(l.lags, lags)
		l.stalls = append(l.stalls, stalls...)
		if i == 0 {
			l.pauses = stalls
			continue
		}
		l.pauses = common(l.pauses, stalls)
	}
	return l
}

// common are the times that are in both.
func common(a, b []Stall) (all []Stall) {
	for _, s := range a {
		for _, o := range b {
			from := slices.MaxFunc([]time.Time{s.From, o.From}, time.Time.Compare)
			to := slices.MinFunc([]time.Time{s.To, o.To}, time.Time.Compare)
			if from.Before(to) {
				all = append(all, Stall{from, to})
			}
		}
	}
	return all
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
