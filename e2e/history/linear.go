package history

import "github.com/anishathalye/porcupine"

// Linearity is what the search for an order of operations has found.
type Linearity struct {
	Decided      bool // every group was decided in the time given
	Violations   []string
	Illustration []byte // HTML of the first group that has no order
}

func verdict(r porcupine.CheckResult) bool { return r == porcupine.Ok }
