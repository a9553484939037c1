package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumwise/quorumwise/e2e/scenario"
)

const (
	defaultFault = "follower-cut"
	listFaults   = "list"
)

// calmBefore is added to the calm that a scenario begins with, so that a reader
// sees both clients at work before anything happens.
const calmBefore = 1500 * time.Millisecond

func newCommand(out *os.File) *cobra.Command {
	var fault string
	var verbose bool
	cmd := &cobra.Command{
		Use:               "demo",
		Short:             "Show the official etcd client and quorumwise on a member that loses its quorum",
		Args:              cobra.NoArgs,
		SilenceErrors:     true, // main prints them
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fault == listFaults {
				return writeFaults(out)
			}
			sc, err := findFault(fault)
			if err != nil {
				return err
			}
			show := newDisplay(out, os.Getenv, verbose)
			log := slog.New(slog.DiscardHandler)
			if verbose {
				log = slog.New(slog.NewTextHandler(logWriter{show}, nil))
			}
			return play(cmd.Context(), sc, show, log)
		},
	}
	cmd.SetOut(out)
	cmd.Flags().StringVar(&fault, "fault", defaultFault, "what happens to the cluster; \"list\" shows every name")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "show the log lines of the cluster and of our client, in plain lines")
	return cmd
}

// findFault returns the scenario, with some calm put before it.
func findFault(name string) (scenario.Scenario, error) {
	for _, sc := range scenario.All() {
		if sc.Name == name {
			sc.Steps = append([]scenario.Step{{Wait: calmBefore}}, sc.Steps...)
			return sc, nil
		}
	}
	var names strings.Builder
	if err := writeFaults(&names); err != nil {
		return scenario.Scenario{}, err
	}
	return scenario.Scenario{}, fmt.Errorf("--fault %q is none of these:\n%s", name, strings.TrimRight(names.String(), "\n"))
}

func writeFaults(w io.Writer) error {
	var rows [][]line
	for _, sc := range scenario.All() {
		rows = append(rows, []line{sentence(plain, "%s", sc.Name), sentence(plain, "%s", sc.Does)})
	}
	for _, l := range table([]column{{title: "fault"}, {title: "what happens"}}, rows, 0) {
		if _, err := fmt.Fprintln(w, l.text(0)); err != nil {
			return err
		}
	}
	return nil
}
