//go:build linux

package suites

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
)

func TestScenarioIsPlayedAgainOnlyWhereTheMachineWasTooLateToTell(t *testing.T) {
	late := report.Lateness{Worst: 600 * time.Millisecond}
	passed, failed := report.Scenario{Status: report.Passed}, report.Scenario{Status: report.Failed, Lateness: late}
	void := report.Scenario{Status: report.Void, Reason: "it tells nothing", Notes: []string{"in doubt: too slow"}, Lateness: late}
	calm := report.Scenario{Status: report.Void, Reason: "the official client was not stuck"}
	for _, row := range []struct {
		name  string
		plays []report.Scenario
		want  report.Status
		times int
	}{
		{"passed at once", []report.Scenario{passed}, report.Passed, 1},
		{"failed on a late machine", []report.Scenario{failed}, report.Failed, 1},
		{"void on a machine in time", []report.Scenario{calm}, report.Void, 1},
		{"late once", []report.Scenario{void, passed}, report.Passed, 2},
		{"late once, then failed", []report.Scenario{void, failed}, report.Failed, 2},
		{"late for ever", []report.Scenario{void, void, void, passed}, report.Void, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				times := 0
				opts := Options{Progress: func(p Progress) {
					if p.Again {
						told = append(told, p.Text)
					}
				}}
				got, err := again(func(context.Context, Scenario, Options) (report.Scenario, error) {
					time.Sleep(10 * time.Second)
					times++
					return row.plays[times-1], nil
				})(t.Context(), Scenario{}, opts)
				if err != nil || got.Status != row.want || times != row.times {
					t.Errorf("%s after %d plays (%v), want %s after %d", got.Status, times, err, row.want, row.times)
				}
				if want := time.Duration(times) * 10 * time.Second; got.Took != want {
					t.Errorf("took %v, want %v: all the plays count", got.Took, want)
				}
				if len(told) != times-1 || times > 1 && !strings.Contains(told[0], "late by up to 600ms") {
					t.Errorf("told %q, want one line for each play that did not count, with how late the machine was", told)
				}
				doubts := slices.DeleteFunc(slices.Clone(got.Notes), func(n string) bool { return !strings.Contains(n, "in doubt") })
				if want := row.times - 1; row.want != report.Void && len(doubts) != want {
					t.Errorf("notes %q; want what %d plays before had in doubt", got.Notes, want)
				}
			})
		})
	}
}

func TestScenarioIsNotPlayedAgainWhenItWasInterrupted(t *testing.T) {
	ended, times := errors.New("interrupted"), 0
	_, err := again(func(context.Context, Scenario, Options) (report.Scenario, error) {
		times++
		return report.Scenario{Status: report.Void, Lateness: report.Lateness{Worst: time.Second}}, ended
	})(t.Context(), Scenario{}, Options{})
	if !errors.Is(err, ended) || times != 1 {
		t.Errorf("%d plays, error %v; want one, and that it was interrupted", times, err)
	}
}
