package e2e_test

import (
	"flag"
	"log/slog"
	"os"
	"strings"
	"testing"

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
			log := slog.New(slog.DiscardHandler)
			if *logs {
				log = slog.New(slog.NewTextHandler(os.Stderr, nil))
			}
			out, err := scenario.Run(t.Context(), sc, scenario.Options{Logger: log})
			if err != nil {
				t.Fatal(err)
			}
			outs = append(outs, out)
			t.Logf("moved: %v; the machine was late by %v, at worst %v", out.Moves, out.Lateness.Typical, out.Lateness.Worst)
			if out.Void != "" {
				t.Errorf("%s: void: %s", sc.Does, out.Void)
			}
			for _, v := range out.Violations {
				t.Errorf("%s: %s", sc.Does, v)
			}
		})
	}
	var table strings.Builder
	if err := scenario.Report(&table, outs); err != nil {
		t.Fatal(err)
	}
	t.Logf("figures:\n%s", table.String())
}
