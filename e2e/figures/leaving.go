package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumwise/quorumwise/e2e/scenario"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// defaultScenarios are the ones that the README has a row for.
var defaultScenarios = []string{"follower-cut", "leader-cut", "client-cut", "follower-frozen", "follower-cut-no-shim"}

func leavingCommand() *cobra.Command {
	var runs int
	cmd := &cobra.Command{
		Use:   "leaving [scenario...]",
		Short: "How soon a bad member is left: median and worst of many runs",
		RunE: func(cmd *cobra.Command, names []string) error {
			if runs < 1 {
				return fmt.Errorf("--runs = %d: want at least 1", runs)
			}
			if len(names) == 0 {
				names = defaultScenarios
			}
			scs, err := pick(names)
			if err != nil {
				return err
			}
			return leaving(cmd.Context(), cmd.OutOrStdout(), scs, runs)
		},
	}
	cmd.Flags().IntVar(&runs, "runs", 10, "how often each scenario is played")
	return cmd
}

// pick finds scenarios by name.
func pick(names []string) ([]scenario.Scenario, error) {
	var scs []scenario.Scenario
	var known []string
	for _, sc := range scenario.All() {
		known = append(known, sc.Name)
	}
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, fmt.Errorf("no scenario %q: want one of %s", name, strings.Join(known, ", "))
		}
		scs = append(scs, scenario.All()[i])
	}
	return scs, nil
}

// leaving plays the scenarios and prints a table.
func leaving(ctx context.Context, w io.Writer, scs []scenario.Scenario, runs int) error {
	rows := make([][]scenario.Outcome, len(scs))
	bad := 0
	for i, sc := range scs {
		for run := range runs {
			out, err := scenario.Run(ctx, sc, scenario.Options{})
			if err != nil {
				return err
			}
			rows[i] = append(rows[i], out)
			fmt.Fprintf(w, "%s %d/%d: ok %v, machine late by at most %v %s\n", sc.Name, run+1, runs, out.OK(), out.Lateness.Worst.Round(time.Millisecond), strings.Join(append(out.Violations, out.Void), "; "))
			if !out.OK() {
				bad++
			}
		}
	}
	fmt.Fprintf(w, "\nms from the fault (beyond the election, where there is one): median / worst of %d runs\n\n", runs)
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "| scenario\t| last new call\t| last read re-sent\t| last stream moved\t| added watch lag\t| official: lag\t| official: longest Get\t| leases lost, ours / official\t|")
	fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for i, sc := range scs {
		fmt.Fprintf(t, "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t|\n", sc.Name,
			column(rows[i], beyond(func(f workload.Figures) time.Duration { return f.LastCall })),
			column(rows[i], beyond(func(f workload.Figures) time.Duration { return f.LastRead })),
			column(rows[i], beyond(func(f workload.Figures) time.Duration { return f.LastStream })),
			column(rows[i], func(o scenario.Outcome) time.Duration { return o.Ours.Lag }),
			column(rows[i], func(o scenario.Outcome) time.Duration { return o.Control.Lag }),
			column(rows[i], func(o scenario.Outcome) time.Duration { return o.Control.GetMax }),
			lost(rows[i]))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d runs were void or broke a promise", bad)
	}
	return nil
}

// beyond takes a figure of ours without the election that came first.
func beyond(f func(workload.Figures) time.Duration) func(scenario.Outcome) time.Duration {
	return func(o scenario.Outcome) time.Duration {
		d := f(o.Ours)
		if d == workload.Never {
			return d
		}
		return max(0, d-o.Elected)
	}
}

func column(outs []scenario.Outcome, f func(scenario.Outcome) time.Duration) string {
	var all []time.Duration
	for _, o := range outs {
		all = append(all, f(o))
	}
	return ms(median(all)) + " / " + ms(slices.Max(all))
}

func lost(outs []scenario.Outcome) string {
	var ours, official int
	for _, o := range outs {
		ours += o.Ours.LeasesLost
		official += o.Control.LeasesLost
	}
	return fmt.Sprintf("%d / %d", ours, official)
}

func ms(d time.Duration) string {
	if d == workload.Never {
		return "never"
	}
	return fmt.Sprint(d.Milliseconds())
}

func median[T cmp.Ordered](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
