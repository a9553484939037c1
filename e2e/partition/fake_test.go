//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/suites"
)

// wholeEnv makes this binary the command itself, for a test that runs all of it.
const wholeEnv = "QUORUMWISE_PARTITION_WHOLE"

func TestMain(m *testing.M) {
	if os.Getenv(wholeEnv) != "" {
		main()
	}
	nethosts.EnterTests()
	goleak.VerifyTestMain(m)
}

// catalog is small, and has what distinguishes scenarios.
func catalog() []suites.Scenario {
	return []suites.Scenario{
		{Name: "cut", Suite: "matrix", Does: "a follower loses its peers", Fault: "cut", Quick: true, Steps: []suites.Step{{Wait: 9 * time.Second}}},
		{Name: "cut-5", Suite: "matrix", Does: "likewise, of five", Members: 5, Control: suites.Unharmed},
		{Name: "leader-cut", Suite: "matrix", Does: "the leader loses its peers", Quick: true, Control: suites.Suffers},
		{Name: "two-cut", Suite: "doubles", Does: "two of five lose their peers", Members: 5, Control: suites.Harmless},
		{Name: "old-cut", Suite: "versions", Does: "likewise, on an older etcd", Version: "3.5"},
		{Name: "soak", Suite: "soak", Does: "random faults", Endless: true},
	}
}

// stand plays nothing: it answers with what a test has put there.
type stand struct {
	mu      sync.Mutex
	played  []string
	options suites.Options
	play    func(context.Context, suites.Scenario, suites.Options) (report.Scenario, error)
}

func (s *stand) player(ctx context.Context, sc suites.Scenario, opts suites.Options) (report.Scenario, error) {
	s.mu.Lock()
	s.played, s.options = append(s.played, sc.Name), opts
	s.mu.Unlock()
	if s.play == nil {
		return ended(sc, report.Passed), nil
	}
	return s.play(ctx, sc, opts)
}

func ended(sc suites.Scenario, status report.Status) report.Scenario {
	return report.Scenario{Name: sc.Name, Suite: sc.Suite, Does: sc.Does, Status: status, Took: 2 * time.Second, Apps: []report.App{
		{Name: "ours", Figures: report.Figures{Silence: 410 * time.Millisecond}},
		{Name: "control", Official: true, Figures: report.Figures{Silence: report.Never}},
	}}
}

// shelf has servers without building any.
type shelf struct {
	mu    sync.Mutex
	built []string
	fail  map[string]error  // by version or path
	says  map[string]string // version by path; default 3.7.3
	slow  time.Duration
}

func (s *shelf) Build(ctx context.Context, version string) (string, error) {
	s.mu.Lock()
	s.built = append(s.built, version)
	s.mu.Unlock()
	select {
	case <-time.After(s.slow):
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	return "/cache/etcd-" + version, s.fail[version]
}

func (s *shelf) Version(_ context.Context, binary string) (string, error) {
	return cmp.Or(s.says[binary], "3.7.3"), s.fail[binary]
}

// call runs the command as main does, and gives what it said and its exit status.
func call(t *testing.T, w world, args ...string) (out, complaint string, status int) {
	t.Helper()
	return callWithin(t.Context(), t, w, args...)
}

func callWithin(ctx context.Context, t *testing.T, w world, args ...string) (out, complaint string, status int) {
	t.Helper()
	t.Setenv(preparedEnv, "")
	var b, complain strings.Builder
	w.out = &b
	if w.catalog == nil {
		w.catalog = catalog()
	}
	if w.enter == nil {
		w.enter = func() error { return nil }
	}
	if w.servers == nil {
		w.servers = &shelf{}
	}
	if w.play == nil {
		w.play = func(context.Context, suites.Scenario, suites.Options) (report.Scenario, error) {
			return report.Scenario{}, errors.New("nothing should be played")
		}
	}
	cmd := newCommand(w)
	cmd.SetArgs(args)
	status = exitStatus(cmd.ExecuteContext(ctx), &complain)
	return b.String(), complain.String(), status
}
