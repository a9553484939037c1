// Command figures measures what the README states: how soon a bad member is
// left, what the client costs where nothing is wrong, and what a shim costs.
// Every figure is taken beside the official client in the same run.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root := &cobra.Command{
		Use:          "figures",
		Short:        "Measure what the README states",
		SilenceUsage: true,

		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(leavingCommand(), throughputCommand(), shimCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
