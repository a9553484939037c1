//go:build linux

package suites

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// grades of m2 as pairs of moment and grade.
func grades(pairs ...any) []app.Grade {
	var gs []app.Grade
	for i := 0; i < len(pairs); i += 2 {
		gs = append(gs, app.Grade{At: at(pairs[i].(time.Duration)), Endpoint: address("m2"), Grade: pairs[i+1].(string), Reason: "no-quorum"})
	}
	return gs
}

// A claim is tried on evidence in which it holds and on one in which it does not.
type claimCase struct {
	name  string
	claim func(*Evidence) []string
	plant func(*Evidence)
	want  string // part of the violation; "" none
}

// timed is a claim about time as one about lines.
func timed(claim func(*Evidence) findings) func(*Evidence) []string {
	return func(e *Evidence) []string { return claim(e).texts() }
}

func TestClaimsFindWhatIsPlanted(t *testing.T) {
	shim := func(member, says string, from, to time.Duration) func(*Evidence) {
		return func(e *Evidence) {
			e.sample(from, member, realetcd.NoQuorum)
			e.Samples[len(e.Samples)-1].Shim = says
			e.sample(to, member, realetcd.Quorum)
		}
	}
	const no = realetcd.ShimNotServing + " (no-quorum)"
	saysNo := shim("m2", no, cutAt+400*time.Millisecond, healedAt+time.Second)
	ms := time.Millisecond
	// named has m2, whose shim says no, name a leader in stretches, and be mute in between.
	named := func(stretches ...time.Duration) func(*Evidence) {
		return func(e *Evidence) {
			e.seen("m2", cutAt, healedAt, realetcd.Mute)
			e.Samples[len(e.Samples)-2].Leader, e.Samples[len(e.Samples)-2].Shim = 0, no
			for i, d := range stretches {
				e.sample(d, "m2", realetcd.Mute)
				last := &e.Samples[len(e.Samples)-1]
				last.Shim = no
				if i%2 == 1 {
					last.Leader = 0
				}
			}
		}
	}
	for _, c := range []claimCase{
		{"left once", timed(leftOnce), func(e *Evidence) {
			e.Ours.Grades = grades(leftAt, "suspect", leftAt+300*ms, "unhealthy", healedAt+500*ms, "healthy")
		}, ""},
		{"never left", timed(leftOnce), func(e *Evidence) { e.Ours.Grades = grades(leftAt, "suspect", leftAt+200*ms, "healthy") }, "given up 0 times"},
		{"up and down", timed(leftOnce), func(e *Evidence) {
			e.Ours.Grades = grades(leftAt, "unhealthy", leftAt+time.Second, "healthy", leftAt+2*time.Second, "unhealthy", healedAt+500*ms, "healthy")
		}, "given up 2 times"},
		{"back too soon", timed(leftOnce), func(e *Evidence) { e.Ours.Grades = grades(leftAt, "unhealthy", healedAt-time.Second, "unknown") }, "before the heal"},
		{"never back", timed(leftOnce), func(e *Evidence) { e.Ours.Grades = grades(leftAt, "unhealthy") }, "not taken back"},

		{"nobody left", timed(nobodyLeft), func(e *Evidence) { e.Ours.Grades = grades(leftAt, "suspect") }, ""},
		{"somebody left", timed(nobodyLeft), func(e *Evidence) { e.Ours.Grades = grades(leftAt, "unhealthy") }, "m2 was given up"},

		{"shim says no", timed(shimSaysNo(800 * ms)), saysNo, ""},
		{"shim says nothing", timed(shimSaysNo(800 * ms)), func(*Evidence) {}, "never said"},
		{"shim says no too late", timed(shimSaysNo(800 * ms)), shim("m2", no, cutAt+2*time.Second, healedAt), "after 2"},
		{"shim takes it back", timed(shimSaysNo(800 * ms)), shim("m2", no, cutAt+400*ms, healedAt-time.Second), "SERVING again"},

		{"others serve", timed(othersServe), saysNo, ""},
		{"another does not", timed(othersServe), shim("m3", no, leftAt, leftAt+200*ms), "the shim of m3"},

		{"a leader is named", timed(leaderNamedAllTheSame), saysNo, ""},
		{"none is named", timed(leaderNamedAllTheSame), func(e *Evidence) {
			saysNo(e)
			for i := range e.Samples {
				e.Samples[i].Leader = 0
			}
		}, "named itself for 0s"},
		{"one is named once, before the heal", timed(leaderNamedAllTheSame), named(healedAt-200*ms, healedAt), "named itself for 0s"},
		{"one is named soon after the fault only", timed(leaderNamedAllTheSame), named(cutAt, cutAt+3*time.Second), "named itself for 1s"},
		{"one is named now and then", timed(leaderNamedAllTheSame), named(cutAt, cutAt+3*time.Second, cutAt+3200*ms, healedAt), "named itself for 1.3s"},
		{"one is named for long enough", timed(leaderNamedAllTheSame), named(cutAt, cutAt+4100*ms), ""},
		{"one is named, and the shim serves", timed(leaderNamedAllTheSame), func(*Evidence) {}, "named itself for 0s"},
		{"another one is named", timed(leaderNamedAllTheSame), func(e *Evidence) {
			saysNo(e)
			e.Samples[len(e.Samples)-2].Leader = 3
		}, "named itself for 0s"},

		{"keepalives left", timed(keepalivesLeft), func(*Evidence) {}, ""},
		{"keepalives left both", timed(keepalivesLeft), func(e *Evidence) { e.Second = "m3"; e.keepalive("m3", at(leftAt)) }, ""},
		{"a keepalive stayed", timed(keepalivesLeft), func(e *Evidence) { e.keepalive("m2", time.Time{}) }, "stayed on m2"},
		{"a keepalive stayed on the second", timed(keepalivesLeft), func(e *Evidence) {
			e.Second = "m3"
			e.keepalive("m3", at(leftAt))
			e.keepalive("m3", at(cutAt+4*time.Second))
		}, "stayed on m3"},
		{"no keepalive was there", timed(keepalivesLeft), func(e *Evidence) { e.calm("m2") }, "no keepalive stream of ours stood on m2"},
		{"a keepalive came too late, another left too soon", timed(keepalivesLeft), func(e *Evidence) {
			e.calm("m2")
			e.keepalive("m2", at(cutAt-ms))
			e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodKeepAlive, Address: address("m2"), Began: at(cutAt + ms), Ended: at(leftAt)})
		}, "no keepalive stream of ours stood on m2"},
		{"no keepalive was on the second", timed(keepalivesLeft), func(e *Evidence) { e.Second = "m3"; e.calm("m3") }, "no keepalive stream of ours stood on m3"},

		{"nothing moved", timed(noStreamMoved), func(e *Evidence) { e.full(leftAt+ms, healedAt) }, ""},
		{"something moved", timed(noStreamMoved), func(e *Evidence) { e.full(cutAt, healedAt) }, "left m2"},
		{"the quota was never full", timed(noStreamMoved), func(*Evidence) {}, "not used up"},

		{"left once bad", timed(leftOnceBad(time.Second)), func(*Evidence) {}, "after 4.25s"},
		{"left in time once bad", timed(leftOnceBad(time.Second)), func(e *Evidence) {
			e.Ours.Attempts = slices.DeleteFunc(e.Ours.Attempts, func(a workload.Attempt) bool { return a.Address == address("m2") && a.Began.After(at(healedAt)) })
		}, ""},
		{"never bad", timed(leftOnceBad(time.Second)), func(e *Evidence) { e.seen("m2", loadEnds, loadEnds, realetcd.Quorum) }, "never stopped serving"},

		{"streams spread", timed(streamsSpread), func(e *Evidence) { e.watches("m2", "m1", "m3") }, ""},
		{"a member got none back", timed(streamsSpread), func(e *Evidence) { e.watches("m1", "m1", "m3") }, "m2 carries 0 of 3"},
		{"a stream twice", timed(streamsSpread), func(e *Evidence) {
			e.watches("m2", "m1", "m3")
			e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodWatch, Watch: "w0", Address: address("m2"), Began: at(healedAt)})
		}, "w0 is open 2 times"},
		{"a stream less", timed(streamsSpread), func(e *Evidence) {
			e.watches("m2", "m1", "m3", "m1")
			e.Ours.Attempts[len(e.Ours.Attempts)-1].Ended = at(healedAt)
		}, "w3 is open 0 times"},
		{"a stream of later, and a recipe's", timed(streamsSpread), func(e *Evidence) {
			e.watches("m2", "m1", "m3")
			for _, name := range []string{"late", ""} {
				e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodWatch, Watch: name, Address: address("m1"), Began: at(healedAt)})
			}
		}, ""},

		{"learner used in time", learnerUnused, func(e *Evidence) { e.learner("m3", 0) }, ""},
		{"learner used early", learnerUnused, func(e *Evidence) { e.learner("m3", healedAt) }, "before it had its vote"},
		{"learner never used", learnerUnused, func(e *Evidence) { e.learner("m9", 0) }, "no call went to the learner"},

		{"a remark", brokenClaims, func(e *Evidence) { e.Marks = []report.Mark{{Text: "fine"}} }, ""},
		{"a broken claim", brokenClaims, func(e *Evidence) { e.Marks = []report.Mark{{Text: brokenClaim + "it broke"}} }, "it broke"},
		{"a late claim", timed(lateClaims), func(e *Evidence) { e.Marks = []report.Mark{{Text: lateClaim + "it was late"}} }, "it was late"},
		{"a late claim is not a broken one", brokenClaims, func(e *Evidence) { e.Marks = []report.Mark{{Text: lateClaim + "it was late"}} }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := sound()
			c.plant(e)
			got := strings.Join(c.claim(e), "; ")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("violations %q; want one with %q", got, c.want)
			}
		})
	}
}

