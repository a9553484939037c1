package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/cluster"
	"github.com/quorumwise/quorumwise/e2e/leak"
	"github.com/quorumwise/quorumwise/e2e/scenario"
)

// Members, shims, clients and the display leave nothing behind, however it ends.
func TestMain(m *testing.M) { leak.VerifyTestMain(m, leak.Harness) }

// uneventful is a scenario on one real member, as short as can be.
func uneventful(do func(context.Context, *scenario.Stage) error) scenario.Scenario {
	return scenario.Scenario{
		Name: "uneventful", Does: "nothing happens", Members: 1, Shim: cluster.ShimSidecar, Control: scenario.Open,
		Steps: []scenario.Step{{Text: "nothing", Wait: ms(300), Do: do}},
	}
}

func plainDisplay() (*display, *bytes.Buffer) {
	out := new(bytes.Buffer)
	return &display{w: out, size: func() (int, int) { return 0, 0 }}, out
}

func TestDemonstrationTellsItsStoryFromStartToVerdict(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	show, out := plainDisplay()
	if err := play(ctx, uneventful(nil), show, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("%v; want all as promised", err)
	}
	if !strings.Contains(out.String(), "Gets/s") {
		t.Errorf("no line of figures in:\n%s", out)
	}
	rest := out.String()
	for _, want := range []string{"starting 1 etcd member", "both clients", "==> nothing", "checking", "longest silence", "PASSED"} {
		at := strings.Index(rest, want)
		if at < 0 {
			t.Fatalf("%q is missing, or too early, in:\n%s", want, out)
		}
		rest = rest[at:]
	}
}

func TestDemonstrationIsPlayedAgainOnlyAfterBadLuck(t *testing.T) {
	shown, failed := scenario.Outcome{}, scenario.Outcome{Violations: []string{"2 of 90 Gets failed"}}
	late := scenario.Outcome{Void: "the machine was late", Doubts: []string{"a call took too long"}}
	calm := scenario.Outcome{Void: "the official client was not stuck"}
	stood := scenario.Outcome{Void: "the cluster itself stood still", Still: time.Minute}
	worse := scenario.Outcome{Void: "the cluster itself stood still", Still: time.Minute, Violations: failed.Violations}
	for _, c := range []struct {
		name  string
		outs  []scenario.Outcome
		want  error
		times int
	}{
		{"as promised", []scenario.Outcome{shown}, nil, 1},
		{"a promise broken", []scenario.Outcome{failed, shown}, errVerdict, 1},
		{"nothing to survive", []scenario.Outcome{calm, shown}, errVerdict, 1},
		{"a machine that was late", []scenario.Outcome{late, shown}, nil, 2},
		{"a cluster that stood still", []scenario.Outcome{stood, shown}, nil, 2},
		{"a promise broken while the cluster stood still", []scenario.Outcome{worse, shown}, errVerdict, 1},
		{"bad luck, then a promise broken", []scenario.Outcome{late, failed, shown}, errVerdict, 2},
		{"bad luck, then nothing to survive", []scenario.Outcome{stood, calm, shown}, errVerdict, 2},
		{"bad luck for ever", []scenario.Outcome{late, stood, late, shown}, errVerdict, 3},
	} {
		show, out := plainDisplay()
		times := 0
		err := again(show, func() (scenario.Outcome, []line, error) {
			times++
			return c.outs[times-1], []line{sentence(plain, "result %d", times)}, nil
		})
		if !errors.Is(err, c.want) || times != c.times {
			t.Errorf("%s: %v after %d plays; want %v after %d", c.name, err, times, c.want, c.times)
		}
		if got := strings.Count(out.String(), "once more"); got != c.times-1 {
			t.Errorf("%s: it says %d times that it is played again; want %d:\n%s", c.name, got, c.times-1, out)
		}
		if got, want := strings.Count(out.String(), "result"), fmt.Sprintf("result %d\n", c.times); got != 1 || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%s: %d results; want the last one, at the end:\n%s", c.name, got, out)
		}
	}
	for _, c := range []struct {
		err   error
		times int
	}{
		{errors.New("a step failed"), 1},
		{scenario.ErrNotStarted, 3},
	} {
		show, _ := plainDisplay()
		times := 0
		err := again(show, func() (scenario.Outcome, []line, error) { times++; return late, nil, c.err })
		if !errors.Is(err, c.err) || times != c.times {
			t.Errorf("could not be played: %v after %d plays; want %v after %d", err, times, c.err, c.times)
		}
	}
}

func TestInterruptedDemonstrationCleansUp(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	show, out := plainDisplay()
	err := play(ctx, uneventful(func(context.Context, *scenario.Stage) error { cancel(); return nil }), show, slog.New(slog.DiscardHandler))
	if err == nil || ctx.Err() == nil {
		t.Errorf("err = %v; want the interruption", err)
	}
	if strings.Contains(out.String(), "longest silence") || strings.Contains(out.String(), "checking") {
		t.Errorf("checks or figures of a demonstration that was interrupted:\n%s", out)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v); want nothing", left, err)
	}
}

// pipe is an output whose reader leaves after a number of lines.
type pipe struct{ lines int }

func (p *pipe) Write(b []byte) (int, error) {
	if p.lines--; p.lines < 0 {
		return 0, os.ErrClosed
	}
	return len(b), nil
}

func TestReaderThatLeavesEarlyEndsTheDemonstration(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	show, _ := plainDisplay()
	show.w = &pipe{lines: 3} // it leaves while both clients still work undisturbed
	untilThen := func(ctx context.Context, _ *scenario.Stage) error { <-ctx.Done(); return context.Cause(ctx) }
	err := play(ctx, uneventful(untilThen), show, slog.New(slog.DiscardHandler))
	if !errors.Is(err, os.ErrClosed) {
		t.Errorf("err = %v; want the failed write", err)
	}
}
