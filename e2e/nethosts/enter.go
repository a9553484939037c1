//go:build linux

package nethosts

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// One program, four parts. The environment tells a process which one it plays;
// Enter takes the variable away, so that no child inherits a part by accident.
//
//	outside  no part: starts init in new namespaces and ends as that ends
//	init     process 1 of the namespaces: prepares them, starts the harness,
//	         buries orphans, ends when the harness or the one outside does
//	harness  what the user wrote: Enter returned there
//	program  a registered program on a host
const (
	partEnv     = "QUORUMWISE_LAB_PART"
	partInit    = "init"
	partProbe   = "probe" // an init that prepares, tells what is missing, and ends
	partHarness = "harness"
	partProgram = "program:" // followed by its name
)

var (
	programs = map[string]func() int{} // written before Enter, by one goroutine
	inside   *namespace                // the harness's own network; nil: not in a lab
	outside  *namespace                // the network that the process was started in
)

// Register names a program that [Host.StartSelf] can run. Call it before
// [Enter], from main, TestMain or an init function. Two programs with one name
// are a mistake of the caller's and panic.
func Register(name string, main func() int) {
	if _, ok := programs[name]; ok {
		panic(fmt.Sprintf("nethosts: program %q is registered twice", name))
	}
	programs[name] = main
}

// Enter is to be called first in main or TestMain, before anything that has an
// effect, because what stands before it runs in every part.
//
// In a process that [Host.StartSelf] started, it runs that program and exits with
// its status. Otherwise it runs this very program again (same arguments,
// environment, standard files and working directory) as root of new namespaces
// for processes, mounts and networks, hands it the signals that ask a program
// to end, and exits with its status; there Enter returns nil. What the lab makes
// lives inside these namespaces: when the process ends in whatever way, or the
// one outside does, the kernel removes all of it.
//
// A [MissingError] says that this machine cannot have a lab; the process is then
// still where it was.
func Enter() error {
	guardMain()
	part := os.Getenv(partEnv)
	if err := os.Unsetenv(partEnv); err != nil {
		return fmt.Errorf("nethosts: %w", err)
	}
	switch {
	case inside != nil:
		return nil
	case strings.HasPrefix(part, partProgram):
		os.Exit(runProgram(strings.TrimPrefix(part, partProgram)))
	case part == partInit || part == partProbe:
		os.Exit(runInit(part))
	case part == partHarness:
		return settle()
	}
	return goInside()
}

func runProgram(name string) int {
	main, ok := programs[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "nethosts: no program is registered as %q, only %q: Register has to be called before Enter\n",
			name, slices.Sorted(maps.Keys(programs)))
		return 2
	}
	return main()
}

// outsideFD is the descriptor through which the harness gets to know the
// network outside.
const outsideFD = 3

// settle makes this process the harness: it runs inside, all is prepared.
func settle() error {
	adoptGuard()
	syscall.CloseOnExec(outsideFD)
	home, err := currentNamespace()
	if err != nil {
		return err
	}
	inside, outside = home, &namespace{file: os.NewFile(outsideFD, "network outside")}
	return avoidProxies()
}

// avoidProxies keeps what the harness sends to hosts off a proxy that the
// environment names. gRPC asks the environment too.
func avoidProxies() error {
	for _, key := range []string{"NO_PROXY", "no_proxy"} {
		value := addressSpace.String()
		if old := os.Getenv(key); old != "" {
			value = old + "," + value
		}
		if err := os.Setenv(key, value); err != nil {
			return fmt.Errorf("nethosts: %w", err)
		}
	}
	return nil
}

// Outside runs f on an operating system thread in the network that the process
// was started in, where a module proxy can be reached; programs that f starts
// see that network too. Before Enter, and where Enter found no lab, f just runs.
// An [UnavailableError] where it is not allowed, which is so without root: what
// is needed from that network has to be fetched before Enter then.
func Outside(f func() error) error {
	if outside == nil {
		return f()
	}
	if err := mayLeave(); err != nil {
		return err
	}
	return outside.do(f)
}

// mayLeave tries once if the process may go back to the network outside.
var mayLeave = sync.OnceValue(func() error {
	err := outside.do(func() error { return nil })
	if err == nil {
		return nil
	}
	return &UnavailableError{
		What: "the network outside of the lab",
		Why:  fmt.Sprintf("%v: run as root, or fetch what is needed before nethosts.Enter", err),
	}
})

// namespace is a network namespace, kept alive by a descriptor. It has no name
// anywhere.
type namespace struct{ file *os.File }

// currentNamespace is the network of the calling thread.
func currentNamespace() (*namespace, error) {
	f, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("nethosts: own network namespace: %w", err)
	}
	return &namespace{file: f}, nil
}

func (n *namespace) close() error { return n.file.Close() }

// enter moves the calling thread, which must be locked.
func (n *namespace) enter() error {
	if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("nethosts: setns to %s: %w", n.file.Name(), err)
	}
	return nil
}
