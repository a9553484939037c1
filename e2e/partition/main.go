//go:build linux

// Command partition plays the partition suites on hosts of their own, on the etcd that
// you name, and writes a report:
//
//	go run ./e2e/partition list
//	go run ./e2e/partition run                          # the quick ones
//	go run ./e2e/partition run all --etcd /usr/bin/etcd # everything, on your binary
//	go run ./e2e/partition run 'matrix/*-cut-*' --etcd-version 3.6 --seed 7
//	go run ./e2e/partition table --markdown report/results.json
//
// list, table and help need nothing. run needs Linux, permission to make namespaces, and the
// commands ip and nft; it says what is missing. It changes nothing outside namespaces
// of its own, and nothing is left when it ends in whatever way.
//
// The exit status is 0 only if every scenario passed, or some did and the others were
// skipped for a reason that is told; 1 if one failed, was void or could not be played; 2 if it was called wrongly; 3
// if this machine cannot have the lab or the etcd server; 130 after Ctrl-C, with a
// report of what was played. (go run itself ends with 1 whenever the status is not 0;
// go build keeps it.)
//
// Flags become [settings], patterns a list of scenarios, both become a [plan]; [play]
// owns the board that the screen shows, and hears of everything by one channel.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// Exit statuses.
const (
	statusOK          = 0
	statusNotOK       = 1 // something failed, was void, or could not be played
	statusUsage       = 2
	statusMissing     = 3 // no lab, or no etcd server
	statusInterrupted = 130
)

// outsideWords are first words of a command line that the user has written and that
// need no lab; run prepares itself before it enters one.
var outsideWords = []string{"run", "list", "table", "help", "-h", "--help"}

func main() {
	realetcd.Register()
	app.Register()
	if isOfLab(os.Args[1:]) {
		// Programs of the lab end here. If it is a user's typing error after all, the
		// command explains it, with a lab or without.
		_ = nethosts.Enter()
	}
	// A reader that leaves (| head) must not cost the report.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // from then on a signal ends the process
	err := newCommand(realWorld()).ExecuteContext(ctx)
	os.Exit(exitStatus(err, os.Stderr))
}

// isOfLab says that the arguments may be those of a program that the lab has started:
// whatever no user would write.
func isOfLab(args []string) bool {
	return len(args) == 0 || !slices.Contains(outsideWords, args[0])
}

// usageError is what the user can mend on the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// missingError is what this machine lacks.
type missingError struct{ err error }

func (e *missingError) Error() string { return e.err.Error() }
func (e *missingError) Unwrap() error { return e.err }

// What stands on the screen already.
var (
	errNotOK       = errors.New("not every scenario passed")
	errInterrupted = errors.New("interrupted")
)

// exitStatus says what went wrong, where that is not said yet.
func exitStatus(err error, complain io.Writer) int {
	switch {
	case err == nil:
		return statusOK
	case errors.Is(err, errInterrupted):
		return statusInterrupted
	case errors.Is(err, errNotOK):
		return statusNotOK
	}
	fmt.Fprintln(complain, "partition:", err)
	if _, ok := errors.AsType[*usageError](err); ok {
		return statusUsage
	}
	if _, ok := errors.AsType[*missingError](err); ok {
		return statusMissing
	}
	return statusNotOK
}
