package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumwise/quorumwise/e2e/cluster"
	"github.com/quorumwise/quorumwise/e2e/scenario"
)

// Members, shims, clients and the display leave nothing behind, however it ends.
func TestMain(m *testing.M) { goleak.VerifyTestMain(settled{m}) }

// settled gives goroutines that are about to end the time for it, on a busy machine too.
type settled struct{ *testing.M }

// Run runs the tests.
func (s settled) Run() int {
	status := s.M.Run()
	for end := time.Now().Add(10 * time.Second); goleak.Find() != nil && time.Now().Before(end); {
	}
	return status
}

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
