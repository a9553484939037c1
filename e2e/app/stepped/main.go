//go:build linux

// Command stepped runs the application of package app and nothing else. It is what
// is built with a wall clock that can be stepped.
package main

import (
	"fmt"
	"os"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

// main is run as a program of a lab: Enter does not return.
func main() {
	app.Register()
	err := nethosts.Enter()
	fmt.Fprintln(os.Stderr, "stepped: this program is started by a lab only:", err)
	os.Exit(1)
}