// watches has our watch streams, each on its member from the start.
func (e *Evidence) watches(members ...string) {
	e.Ours.Attempts = nil
	for i, m := range members {
		e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodWatch, Watch: fmt.Sprint("w", i), Address: address(m), Began: at(loadBegins)})
	}
}

// keepalive is a keepalive stream of ours that stood on a member from the start to a moment.
func (e *Evidence) keepalive(member string, ended time.Time) {
	e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: workload.MethodKeepAlive, Address: address(member), Began: at(loadBegins), Ended: ended})
}

// calm takes away our keepalive streams on a member.
func (e *Evidence) calm(member string) {
	e.Ours.Attempts = slices.DeleteFunc(e.Ours.Attempts, func(a workload.Attempt) bool {
		return a.Method == workload.MethodKeepAlive && a.Address == address(member)
	})
}

// full has the quota used up for a time.
func (e *Evidence) full(from, to time.Duration) {
	e.Marks = []report.Mark{{At: from, Text: quotaUsedUp}, {At: to, Text: quotaFreed}}
}

// learner has a member join at once and be promoted later. Calls went to m3 all the time.
func (e *Evidence) learner(member string, promoted time.Duration) {
	e.Marks = []report.Mark{{Text: learnerJoined + address(member)}, {At: promoted, Text: learnerPromoted + address(member)}}
}

func TestSuspicionThatPassedIsNoEjection(t *testing.T) {
	ms := time.Millisecond
	got := ejections(grades(1*ms, "healthy", 2*ms, "suspect", 3*ms, "unhealthy", 4*ms, "suspect", 5*ms, "unhealthy", 6*ms, "healthy", 7*ms, "parked"), address("m2"))
	want := []ejection{{at(3 * ms), at(6 * ms), "no-quorum"}, {From: at(7 * ms), Reason: "no-quorum"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := ejections(grades(1*ms, "unhealthy"), address("m1")); got != nil {
		t.Errorf("of another member: %v, want none", got)
	}
}
