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

func TestScenarioIsPlayedAgainOnlyAfterBadLuck(t *testing.T) {
	void := report.Scenario{Status: report.Void, Reason: "the machine was late by up to 600ms", Notes: []string{"in doubt: too slow"}}
	type outcome struct {
		report.Scenario
		luck bool
	}
	passed, failed := outcome{report.Scenario{Status: report.Passed}, false}, outcome{report.Scenario{Status: report.Failed}, false}
	unlucky, unshown := outcome{void, true}, outcome{void, false}
	broken := report.Scenario{Status: report.Broken, Reason: "the start was late by up to 600ms", Notes: void.Notes}
	unstarted := outcome{broken, true}
	for _, row := range []struct {
		name  string
		plays []outcome
		want  report.Status
		times int
	}{
		{"passed at once", []outcome{passed}, report.Passed, 1},
		{"failed", []outcome{failed}, report.Failed, 1},
		{"void for another reason", []outcome{unshown}, report.Void, 1},
		{"unlucky once", []outcome{unlucky, passed}, report.Passed, 2},
		{"unlucky once, then failed", []outcome{unlucky, failed}, report.Failed, 2},
		{"did not start once", []outcome{unstarted, passed}, report.Passed, 2},
		{"did not start once, then failed", []outcome{unstarted, failed}, report.Failed, 2},
		{"never starts", []outcome{unstarted, unstarted, unstarted, passed}, report.Broken, 3},
		{"broke after its start", []outcome{{broken, false}, passed}, report.Broken, 1},
		{"unlucky for ever", []outcome{unlucky, unlucky, unlucky, passed}, report.Void, 3},
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
				got, err := again(func(context.Context, Scenario, Options) (report.Scenario, bool, error) {
					time.Sleep(10 * time.Second)
					times++
					return row.plays[times-1].Scenario, row.plays[times-1].luck, nil
				})(t.Context(), Scenario{}, opts)
				if err != nil || got.Status != row.want || times != row.times {
					t.Errorf("%s after %d plays (%v), want %s after %d", got.Status, times, err, row.want, row.times)
				}
				if want := time.Duration(times) * 10 * time.Second; got.Took != want {
					t.Errorf("took %v, want %v: all the plays count", got.Took, want)
				}
				if len(told) != times-1 || times > 1 && !strings.Contains(told[0], "late by up to 600ms") {
					t.Errorf("told %q, want a line for each play that did not count, with the reason", told)
				}
				doubts := slices.DeleteFunc(slices.Clone(got.Notes), func(n string) bool { return !strings.HasPrefix(n, "time ") || !strings.Contains(n, "in doubt") })
				if want := row.times - 1; len(doubts) != want {
					t.Errorf("notes %q; want what %d plays before had in doubt", got.Notes, want)
				}
			})
		})
	}
}

func TestScenarioIsNotPlayedAgainWhenItWasInterrupted(t *testing.T) {
	ended, times := errors.New("interrupted"), 0
	_, err := again(func(context.Context, Scenario, Options) (report.Scenario, bool, error) {
		times++
		return report.Scenario{Status: report.Void}, true, ended
	})(t.Context(), Scenario{}, Options{})
	if !errors.Is(err, ended) || times != 1 {
		t.Errorf("%d plays, error %v; want one, and that it was interrupted", times, err)
	}
}
