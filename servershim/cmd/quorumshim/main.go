// Command quorumshim says of one etcd member, over the standard gRPC health service, what the
// member cannot say of itself: whether it has a quorum.
//
//	quorumshim serve --etcd-endpoint http://127.0.0.1:2379 --listen 0.0.0.0:2378
//	quorumshim status --endpoints a:2379,b:2379,c:2379
//
// serve runs beside a member until SIGTERM, then answers NOT_SERVING for the drain time and exits;
// a second SIGTERM exits at once. status asks the shims of all members and exits with 0 only if a
// majority of the voters is serving; endpoints of another cluster than most are shown, named on
// stderr, and not counted. Each flag can be given in the environment as well, --etcd-endpoint as
// QUORUMSHIM_ETCD_ENDPOINT; the flag wins.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // from then on a signal ends the process
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "quorumshim:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "quorumshim",
		Short:             "Quorum-aware health of etcd members over grpc.health.v1",
		Version:           version(),
		SilenceErrors:     true, // main prints them
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
