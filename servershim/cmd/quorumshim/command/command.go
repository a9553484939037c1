package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// Run runs the command with args, which do not include its name, until it ends or the process is
// sent SIGINT or SIGTERM, and returns the status to exit with. A second signal ends the process.
func Run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // from then on a signal ends the process
	cmd := newCommand()
	cmd.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "quorumshim:", err)
		return 1
	}
	return 0
}

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "quorumshim",
		Short:             "Quorum-aware health of etcd members over grpc.health.v1",
		Version:           version(),
		SilenceErrors:     true, // Run prints them
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd.Flags()) },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	cmd.AddCommand(newServeCommand(), newStatusCommand())
	return cmd
}

// version is that of the module when it was installed as one, else the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version + " " + info.GoVersion
}
