package workload

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func attempt(method, address string, began, ended int) *Attempt {
	a := &Attempt{Method: method, Address: address, Began: at(began)}
	if ended > 0 {
		a.Ended = at(ended)
	}
	if method == MethodWatch {
		a.Watch = "w"
	}
	return a
}

func TestFiguresOfAFaultCountOnlyTheMemberBehindIt(t *testing.T) {
	fault := Fault{Address: "bad", Cut: at(1000), Heal: at(9000)}
	trace := &Trace{attempts: []*Attempt{
		attempt(MethodWatch, "bad", 10, 1500),                   // left after 500 ms
		attempt(MethodKeepAlive, "bad", 20, 1700),               // left after 700 ms
		attempt(MethodWatch, "good", 30, 0),                     // stays
		attempt(MethodRange, "bad", 900, 950),                   // over before the cut
		attempt(MethodRange, "bad", 990, 1200),                  // re-sent after 200 ms
		attempt(MethodRange, "good", 1300, 8000),                // another member
		attempt(MethodPut, "bad", 1100, 1500),                   // the last new call, at 100 ms
		attempt("/etcdserverpb.KV/Txn", "bad", 1050, 1600),      // it may write as well
		attempt(MethodWatch, "good", 1510, 0),                   // opened again
		attempt(MethodKeepAlive, "good", 1710, 0),               // opened again
		{Method: MethodWatch, Address: "good", Began: at(2000)}, // of a recipe: it has no name
		attempt(MethodRange, "bad", 9100, 9200),                 // back
		attempt(MethodWatch, "bad", 9300, 0),                    // back
		attempt(MethodRange, "bad", 99_000, 100_000),            // after the load
	}}
	rec := Record{Began: at(100), Ended: at(10_000)}
	got := Measure(rec, trace, nil, fault, nil)
	want := Figures{
		LastCall: ms(100), LastRead: ms(200), LastStream: ms(700), LastMutation: ms(600),
		WatchesReopened: 2, LeasesReopened: 1, CallsBack: 2, StreamsBack: 1,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("figures (-want +got):\n%s", d)
	}
}

func TestWhatStaysOnTheBadMemberIsNever(t *testing.T) {
	fault := Fault{Address: "bad", Cut: at(1000), Heal: at(9000)}
	trace := &Trace{attempts: []*Attempt{
		attempt(MethodWatch, "bad", 10, 0),
		attempt(MethodRange, "bad", 990, 9001),
	}}
	got := Measure(Record{Began: at(0), Ended: at(10_000)}, trace, nil, fault, nil)
	if got.LastStream != Never || got.LastRead != Never {
		t.Errorf("last stream %v, last read %v; want Never for both: they outlasted the fault", got.LastStream, got.LastRead)
	}
}

func TestAStreamRefusedForWantOfALeaderHasNotMoved(t *testing.T) {
	refusal := attempt(MethodKeepAlive, "x", 200, 210)
	refusal.Err = rpctypes.ErrGRPCNoLeader
	ended := attempt(MethodKeepAlive, "x", 300, 4000) // it stood, until the server ended it
	ended.Err = rpctypes.ErrGRPCNoLeader
	other := attempt(MethodKeepAlive, "x", 5000, 5010)
	other.Err = rpctypes.ErrGRPCTimeout
	trace := &Trace{attempts: []*Attempt{refusal, ended, other}}
	if got := Measure(Record{Began: at(100), Ended: at(9000)}, trace, nil, Fault{}, nil).LeasesReopened; got != 2 {
		t.Errorf("%d lease streams opened again, want 2: only the refusal at once is none", got)
	}
}

func TestSilenceAndLagOfAWatch(t *testing.T) {
	event := func(revision int64, ms int) Event { return Event{Revision: revision, At: at(ms)} }
	reference := []Event{event(1, 50), event(2, 1000), event(3, 1100), event(4, 3000)}
	for _, tc := range []struct {
		name         string
		got          []Event
		silence, lag time.Duration
	}{
		{"with the reference", reference[1:], ms(1900), 0},
		{"late by half a second once", []Event{event(2, 1500), event(3, 1500), event(4, 3000)}, ms(1500), ms(500)},
		{"never again", []Event{event(2, 1000)}, ms(3000), ms(2900)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rec := Record{Began: at(100), Ended: at(4000), StartRev: 1, Watches: []WatchRecord{{Events: tc.got}}}
			f := Measure(rec, &Trace{}, reference, Fault{}, nil)
			if f.Silence != tc.silence || f.Lag != tc.lag {
				t.Errorf("silence %v, lag %v; want %v, %v", f.Silence, f.Lag, tc.silence, tc.lag)
			}
		})
	}
}

func TestCallsAreCountedByOutcome(t *testing.T) {
	moved := errors.New("moved")
	rec := Record{
		Ended: at(5000),
		Gets:  []Op{{Began: at(0), Ended: at(10)}, {Began: at(0), Ended: at(700), Err: errors.New("x")}, {Began: at(1000)}},
		Puts: []Op{
			{Began: at(0), Ended: at(20)},
			{Began: at(0), Ended: at(30), Err: moved},
			{Began: at(0), Ended: at(30), Err: context.DeadlineExceeded},
			{Began: at(0), Ended: at(30), Err: errors.New("x")},
			{Began: at(0), Ended: at(30), Err: status.Error(codes.Unknown, "raft proposal dropped")},
			{Began: at(4900)},
		},
	}
	got := Measure(rec, &Trace{}, nil, Fault{}, func(err error) bool { return errors.Is(err, moved) })
	want := Figures{Gets: 3, GetsFailed: 1, GetMax: ms(4000), PutsAcked: 1, PutsUnknown: 2, PutsFailed: 2, PutsDropped: 1, PutMax: ms(100),
		Failures: map[string]int{"x": 2, "rpc error: code = Unknown desc = raft proposal dropped": 1}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("figures (-want +got), a call that has not returned counts until the end:\n%s", d)
	}
}

func TestStuckNeedsOneOfItsSigns(t *testing.T) {
	limit := 2500 * time.Millisecond
	for _, tc := range []struct {
		name string
		f    Figures
		want bool
	}{
		{"nothing", Figures{Lag: limit, GetMax: limit, Silence: time.Hour}, false},
		{"watch behind the reference", Figures{Lag: limit + 1}, true},
		{"a Get blocked", Figures{GetMax: limit + 1}, true},
		{"lease lost", Figures{LeasesLost: 1}, true},
		{"watch closed", Figures{WatchesClosed: 1}, true},
	} {
		if why, got := tc.f.Stuck(limit); got != tc.want {
			t.Errorf("%s: stuck = %v (%s), want %v: a control that is not stuck makes a scenario void", tc.name, got, why, tc.want)
		}
	}
}

func TestATraceOfRecordedAttemptsGivesTheSameFigures(t *testing.T) {
	fault := Fault{Address: "bad", Cut: at(1000), Heal: at(9000)}
	rec := Record{Began: at(100), Ended: at(10_000)}
	live := &Trace{attempts: []*Attempt{attempt(MethodWatch, "bad", 10, 1500), attempt(MethodWatch, "good", 1510, 0)}}
	want := Measure(rec, live, nil, fault, nil)
	got := Measure(rec, TraceOf(live.Attempts(func(Attempt) bool { return true })), nil, fault, nil)
	if d := cmp.Diff(want, got); d != "" || got.LastStream != ms(500) {
		t.Errorf("figures of the recorded attempts (-live +recorded):\n%s", d)
	}
}
