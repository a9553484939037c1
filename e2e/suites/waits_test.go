//go:build linux

package suites

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// slowed is evidence of a slow follower m2, which answers late.
func slowed() *Evidence {
	e := unnoticed()
	e.calling("m2", 30*time.Millisecond)
	return e
}

// slowToo makes another member slow with m2.
func (e *Evidence) slowToo(member, what string) {
	h := e.Hurts[0]
	h.Member, h.What = member, what
	e.Hurts = append(e.Hurts, h)
}

// five has two more members, which serve.
func (e *Evidence) five() {
	for _, m := range []string{"m4", "m5"} {
		e.Members = append(e.Members, MemberFacts{Name: m, Endpoint: address(m)})
		e.sample(0, m, realetcd.Quorum)
	}
}

// getting is a Get of ours between two moments.
func (e *Evidence) getting(from, to time.Duration) {
	e.Ours.Load.Gets = append(e.Ours.Load.Gets, workload.Op{Began: at(from), Ended: at(to), Revision: int64((to - loadBegins) / (20 * time.Millisecond))})
}

// A member that is slow while the others are as fast as ever may be kept for as long as it takes
// to find out without a shim.
func TestWaitForASlowMemberIsBounded(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, row := range []struct {
		name  string
		plant func(*Evidence)
		want  report.Status
		says  string
	}{
		{"nobody waits", func(*Evidence) {}, report.Passed, ""},
		{"a watch on a slow member stays behind while others serve", func(e *Evidence) { e.lagging(cutAt, healedAt) }, report.Failed, "watch ours/0 fell behind by 5.5s: what was written at 3s came at 8.5s; want it within 3s"},
		{"a watch is behind at first", func(e *Evidence) { e.lagging(cutAt, cutAt+2900*ms) }, report.Passed, ""},
		{"a watch falls behind later", func(e *Evidence) { e.lagging(6*s, 7500*ms) }, report.Failed, "want it within 1s"},
		{"a Get on a slow member waits while others serve", func(e *Evidence) { e.getting(cutAt+s, 8*s) }, report.Failed, "1 gets kept their callers waiting, one from 4s to 8s: 4s; want at most 2s"},
		{"a Get waits at first", func(e *Evidence) { e.getting(cutAt+ms, cutAt+2900*ms) }, report.Passed, ""},
		{"a Put on a slow member waits while others serve", func(e *Evidence) { e.waiting(cutAt, 8*s) }, report.Failed, "1 puts kept their callers waiting, one from 3s to 8s: 5s; want at most 3s"},
		{"a Get waits long after the fault", func(e *Evidence) { e.getting(9*s, 10500*ms) }, report.Failed, "1 gets kept their callers waiting"},
		{"a Get waits while an election adds to it", func(e *Evidence) {
			e.lead(cutAt+s, cutAt+3*s)
			e.getting(cutAt+s, cutAt+5500*ms)
		}, report.Passed, ""},
		{"the slow member goes bad later, and a watch leaves it in time", func(e *Evidence) {
			e.sample(6*s, "m2", realetcd.NoQuorum)
			e.lagging(6*s, 7900*ms)
		}, report.Passed, ""},
		{"the slow member goes bad later, and a watch stays", func(e *Evidence) {
			e.sample(6*s, "m2", realetcd.NoQuorum)
			e.lagging(6*s, 8400*ms)
		}, report.Failed, "want it within 2s"},
		{"most members are slow", func(e *Evidence) { e.slowToo("m3", "cpu"); e.lagging(cutAt, healedAt) }, report.Passed, ""},
		{"two of five are slow", func(e *Evidence) { e.five(); e.slowToo("m3", "cpu"); e.lagging(cutAt, healedAt) }, report.Failed, "want it within 3s"},
		{"the slow member comes to lead", func(e *Evidence) { e.sample(5*s, "m2", realetcd.Leader); e.lagging(cutAt, healedAt) }, report.Passed, ""},
		{"the slow member led before", func(e *Evidence) {
			e.sample(s, "m2", realetcd.Leader)
			e.sample(2*s, "m2", realetcd.Quorum)
			e.lagging(cutAt, healedAt)
		}, report.Failed, "fell behind by"},
	} {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			e := slowed()
			row.plant(e)
			v := e.Judge()
			if text := strings.Join(v.Violations, "\n") + v.Reason; v.Status != row.want || !strings.Contains(text, row.says) {
				t.Errorf("judged %s, want %s; it says\n%s\nwant it to say %q", v.Status, row.want, text, row.says)
			}
		})
	}
}

// allSlow is evidence of three members that are slow together.
func allSlow(what string) *Evidence {
	e := slowed()
	e.Hurts[0].What = what
	e.slowToo("m1", what)
	e.slowToo("m3", what)
	return e
}

