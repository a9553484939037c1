package e2e_test

import (
	"flag"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/scenario"
)

var (
	full = flag.Bool("full", false, "play all scenarios, not only the quick ones")
	logs = flag.Bool("logs", false, "show what the cluster and our client log")
)

func TestScenarios(t *testing.T) {
	var outs []scenario.Outcome
	for _, sc := range scenario.All() {
		if !sc.Quick && !*full {
			continue
		}
		t.Run(sc.Name, func(t *testing.T) {
			out := play(t, sc)
			outs = append(outs, out)
			for _, v := range out.Violations {
				t.Errorf("%s: %s", sc.Does, v)
			}
			switch {
			case out.Luck(): // as often as it was played
				t.Skipf("%s: %s; in doubt: %q", sc.Does, out.Void, out.Doubts)
			case out.Void != "":
				t.Errorf("%s: void: %s", sc.Does, out.Void)
			}
		})
	}
	var table strings.Builder
	if err := scenario.Report(&table, outs); err != nil {
		t.Fatal(err)
	}
	t.Logf("figures:\n%s", table.String())
}

// play plays a scenario, again while bad luck lets it show nothing and there is time.
func play(t *testing.T, sc scenario.Scenario) scenario.Outcome {
	t.Helper()
	const plays = 3
	const besideSteps = time.Minute
	log := slog.New(slog.DiscardHandler)
	if *logs {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	for n := 1; ; n++ {
		out, err := scenario.Run(t.Context(), sc, scenario.Options{Logger: log})
		t.Logf("moved: %v; the machine was late by %v, at worst %v", out.Moves, out.Lateness.Typical, out.Lateness.Worst)
		deadline, limited := t.Deadline()
		why, unlucky := scenario.Unlucky(out, err)
		if unlucky && n < plays && (!limited || time.Until(deadline) > sc.Lasts()+besideSteps) {
			t.Logf("played again: %s; in doubt: %q", why, out.Doubts)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}
