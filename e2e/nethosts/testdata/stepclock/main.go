//go:build linux

// Stepclock steps its wall clock by the duration that it is given, and prints
// how far the wall clock and the monotonic clock went meanwhile, in
// nanoseconds, and how long a timer of 50 ms took.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	d, err := time.ParseDuration(os.Args[1])
	if err != nil {
		return err
	}
	before := time.Now()
	if err := nethosts.StepWallClock(d); err != nil {
		return err
	}
	after := time.Now()
	time.Sleep(50 * time.Millisecond)
	fmt.Println(after.UnixNano()-before.UnixNano(), after.Sub(before).Nanoseconds(), time.Since(after).Nanoseconds())
	return nil
}
