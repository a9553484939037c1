//go:build linux

package suites

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// segment is how long one cluster and its applications live in a scenario without an end
// of its own. All that they have seen is held in memory until it is judged: after a
// segment it is judged and let go.
const segment = 2 * time.Minute

// endless is how long a scenario without an end of its own lasts where nobody has told.
const endless = time.Minute

// Segments is in how many pieces a scenario without an end of its own is played that
// should last so long, each with a start and an end of its own.
func Segments(whole time.Duration) int { return len(segments(cmp.Or(whole, endless))) }

// segments cuts a time into pieces of at most that length, none much shorter than another.
func segments(whole time.Duration) []time.Duration {
	n := max(1, int((whole+segment-1)/segment))
	pieces := make([]time.Duration, n)
	for i := range pieces {
		pieces[i] = whole / time.Duration(n)
	}
	return pieces
}

// runSegments plays a scenario piece by piece, each on a cluster of its own and with the
// next seed, so that one can be played again alone. It returns one report of them all:
// the timeline is that of the first piece that did not pass, or of the last one. Where ctx
// ends, the report is of the pieces before; it has no status where there are none.
func runSegments(ctx context.Context, sc Scenario, opts Options, run player) (report.Scenario, error) {
	var whole report.Scenario
	began := time.Now()
	pieces := segments(cmp.Or(opts.Duration, endless))
	for n, lasts := range pieces {
		o := opts
		o.Seed, o.Duration = opts.Seed+int64(n), lasts
		if o.Dir != "" && len(pieces) > 1 {
			o.Dir = filepath.Join(opts.Dir, fmt.Sprintf("segment-%03d", n+1))
		}
		r, err := run(ctx, sc, o)
		if err != nil {
			if n > 0 {
				whole.Notes = append(whole.Notes, fmt.Sprintf("ended after %d of %d segments: %v", n, len(pieces), err))
			}
			return whole, err
		}
		name := fmt.Sprintf("segment %d of %d, seed %d", n+1, len(pieces), o.Seed)
		r.Notes = append(r.Notes, name)
		if how, ok := amiss[r.Status]; ok {
			opts.tell(Progress{Scenario: sc.Name, At: time.Since(began), Text: fmt.Sprintf("%s in %s: %s", how, name, lines(why(r)).join("; ", 3)), Failing: true})
		}
		whole = joined(whole, r, n)
		if r.Status == report.Broken || r.Status == report.Skipped {
			break // the next one would be no better
		}
	}
	return whole, nil
}

// joined adds the report of segment n (from 0) to that of those before.
func joined(whole, r report.Scenario, n int) report.Scenario {
	if n == 0 {
		return r
	}
	base, other := r, whole
	if whole.Status != report.Passed {
		base, other = whole, r
	}
	base.Began, base.Took = whole.Began, whole.Took+r.Took
	base.Violations = append(whole.Violations[:len(whole.Violations):len(whole.Violations)], inSegment(r.Violations, n)...)
	base.Notes = append(whole.Notes[:len(whole.Notes):len(whole.Notes)], r.Notes...)
	base.Files = append(whole.Files[:len(whole.Files):len(whole.Files)], r.Files...)
	apps := make([]report.App, len(base.Apps)) // base's own belong to another report
	copy(apps, base.Apps)
	for i := range apps {
		if i < len(other.Apps) {
			apps[i].Figures = summed(apps[i].Figures, other.Apps[i].Figures)
		}
	}
	base.Apps = apps
	return base
}

// amiss says how a soak goes on after such a segment.
var amiss = map[report.Status]string{report.Failed: "failing", report.Void: "void"}

// why a scenario did not pass.
func why(r report.Scenario) []string {
	if r.Reason == "" {
		return r.Violations
	}
	return append([]string{r.Reason}, r.Violations...)
}

func inSegment(violations []string, n int) []string {
	var said []string
	for _, v := range violations {
		said = append(said, fmt.Sprintf("segment %d: %s", n+1, v))
	}
	return said
}

// summed has the sums of counts and the worst of durations. Quantiles of two sets cannot
// be joined: the worse of each stands, which is never better than the truth.
func summed(a, b report.Figures) report.Figures {
	s := a
	s.Calls, s.Failed = make(map[string]report.Quantiles), make(map[string]int)
	for _, f := range []report.Figures{a, b} {
		for class, q := range f.Calls {
			s.Calls[class] = worse(s.Calls[class], q)
		}
		for class, n := range f.Failed {
			s.Failed[class] += n
		}
	}
	s.Silence, s.Silences, s.Lag = max(a.Silence, b.Silence), worse(a.Silences, b.Silences), max(a.Lag, b.Lag)
	s.LastCall, s.LastRead = max(a.LastCall, b.LastCall), max(a.LastRead, b.LastRead)
	s.LastStream, s.LastMutation = max(a.LastStream, b.LastStream), max(a.LastMutation, b.LastMutation)
	s.Left = slices.Concat(a.Left, b.Left)
	s.Avoidable, s.Unknown = a.Avoidable+b.Avoidable, a.Unknown+b.Unknown
	s.FalseMoves = a.FalseMoves + b.FalseMoves
	s.EventsLost, s.EventsTwice = a.EventsLost+b.EventsLost, a.EventsTwice+b.EventsTwice
	s.LeasesLost, s.Leases, s.Closed = a.LeasesLost+b.LeasesLost, a.Leases+b.Leases, a.Closed+b.Closed
	if s.Stuck == "" {
		s.Stuck = b.Stuck
	}
	return s
}

func worse(a, b report.Quantiles) report.Quantiles {
	return report.Quantiles{N: a.N + b.N, P50: max(a.P50, b.P50), P90: max(a.P90, b.P90), P99: max(a.P99, b.P99), Max: max(a.Max, b.Max)}
}
