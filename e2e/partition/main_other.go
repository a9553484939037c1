//go:build !linux

// Command partition plays the partition suites on hosts of their own. Those take Linux.
package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, `partition: the partition suites need Linux, and this is %s:
each member and client is a host of its own there, made of network namespaces.
Run them on Linux (a virtual machine will do) as root or as a user who may
make namespaces, with the commands ip (package iproute2) and nft (package nftables).
Here, the scenarios that need no hosts can be played: go test ./e2e/
`, runtime.GOOS)
	os.Exit(3) // as on a Linux machine that cannot have the lab
}
