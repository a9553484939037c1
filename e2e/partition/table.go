//go:build linux

package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/suites"
)

func newTable(w world) *cobra.Command {
	var markdown bool
	cmd := &cobra.Command{
		Use:   "table results.json...",
		Short: "Show the figures per fault of runs that were played, all together",
		Long: "Shows the figures per fault of runs, from the results.json of their reports, all together.\n" +
			"A budget that an older report does not tell is that of the scenario as it is now.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error {
			var all report.Run
			for _, path := range paths {
				run, err := readResults(path)
				if err != nil {
					return err
				}
				all.Scenarios = append(all.Scenarios, run.Scenarios...)
			}
			budgeted(all.Scenarios, w.catalog)
			if markdown {
				return report.Markdown(w.out, all)
			}
			return report.Table(w.out, all)
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "as a Markdown table")
	return cmd
}

// budgeted gives scenarios of reports from before they told their budget that of the catalog.
func budgeted(played []report.Scenario, catalog []suites.Scenario) {
	for i := range played {
		r := &played[i]
		if r.Budget != (report.Budget{}) {
			continue
		}
		for _, sc := range catalog {
			if sc.Suite == r.Suite && sc.Name == r.Name {
				r.Budget = report.Budget(sc.Budget)
			}
		}
	}
}

func readResults(path string) (report.Run, error) {
	f, err := os.Open(path)
	if err != nil {
		return report.Run{}, usagef("%w: give the %s of a report", err, report.JSONName)
	}
	defer f.Close()
	run, err := report.ReadJSON(f)
	if err != nil {
		return report.Run{}, usagef("%s: %w", path, err)
	}
	return run, nil
}
