//go:build race

package workload

import "runtime"

// In a bubble timers that are due when they are made run at once, and two of them at the same
// time crash the runtime of the race detector (Go 1.26: "ThreadSanitizer: CHECK failed", or
// SIGSEGV in time.AfterFunc). On one processor there are never two. An explicit -cpu overrules this.
func init() { runtime.GOMAXPROCS(1) }
