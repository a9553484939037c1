//go:build linux

package suites

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// counted is a cluster with these counts.
type counted struct {
	arrived realetcd.Arrivals
	err     error
}

func (c counted) Arrived() (realetcd.Arrivals, error) { return c.arrived, c.err }

// Counts with a gap that the judge does not hear of would pass what was not counted.
func TestPlayTellsTheJudgeWhatWasCountedAndWhatWasNot(t *testing.T) {
	e := sound()
	gap := "the count at m2 is incomplete: it speaks TLS"
	if err := e.count(counted{arrived: realetcd.Arrivals{Counts: e.Arrived, Gaps: []string{gap}}}); err != nil {
		t.Fatal(err)
	}
	if v := e.Judge(); v.Status != report.Broken || v.Reason != gap || e.Arrived["ours-7"] != 1 {
		t.Errorf("judged %s (%s) with ours-7 counted %d times; want broken with %q, and once", v.Status, v.Reason, e.Arrived["ours-7"], gap)
	}
	oops := errors.New("the file is gone")
	if err := e.count(counted{err: oops}); !errors.Is(err, oops) {
		t.Errorf("counts that cannot be had: %v; want %v", err, oops)
	}
}

// Only what may be bad luck is tried again: not what broke while it played, nor what ended a
// process, which may be ours.
func TestPlayThatDidNotStartIsTriedAgain(t *testing.T) {
	dropped := status.Error(codes.Unknown, "raft proposal dropped")
	for _, row := range []struct {
		name string
		p    *play
		err  error
		want bool
	}{
		{"an election while it starts", &play{st: &Stage{}}, fmt.Errorf("app ours: lease: %w", dropped), true},
		{"a start that took too long", &play{st: &Stage{Cluster: &realetcd.Cluster{}}}, context.DeadlineExceeded, true},
		{"a start that took ours alone too long", &play{st: &Stage{}}, workload.Started(context.DeadlineExceeded, nil), false},
		{"a start that took both too long", &play{st: &Stage{}}, workload.Started(context.DeadlineExceeded, context.DeadlineExceeded), true},
		{"an etcd that cannot be built", &play{}, errors.New("no such version"), false},
		{"an election in a step", &play{st: &Stage{}, stepping: true}, dropped, false},
		{"an application that crashed", &play{st: &Stage{}}, errors.Join(nil, fmt.Errorf("app ours: %w", app.ErrEnded)), false},
		{"a member that crashed", &play{st: &Stage{}}, fmt.Errorf("waiting for m1: %w: %w", realetcd.ErrEnded, dropped), false},
	} {
		if got := row.p.unstarted(row.err); got != row.want {
			t.Errorf("%s: tried again %v, want %v", row.name, got, row.want)
		}
	}
	p := &play{}
	if err := p.steps(t.Context()); err != nil || !p.stepping {
		t.Errorf("after the steps (%v) it says that they had begun: %v", err, p.stepping)
	}
}

// What comes before the first step that the timeline shows is no part of what happens.
func TestPlayRemembersWhenItFirstActed(t *testing.T) {
	p := &play{zero: zero}
	for i, mark := range []Mark{Plain, Noted, Inflicted, Noted, Inflicted, Mended} {
		p.mark(Step{Text: "something", Mark: mark}, at(time.Duration(i)*time.Second))
	}
	if want := at(1 * time.Second); !p.acted.Equal(want) {
		t.Errorf("it first acted at %v; want %v, the first step with a mark", p.acted, want)
	}
	if want := at(2 * time.Second); !p.cut.Equal(want) {
		t.Errorf("the fault began at %v; want %v", p.cut, want)
	}
}