// unanswered leaves an application one of so many answers while the fault lasts.
func unanswered(load *workload.Record, oneIn int) {
	n := 0
	drop := func(op workload.Op) bool {
		if !within(op.Began, at(cutAt), at(healedAt)) {
			return false
		}
		n++
		return n%oneIn != 0
	}
	load.Gets, load.Puts = slices.DeleteFunc(load.Gets, drop), slices.DeleteFunc(load.Puts, drop)
}

// Where a fault makes all members slow there is nowhere to go, and nobody may be worse off with our
// client than with the official one.
func TestClientIsNoWorseWhereAllMembersAreSlow(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, row := range []struct {
		name  string
		what  string
		plant func(*Evidence)
		want  report.Status
		says  string
	}{
		{"both go on", "cpu", func(*Evidence) {}, report.Passed, ""},
		{"ours gets hardly any answers", "cpu", func(e *Evidence) { unanswered(&e.Ours.Load, 4) }, report.Failed, "from 3s to 8.5s, while cpu made all members slow, 136 calls were answered, and 550 of the official client's; want at least one for three"},
		{"ours gets none", "loss", func(e *Evidence) { unanswered(&e.Ours.Load, 1e6) }, report.Failed, "while loss made all members slow, 0 calls were answered"},
		{"ours gets fewer", "cpu", func(e *Evidence) { unanswered(&e.Ours.Load, 2) }, report.Passed, ""},
		{"neither gets many", "cpu", func(e *Evidence) { unanswered(&e.Ours.Load, 4); unanswered(&e.Control.Load, 4) }, report.Passed, ""},
		{"what ours gets are errors", "cpu", func(e *Evidence) {
			for i, g := range e.Ours.Load.Gets {
				if within(g.Began, at(cutAt), at(healedAt)) {
					e.Ours.Load.Gets[i].Err = refusal(14, "gone")
					e.Ours.Load.Puts[i].Err = refusal(14, "gone")
				}
			}
		}, report.Failed, "0 calls were answered"},
		{"a watch of ours falls behind", "cpu", func(e *Evidence) { e.lagging(4*s, 7*s) }, report.Failed, "watch ours/0 fell behind by 3s while cpu made all members slow; want at most 1.002s, the official client's did by 2ms"},
		{"a watch of ours falls behind after the machine stood still", "cpu", func(e *Evidence) {
			e.lagging(4*s, 7*s)
			e.stall(3500*ms, 6500*ms)
		}, report.Void, "the machine was late"},
		{"the machine stood still too early for that", "cpu", func(e *Evidence) {
			e.lagging(4*s, 7*s)
			e.stall(2*s, 2900*ms)
		}, report.Failed, "watch ours/0 fell behind by 3s"},
		{"hardly anybody gets answers", "cpu", func(e *Evidence) { unanswered(&e.Ours.Load, 1e6); unanswered(&e.Control.Load, 29) }, report.Passed, ""},
		{"ours gets none, the official client a few", "cpu", func(e *Evidence) { unanswered(&e.Ours.Load, 1e6); unanswered(&e.Control.Load, 25) }, report.Failed, "0 calls were answered, and 22 of"},
		{"a watch of ours is behind for a moment", "cpu", func(e *Evidence) { e.lagging(4*s, 4900*ms) }, report.Passed, ""},
		{"watches of both fall behind", "cpu", func(e *Evidence) { e.lagging(4*s, 7*s); e.laggingControl(4*s, 6100*ms) }, report.Passed, ""},
		{"the control's watch never delivers", "cpu", func(e *Evidence) { e.lagging(4*s, 7*s); e.lose(4 * s) }, report.Passed, ""},
		{"the fault is one of the clients' way", "answers-late", func(e *Evidence) { unanswered(&e.Ours.Load, 1e6); e.lagging(4*s, 7*s) }, report.Passed, ""},
		{"the control died", "cpu", func(e *Evidence) {
			e.lagging(4*s, 7*s)
			e.Died["control"], e.Control.Load = "exit status 2", workload.Record{}
		}, report.Broken, "exit status 2"},
		{"in a soak it is over too soon to tell", "cpu", func(e *Evidence) { e.Scenario.Endless = true; e.lagging(4*s, 7*s) }, report.Passed, ""},
	} {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			e := allSlow(row.what)
			row.plant(e)
			v := e.Judge()
			if text := strings.Join(v.Violations, "\n") + v.Reason; v.Status != row.want || !strings.Contains(text, row.says) {
				t.Errorf("judged %s, want %s; it says\n%s\nwant it to say %q", v.Status, row.want, text, row.says)
			}
		})
	}
}
