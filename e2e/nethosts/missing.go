package nethosts

import "strings"

// MissingError says what this machine lacks for a lab, and how to get it.
type MissingError struct{ What []string }

func (e *MissingError) Error() string {
	return "nethosts: no lab on this machine: " + strings.Join(e.What, "; ")
}

// Missing says what a lab lacks on this machine; nil if nothing.
func Missing() *MissingError { return nil }
