package suites

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// Options are how scenarios are played. The zero value works.
type Options struct {
	// Seed of everything that is chosen by chance.
	Seed int64
	// Binary is the path of the etcd server; "" builds one of Version.
	Binary string
	// Version of etcd; "" is the one that this module uses. A scenario that is about a
	// version plays that one.
	Version string
	// Members instead of the scenario's number; 0: as the scenario says.
	Members int
	// Duration of scenarios that have no end of their own; default a minute.
	Duration time.Duration
	// Dir is where the evidence of a failure is kept, in a directory named like the
	// scenario; "" keeps none.
	Dir string
	// Progress is called as things happen, from the goroutine of Run.
	Progress func(Progress)
	// Logger gets the lines of lab and cluster; default none.
	Logger *slog.Logger
}

// Progress is one thing that happened while a scenario was played.
type Progress struct {
	Scenario string
	At       time.Duration // since its begin
	Text     string
}

// Run plays a scenario and judges it. What stops it from being played is in the report
// (Broken, Skipped); an error means that ctx ended.
func Run(ctx context.Context, sc Scenario, opts Options) (report.Scenario, error) {
	return report.Scenario{Name: sc.Name, Suite: sc.Suite, Does: sc.Does}, context.Cause(ctx)
}
