//go:build linux

package suites

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/history"
)

// queueing gives the evidence a mutex and an election that are taken at these moments, and
// an end long after the heal.
func queueing(e *Evidence, entered, elected time.Duration) {
	e.Ended = at(healedAt + 20*time.Second)
	e.Ours.Sections = []history.Section{{Mutex: "m", Entered: entered}}
	e.Ours.Reigns = []history.Reign{{Election: "l", Elected: elected}}
}

func TestMutexesAndElectionsGoOnAfterTheLastFault(t *testing.T) {
	const before, after = cutAt - time.Second, healedAt + 2*time.Second
	for _, row := range []struct {
		name  string
		plant func(*Evidence)
		want  string
	}{
		{"both go on", func(e *Evidence) { queueing(e, after, after) }, ""},
		{"the mutex does not", func(e *Evidence) { queueing(e, before, after) }, "mutex m was not entered in the 20s after the last fault"},
		{"the mutex never was entered", func(e *Evidence) { queueing(e, 0, after) }, "mutex m was not entered"},
		{"the election does not", func(e *Evidence) { queueing(e, after, before) }, "election l was not won in the 20s after the last fault"},
		{"the end comes too soon", func(e *Evidence) { queueing(e, before, before); e.Ended = at(healedAt + 4*time.Second) }, ""},
		{"a fault lasts", func(e *Evidence) { queueing(e, before, before); e.Hurts[0].To = time.Time{} }, ""},
		{"another fault ends later", func(e *Evidence) {
			queueing(e, after, after)
			e.Hurts = append(e.Hurts, Hurt{Member: "m3", What: "kill", Effect: Ends, From: at(healedAt), To: at(healedAt + 3*time.Second)})
		}, "mutex m was not entered in the 17s after the last fault"},
		{"nobody wants either", func(e *Evidence) { e.Ended = at(healedAt + 20*time.Second) }, ""},
	} {
		e := sound()
		row.plant(e)
		got := strings.Join(e.resumed(e.Ours), "\n")
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestJudgeAsksWhetherMutexesGoOn(t *testing.T) {
	e := sound()
	queueing(e, 0, healedAt+time.Second)
	if got := strings.Join(e.consistent("ours", e.Ours).violations, "\n"); !strings.Contains(got, "mutex m was not entered in the") {
		t.Errorf("violations %q; want that the mutex was not entered again", got)
	}
}

// Only what stood still while it was free counts for a mutex, and only once.
func TestMutexMayStandForAsLongAsTheMachineOrTheClusterDid(t *testing.T) {
	const asked = 4 * time.Second
	const from, to = asked + 100*time.Millisecond, asked + 700*time.Millisecond
	for _, row := range []struct {
		name  string
		plant func(*Evidence)
		late  time.Duration // how long it stood beyond the bound
		fails bool
	}{
		{"never", func(*Evidence) {}, eventEvery + 1, true},
		{"in time", func(e *Evidence) { e.pause(from, to) }, to - from, false},
		{"too short", func(e *Evidence) { e.pause(from, to) }, to - from + 1, true},
		{"before", func(e *Evidence) { e.pause(asked-(to-from), asked) }, to - from, true},
		{"one processor only", func(e *Evidence) { e.stall(from, to) }, to - from, true},
		{"the cluster", func(e *Evidence) { e.silent(from, to) }, to - from, false},
		{"the cluster and the machine at the same time", func(e *Evidence) { e.silent(from, to); e.pause(from, to) }, to - from + 2*eventEvery, true},
	} {
		e := sound()
		row.plant(e)
		entered := asked + idleMost + e.leaseTTL() + row.late
		e.Truth.Changes = append(e.Truth.Changes, history.Change{Revision: 100, Key: "m/1", Create: 100, Version: 1})
		e.Ours.Sections = []history.Section{{Mutex: "m", Holder: "a", Key: "m/1", Fence: 100, Asked: asked, Entered: entered, Left: entered + time.Second}}
		bad := strings.Join(e.consistent("ours", e.Ours).violations, "\n")
		if row.fails != strings.Contains(bad, "after the place was free for it") {
			t.Errorf("%s: %q; want that it was free for too long: %v", row.name, bad, row.fails)
		}
	}
}

// pause has all processors stand still between two moments.
func (e *Evidence) pause(from, to time.Duration) {
	e.stall(from, to)
	e.Pauses = append(e.Pauses, Stall{at(from), at(to)})
}

func TestMomentsAreThoseOfTheReference(t *testing.T) {
	e := sound()
	got := moments(e.Reference[:2], zero)
	if want := []history.Moment{{Revision: 2, At: loadBegins}, {Revision: 3, At: loadBegins + eventEvery}}; !slices.Equal(got, want) {
		t.Errorf("moments %v, want %v", got, want)
	}
}
