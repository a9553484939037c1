//go:build linux

package suites

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// shortened has m2 hurt for so long only.
func (e *Evidence) shortened(lasts time.Duration) {
	e.Hurts[0].To = at(cutAt + lasts)
}

func TestFiguresTellHowSoonAMemberWasLeft(t *testing.T) {
	const call, stream = 100 * time.Millisecond, leftAt - cutAt
	for _, c := range []struct {
		name  string
		spoil func(*Evidence)
		want  []report.Left
	}{
		{"a follower", func(*Evidence) {}, []report.Left{
			{Member: "m2", At: cutAt, Call: report.Leave{Took: call, Budget: noQuorum.Calls}, Stream: report.Leave{Took: stream, Budget: noQuorum.Streams}},
		}},
		{"the others were without a leader", func(e *Evidence) { e.lead(cutAt+50*time.Millisecond, cutAt+250*time.Millisecond) }, []report.Left{
			{Member: "m2", At: cutAt, Call: report.Leave{Took: call, Election: 250 * time.Millisecond, Budget: noQuorum.Calls}, Stream: report.Leave{Took: stream, Election: 250 * time.Millisecond, Budget: noQuorum.Streams}},
		}},
		{"a budget of the hurt's own", func(e *Evidence) { e.Scenario.Budget, e.Scenario.Shim = Budget{}, realetcd.ShimNone }, []report.Left{
			{Member: "m2", At: cutAt, Call: report.Leave{Took: call, Budget: noShim.Calls}, Stream: report.Leave{Took: stream, Budget: noShim.Streams}},
		}},
		{"twice", func(e *Evidence) {
			e.shortened(3 * time.Second)
			e.Hurts = append(e.Hurts, Hurt{Member: "m2", What: "cut", Effect: Isolates, From: at(7 * time.Second), To: at(healedAt)})
		}, []report.Left{
			{Member: "m2", At: cutAt, Call: report.Leave{Took: call, Budget: noQuorum.Calls}, Stream: report.Leave{Took: stream, Budget: noQuorum.Streams}},
			{Member: "m2", At: 7 * time.Second, Call: report.Leave{Budget: noQuorum.Calls}, Stream: report.Leave{Budget: noQuorum.Streams}},
		}},
		{"nobody had to leave a slow one", func(e *Evidence) { e.Hurts[0].Effect = Slows }, nil},
	} {
		e := sound()
		c.spoil(e)
		got := e.figures(e.Ours).Left
		for i := range got { // when in its 100 ms the last call was sent is not the point
			got[i].Call.Took = got[i].Call.Took.Round(20 * time.Millisecond)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// A member that comes back before it had to be left was not kept for ever by what stayed on it.
func TestFiguresSayNeverOnlyOfWhatWasDue(t *testing.T) {
	for _, c := range []struct {
		name         string
		lasts        time.Duration
		stream, read time.Duration
	}{
		{"over before reads are due", 350 * time.Millisecond, 0, 0},
		{"over before streams are due", 700 * time.Millisecond, 0, workload.Never},
		{"due", 900 * time.Millisecond, workload.Never, workload.Never},
	} {
		e := sound()
		e.shortened(c.lasts)
		e.leaves(10 * time.Second)
		e.txn(cutAt-time.Second, at(10*time.Second))
		e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodRange, Address: address("m2"), Began: at(cutAt - time.Second), Ended: at(10 * time.Second)})
		f := e.figures(e.Ours)
		if len(f.Left) != 1 {
			t.Fatalf("%s: left %v; want one member", c.name, f.Left)
		}
		if f.LastStream != c.stream || f.LastRead != c.read || f.LastMutation != c.stream || f.Left[0].Stream.Took != c.stream {
			t.Errorf("%s: last stream %v (%v), read %v, mutation %v; want %v, %v and as streams", c.name, f.LastStream, f.Left[0].Stream.Took, f.LastRead, f.LastMutation, c.stream, c.read)
		}
	}
}

func TestFiguresTellTheSilenceOfEachWatch(t *testing.T) {
	e := sound()
	f := e.figures(e.Control)
	if q := f.Silences; q.N != 2 || q.P50 > 2*eventEvery || q.Max != f.Silence || q.Max < healedAt-cutAt-eventEvery {
		t.Errorf("silences %+v, the longest %v; want those of 2 watches, one that was silent until the heal", q, f.Silence)
	}
}

// A figure that is not summed is the first segment's alone.
func TestSumHasEveryFigure(t *testing.T) {
	of := reflect.TypeFor[report.Figures]()
	for i := range of.NumField() {
		var f report.Figures
		field := reflect.ValueOf(&f).Elem().Field(i)
		switch into := field.Addr().Interface().(type) {
		case *int:
			*into = 3
		case *time.Duration:
			*into = 3
		case *string:
			*into = "3"
		case *report.Quantiles:
			*into = report.Quantiles{N: 3, P50: 3, P90: 3, P99: 3, Max: 3}
		case *map[string]report.Quantiles:
			*into = map[string]report.Quantiles{"get": {N: 3, Max: 3}}
		case *map[string]int:
			*into = map[string]int{"get": 3}
		case *[]report.Left:
			*into = []report.Left{{Member: "m3"}}
		default:
			t.Fatalf("%s is a %v, which this test does not know", of.Field(i).Name, field.Type())
		}
		for _, sum := range []report.Figures{summed(f, report.Figures{}), summed(report.Figures{}, f)} {
			if got := reflect.ValueOf(sum).Field(i).Interface(); !reflect.DeepEqual(got, field.Interface()) {
				t.Errorf("%s: the sum of %v and nothing is %v", of.Field(i).Name, field.Interface(), got)
			}
		}
	}
}
