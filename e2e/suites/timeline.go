//go:build linux

package suites

import (
	"slices"
	"strings"
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/report"
)

// since is a moment on the timeline.
func (e *Evidence) since(at time.Time) time.Duration { return max(0, at.Sub(e.Began)) }

// lanes are the members as they were.
func (e *Evidence) lanes() []report.Lane {
	var lanes []report.Lane
	t := truthOf(e.Samples)
	for _, m := range e.Members {
		lane := report.Lane{Member: m.Name, Address: m.Endpoint}
		for _, s := range t[m.Name] {
			lane.Truth = extend(lane.Truth, e.since(s.At), string(s.State), "")
			state, detail := shimState(s.Shim)
			lane.Shim = extend(lane.Shim, e.since(s.At), state, detail)
		}
		end(lane.Truth, e.since(e.Ended))
		end(lane.Shim, e.since(e.Ended))
		lanes = append(lanes, lane)
	}
	return lanes
}

// shimState parts the reason in parentheses from what a shim says.
func shimState(s string) (state, detail string) {
	state, detail, _ = strings.Cut(s, " (")
	return state, strings.TrimSuffix(detail, ")")
}

// extend adds a state that holds from a moment on to spans that end where the next begins.
func extend(spans []report.Span, at time.Duration, state, detail string) []report.Span {
	if n := len(spans); n > 0 {
		if last := spans[n-1]; last.State == state && last.Detail == detail {
			return spans
		}
		spans[n-1].To = at
	}
	return append(spans, report.Span{From: at, State: state, Detail: detail})
}

func end(spans []report.Span, at time.Duration) {
	if n := len(spans); n > 0 {
		spans[n-1].To = max(at, spans[n-1].From)
	}
}

// application is what one application did and saw.
func (e *Evidence) application(rec app.Record) report.App {
	a := report.App{Name: rec.Name, Official: rec.Official, Figures: e.figures(rec)}
	for _, m := range e.Members {
		u := report.Use{Member: m.Name, Calls: e.slices(rec, m.Endpoint), Streams: e.streams(rec, m.Endpoint)}
		for _, g := range rec.Grades {
			if g.Endpoint == m.Endpoint {
				u.Grades = extend(u.Grades, e.since(g.At), g.Grade, g.Reason)
			}
		}
		end(u.Grades, e.since(e.Ended))
		a.Members = append(a.Members, u)
	}
	for _, m := range rec.Moves {
		a.Moves = append(a.Moves, report.Move{At: e.since(m.At), Member: e.member(m.Endpoint), Class: m.Class, Reason: m.Reason})
	}
	return a
}

// slices counts the calls that an application began on a member.
func (e *Evidence) slices(rec app.Record, endpoint string) []report.Point {
	n := make(map[int]int)
	for _, a := range rec.Attempts {
		if a.Address == endpoint && !a.Stream() && !a.Began.Before(e.Began) && !a.Began.After(e.Ended) {
			n[int(a.Began.Sub(e.Began)/report.Slice)]++
		}
	}
	var points []report.Point
	for i := range int(e.Ended.Sub(e.Began)/report.Slice) + 1 {
		if n[i] > 0 {
			points = append(points, report.Point{At: time.Duration(i) * report.Slice, N: n[i]})
		}
	}
	return points
}

// streams counts the streams that an application had open on a member, where the number
// changes.
func (e *Evidence) streams(rec app.Record, endpoint string) []report.Point {
	var steps []report.Point // N is the change
	for _, a := range rec.Attempts {
		if a.Address != endpoint || !a.Stream() {
			continue
		}
		steps = append(steps, report.Point{At: e.since(a.Began), N: 1})
		if !a.Ended.IsZero() && !a.Ended.After(e.Ended) {
			steps = append(steps, report.Point{At: e.since(a.Ended), N: -1})
		}
	}
	slices.SortStableFunc(steps, func(a, b report.Point) int { return int(a.At - b.At) })
	points := []report.Point{{}}
	for _, s := range steps {
		last := points[len(points)-1]
		if last.At != s.At {
			points = append(points, report.Point{At: s.At, N: last.N})
		}
		points[len(points)-1].N += s.N
	}
	return points
}

// Report is the scenario as it is shown, without the files.
func (e *Evidence) Report(v Verdict) report.Scenario {
	r := heading(e.Scenario, e.Version)
	r.TargetMember = e.Target
	r.Status, r.Reason, r.Violations, r.Notes = v.Status, v.Reason, v.Violations, v.Notes
	r.Began, r.End = e.Began, e.since(e.Ended)
	r.Marks, r.Lanes, r.Lateness = e.Marks, e.lanes(), e.Lateness
	r.Apps = []report.App{e.application(e.Ours), e.application(e.Control)}
	return r
}

// heading is what is known of a scenario before it has been played.
func heading(sc Scenario, version string) report.Scenario {
	return report.Scenario{
		Name: sc.Name, Suite: sc.Suite, Does: sc.Does, Fault: sc.Fault, Members: sc.Members, Shim: sc.Shim.String(),
		Target: string(sc.Target), Version: version, Field: sc.Field, Budget: report.Budget(sc.Budget),
	}
}
