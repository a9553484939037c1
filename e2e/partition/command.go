//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/suites"
)

// world is what the command acts on. Tests have one of their own.
type world struct {
	out     io.Writer
	catalog []suites.Scenario
	play    player
	enter   func() error
	servers servers
}

// player plays one scenario. An error means that ctx ended; a report that has a status is
// then of what was judged before.
type player func(context.Context, suites.Scenario, suites.Options) (report.Scenario, error)

func realWorld() world {
	return world{out: os.Stdout, catalog: suites.All(), play: suites.Run, enter: nethosts.Enter, servers: realServers{}}
}

func newCommand(w world) *cobra.Command {
	root := &cobra.Command{
		Use:   "partition",
		Short: "Play the partition suites on hosts of their own, on your own etcd",
		Long: "Plays scenarios of the partition suites: real etcd members and two applications, one with\n" +
			"quorumwise and one with the official client, on hosts of their own inside this machine.\n" +
			"It writes a report, and its exit status tells.",
		Args:              cobra.NoArgs,
		SilenceErrors:     true, // main prints them
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(w.out)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w\n%s --help shows the flags", err, cmd.CommandPath())
	})
	root.AddCommand(newList(w), newRun(w), newTable(w))
	for _, cmd := range append(root.Commands(), root) {
		cmd.Args = asUsage(cmd.Args)
	}
	return root
}

// asUsage marks what cobra complains about.
func asUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usagef("%w\n%s --help shows how it is called", err, cmd.CommandPath())
		}
		return nil
	}
}

const patternHelp = "A pattern is a name, a suite, a part of a name, or a glob over names or suite/name\n" +
	"(quote it: 'matrix/cut-*'); \"all\" is every scenario."

func newList(w world) *cobra.Command {
	return &cobra.Command{
		Use:   "list [pattern...]",
		Short: "List the scenarios: what they do, how long they take, what they need",
		Long:  "Lists the scenarios.\n\n" + patternHelp,
		Args:  cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, patterns []string) error {
			if len(patterns) == 0 {
				patterns = []string{everything}
			}
			scs, err := choose(w.catalog, patterns)
			if err != nil {
				return err
			}
			return writeList(w.out, scs)
		},
	}
}

func newRun(w world) *cobra.Command {
	var set settings
	cmd := &cobra.Command{
		Use:   "run [pattern...]",
		Short: "Play scenarios; without a pattern the quick ones, one for each mechanism",
		Long: "Plays the scenarios that fit any of the patterns, in the order of the list; without\n" +
			"a pattern the quick ones, one for each mechanism.\n\n" + patternHelp + "\n\n" +
			"A scenario that only shows that this machine was late is played again, twice at most;\n" +
			"it says so.\n\n" +
			"Ctrl-C ends it with a report of what was played; nothing is left behind.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, patterns []string) error {
			set.patterns = patterns
			return w.run(cmd.Context(), set)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&set.etcd, "etcd", "", "path of the etcd server to test; without it one is built")
	fs.StringVar(&set.etcdVersion, "etcd-version", "", "version of etcd to build and test, such as 3.6 or 3.6.16 (default the one that quorumwise is made with)")
	fs.IntVar(&set.members, "members", 0, "members of every cluster, 3 to 9 (default as each scenario says)")
	fs.DurationVar(&set.duration, "duration", 0, "how long a soak lasts (default 1m)")
	fs.Int64Var(&set.seed, "seed", 0, "of everything that is chosen by chance; the same seed plays the same (default by chance; always printed)")
	fs.StringVar(&set.report, "report", "", "directory of the report, made if it is not there (default a new one for temporary files)")
	fs.IntVar(&set.parallel, "parallel", 1, "scenarios played at the same time; more make the machine late, and figures worse")
	return cmd
}

// run is called twice: outside it prepares what the lab cannot reach, then it enters the
// lab, which starts this program again; inside it finds what was prepared.
func (w world) run(ctx context.Context, set settings) error {
	scs, err := set.check(w.catalog)
	if err != nil {
		return err
	}
	pre, err := findPrepared()
	if err != nil {
		return err
	}
	if pre == nil {
		pre, err = prepare(ctx, set, scs, w.servers, os.Stderr)
		switch {
		case ctx.Err() != nil: // whatever it was that could not be ended in peace
			return errInterrupted
		case err != nil:
			return err
		}
		if err := pre.hand(); err != nil {
			return err
		}
	}
	if err := w.enter(); err != nil {
		if ctx.Err() != nil { // while it was entered
			return errInterrupted
		}
		return &missingError{err}
	}
	dropPrepared()
	p, err := newPlan(set, scs, *pre)
	if err != nil {
		return err
	}
	return w.playAndReport(ctx, p)
}

func (w world) playAndReport(ctx context.Context, p plan) error {
	log, closeLog, err := openLog(p.dir)
	if err != nil {
		return err
	}
	defer closeLog()
	show := newScreen(w.out, os.Getenv)
	run := play(ctx, p, w.play, show, log)
	if err := report.Write(p.dir, run); err != nil {
		return err
	}
	return conclude(w.out, p, run)
}

// conclude says how it went, and where to read on.
func conclude(out io.Writer, p plan, run report.Run) error {
	fmt.Fprintln(out)
	if err := report.Table(out, run); err != nil {
		return err
	}
	for _, line := range closing(p, run) {
		fmt.Fprintln(out, line)
	}
	switch {
	case run.Ended != "":
		return errInterrupted
	case !run.OK():
		return errNotOK
	default:
		return nil
	}
}

// openLog opens what lab, members and clients log.
func openLog(dir string) (*slog.Logger, func(), error) {
	f, err := os.Create(logPath(dir))
	if err != nil {
		return nil, nil, err
	}
	return slog.New(slog.NewTextHandler(f, nil)), func() { f.Close() }, nil
}
