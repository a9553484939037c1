package realetcd

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

// within is a context that a test's steps share.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// started is a cluster for one test, in a lab of its own.
func started(t *testing.T, ctx context.Context, cfg Config) *Cluster {
	t.Helper()
	nethosts.Need(t)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	cfg.Lab, cfg.Logger = nethosts.ForTest(t, nethosts.Config{Logger: log}), log
	c, err := Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestClusterServesWithEveryKindOfShim(t *testing.T) {
	for _, kind := range []Shim{ShimNone, ShimSidecar, ShimInProcess} {
		t.Run(kind.String(), func(t *testing.T) {
			began := time.Now()
			started(t, within(t, 20*time.Second), Config{Shim: kind})
			t.Logf("started in %v", time.Since(began))
		})
	}
}
