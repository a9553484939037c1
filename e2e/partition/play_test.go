//go:build linux

package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/suites"
)

var quiet = slog.New(slog.DiscardHandler)

func planOf(t *testing.T, parallel int) plan {
	return plan{scenarios: catalog(), parallel: parallel, dir: t.TempDir(), etcd: "3.7.3", settings: settings{seed: 7, parallel: parallel}}
}

// lasting plays every scenario for some time.
func lasting(d time.Duration) player {
	return func(ctx context.Context, sc suites.Scenario, opts suites.Options) (report.Scenario, error) {
		opts.Progress(suites.Progress{Scenario: sc.Name, Text: "cut m2"})
		select {
		case <-time.After(d):
			return ended(sc, report.Passed), nil
		case <-ctx.Done():
			return report.Scenario{}, context.Cause(ctx)
		}
	}
}

func TestScenariosArePlayedInOrderAndReportedInOrder(t *testing.T) {
	for _, parallel := range []int{1, 3, 16} {
		synctest.Test(t, func(t *testing.T) {
			var at, most atomic.Int32
			began := time.Now()
			run := play(t.Context(), planOf(t, parallel), func(ctx context.Context, sc suites.Scenario, opts suites.Options) (report.Scenario, error) {
				n := at.Add(1)
				defer at.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				return lasting(10*time.Second+time.Duration(len(sc.Name))*time.Second)(ctx, sc, opts)
			}, newScreen(new(strings.Builder), nil), quiet)
			if got, want := int(most.Load()), min(parallel, 6); got != want {
				t.Errorf("%d at a time, want %d", got, want)
			}
			for i, sc := range catalog() {
				if run.Scenarios[i].Name != sc.Name {
					t.Errorf("parallel %d: place %d has %s, want %s: two reports have to be comparable", parallel, i, run.Scenarios[i].Name, sc.Name)
				}
			}
			if run.Took != time.Since(began) || run.Ended != "" || !run.OK() {
				t.Errorf("took %v, ended %q, OK %v", run.Took, run.Ended, run.OK())
			}
		})
	}
}

func TestScenarioThatIsPlayedAgainIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := planOf(t, 1)
		p.scenarios = p.scenarios[:1]
		play(t.Context(), p, func(_ context.Context, sc suites.Scenario, opts suites.Options) (report.Scenario, error) {
			opts.Progress(suites.Progress{Scenario: sc.Name, Text: "cut m2"})
			opts.Progress(suites.Progress{Scenario: sc.Name, Text: "played again: the machine was late", Again: true})
			return ended(sc, report.Passed), nil
		}, newScreen(&out, nil), quiet)
		if got := out.String(); strings.Count(got, "cut is played again: the machine was late\n") != 1 || strings.Contains(got, "cut m2") {
			t.Errorf("it does not say, once, that a scenario is played again, or says more:\n%s", got)
		}
	})
}

func TestInterruptedRunReportsWhatWasPlayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second) // in the third
		defer cancel()
		var out strings.Builder
		began := time.Now()
		run := play(ctx, planOf(t, 1), lasting(10*time.Second), newScreen(&out, nil), quiet)
		if d := time.Since(began); d != 25*time.Second {
			t.Errorf("it ended after %v, want at once", d)
		}
		if len(run.Scenarios) != 2 || run.OK() || run.Ended != "interrupted: 4 of 6 scenarios were not played" {
			t.Errorf("%d played, OK %v, ended %q", len(run.Scenarios), run.OK(), run.Ended)
		}
		if !strings.Contains(out.String(), "leader-cut ended early, and is not in the report") {
			t.Errorf("it does not say which one was interrupted:\n%s", out.String())
		}
	})
}

// soaking has judged something when it is ended.
func soaking(status report.Status) player {
	return func(ctx context.Context, sc suites.Scenario, _ suites.Options) (report.Scenario, error) {
		<-ctx.Done()
		return ended(sc, status), context.Cause(ctx)
	}
}

func TestInterruptedSoakIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		var out strings.Builder
		p := planOf(t, 1)
		p.scenarios = p.scenarios[5:]
		run := play(ctx, p, soaking(report.Failed), newScreen(&out, nil), quiet)
		if len(run.Scenarios) != 1 || run.Scenarios[0].Status != report.Failed || run.Ended != "interrupted: 1 of 1 scenarios were not played to their end" {
			t.Errorf("%d in the report, ended %q; want what the soak has found", len(run.Scenarios), run.Ended)
		}
		if !strings.Contains(out.String(), "soak ended early; what was judged of it is in the report") {
			t.Errorf("it does not say that the soak was interrupted:\n%s", out.String())
		}
	})
}

func TestSoakThatTakesTooLongIsNotPassed(t *testing.T) {
	for status, want := range map[report.Status]report.Status{report.Passed: report.Broken, report.Failed: report.Failed} {
		synctest.Test(t, func(t *testing.T) {
			p := planOf(t, 1)
			p.scenarios = p.scenarios[5:]
			run := play(t.Context(), p, soaking(status), newScreen(new(strings.Builder), nil), quiet)
			if got := run.Scenarios[0]; got.Status != want || want == report.Broken && got.Reason != errOvertime.Error() {
				t.Errorf("%s until it was ended: %s (%s), want %s", status, got.Status, got.Reason, want)
			}
		})
	}
}

