// Command demo shows what quorumwise is for, in less than half a minute:
//
//	go run ./e2e/demo
//
// It runs three real etcd members in this process, each with a shim beside it, and
// two applications under the same load: one with quorumwise, one with the official
// client. Then it takes a follower's peers away, gives them back, and says what the
// users of both have seen. --fault plays another scenario.
//
// On a terminal it draws a screen in place; into a pipe, or with --verbose, it
// writes plain lines. NO_COLOR is respected. The exit status is 0 only if
// quorumwise kept its promises and the official client got stuck as expected. Where
// the machine was too late, or the cluster itself stood still for too long or did not
// start, nothing is shown, and it is played again, three times at most.
//
// What is seen and how it is shown are apart: [gatherer] reads the running stage
// into a [picture], [narrator] turns changes of pictures into events, and pure
// functions turn pictures and outcomes into lines. One goroutine owns all of that.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// interruptedStatus is what shells expect of a command that Ctrl-C ended.
const interruptedStatus = 130

func main() {
	// A reader that leaves (| head) must not leave a cluster behind: the display ends
	// the demonstration when it can write no more.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // from then on a signal ends the process
	os.Exit(exitStatus(ctx, newCommand(os.Stdout).ExecuteContext(ctx), os.Stderr))
}

func exitStatus(ctx context.Context, err error, complain io.Writer) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errVerdict):
		return 1 // it stands on the screen already
	case ctx.Err() != nil:
		fmt.Fprintln(complain, "demo: interrupted; everything is stopped and removed")
		return interruptedStatus
	default:
		fmt.Fprintln(complain, "demo:", err)
		return 1
	}
}
