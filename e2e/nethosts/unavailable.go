//go:build linux

package nethosts

import "fmt"

// UnavailableError says that this machine cannot produce a fault. A scenario
// that needs the fault is skipped with it as the reason.
type UnavailableError struct {
	What string // the fault
	Why  string // what is missing, and the way out
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("nethosts: %s cannot be had on this machine: %s", e.What, e.Why)
}