func TestLongSoakHasTheTimeForAllItsSegments(t *testing.T) {
	const whole, least = 8 * time.Hour, 17 * time.Second // of a segment, beside its share
	p := planOf(t, 1)
	p.options.Duration = whole
	soak := suites.Match("soak/soak")[0]
	took := whole + time.Duration(suites.Segments(whole))*least
	if got := p.lasts(soak); got < took {
		t.Errorf("a soak of %v is said to take %v; its segments take %v", whole, got, took)
	}
	if got, want := p.limit(soak), suites.Plays*took; got < want {
		t.Errorf("a soak of %v is ended after %v; with each segment played %d times it takes %v", whole, got, suites.Plays, want)
	}
}

func TestSegmentThatFailsIsToldWhileTheSoakGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := planOf(t, 1)
		p.scenarios = p.scenarios[5:]
		play(t.Context(), p, func(_ context.Context, sc suites.Scenario, opts suites.Options) (report.Scenario, error) {
			opts.Progress(suites.Progress{Scenario: sc.Name, Text: "failing in segment 2 of 240, seed 8: lost an event", Failing: true})
			return ended(sc, report.Failed), nil
		}, newScreen(&out, nil), quiet)
		if want := "soak is failing in segment 2 of 240, seed 8: lost an event\n"; !strings.Contains(out.String(), want) {
			t.Errorf("%q is not told:\n%s", want, out.String())
		}
	})
}

func TestRunInterruptedAfterTheLastScenarioIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := planOf(t, 1)
		p.scenarios = p.scenarios[:1]
		run := play(ctx, p, func(_ context.Context, sc suites.Scenario, _ suites.Options) (report.Scenario, error) {
			cancel()
			return ended(sc, report.Passed), nil
		}, newScreen(new(strings.Builder), nil), quiet)
		if !run.OK() {
			t.Errorf("ended %q: all was played", run.Ended)
		}
	})
}

func TestScenarioThatCannotBePlayedBreaksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := play(t.Context(), planOf(t, 2), func(ctx context.Context, sc suites.Scenario, opts suites.Options) (report.Scenario, error) {
			switch sc.Name {
			case "cut":
				panic("a mistake")
			case "cut-5":
				return report.Scenario{}, errors.New("no reason to end")
			case "two-cut":
				return lasting(100*time.Hour)(ctx, sc, opts)
			}
			return ended(sc, report.Passed), nil
		}, newScreen(new(strings.Builder), nil), quiet)
		for i, want := range []string{"panic: a mistake\n", "no reason to end", "", errOvertime.Error()} {
			sc := run.Scenarios[i]
			if broken := sc.Status == report.Broken; broken != (want != "") || !strings.HasPrefix(sc.Reason, want) || sc.Suite == "" {
				t.Errorf("%s: %s, %q; want %q", sc.Name, sc.Status, sc.Reason, want)
			}
		}
		if run.Count(report.Passed) != 3 {
			t.Errorf("%d passed, want 3", run.Count(report.Passed))
		}
	})
}

func TestPlainLinesTellThatALongScenarioIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := planOf(t, 1)
		p.scenarios = p.scenarios[:1]
		play(t.Context(), p, lasting(150*time.Second), newScreen(&out, nil), quiet)
		for _, want := range []string{"1:00  1/1 cut: cut m2 (60 s)\n", "2:00  1/1 cut: cut m2 (120 s)\n"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is missing: a job that says nothing is taken for dead:\n%s", want, out.String())
			}
		}
	})
}

func TestReportIsThereWhileTheRunStillGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := planOf(t, 1)
		play(t.Context(), p, func(ctx context.Context, sc suites.Scenario, opts suites.Options) (report.Scenario, error) {
			if sc.Name == "leader-cut" {
				run := readReport(t, p.dir)
				if len(run.Scenarios) != 2 || run.Ended != "it still goes on" {
					t.Errorf("after 80 s: %d scenarios, ended %q; want 2, of an unfinished run", len(run.Scenarios), run.Ended)
				}
			}
			return lasting(40*time.Second)(ctx, sc, opts)
		}, newScreen(new(strings.Builder), nil), quiet)
	})
}

func TestInterruptedCommandWritesItsReport(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &stand{play: func(ctx context.Context, sc suites.Scenario, _ suites.Options) (report.Scenario, error) {
		if sc.Name == "leader-cut" {
			cancel()
			return report.Scenario{}, context.Cause(ctx)
		}
		return ended(sc, report.Passed), nil
	}}
	out, complaint, status := callWithin(ctx, t, world{play: s.player}, "run", "--report", dir)
	if status != statusInterrupted || complaint != "" {
		t.Errorf("status %d, %q; want %d", status, complaint, statusInterrupted)
	}
	if run := readReport(t, dir); len(run.Scenarios) != 1 || run.Ended == "" {
		t.Errorf("%d scenarios, ended %q; want the one that was played", len(run.Scenarios), run.Ended)
	}
	if want := "interrupted: 1 of 2 scenarios were not played; everything is stopped and removed"; !strings.Contains(out, want) {
		t.Errorf("%q is not told:\n%s", want, out)
	}
}
