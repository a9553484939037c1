//go:build linux

package nethosts

import (
	"errors"
	"fmt"
	"strings"
)

// Flow is what packets travel: one way between two hosts of a lab.
type Flow struct{ From, To *Host }

// String is "m1 -> m2".
func (f Flow) String() string { return f.From.name + " -> " + f.To.name }

// Between returns both ways between two hosts.
func Between(a, b *Host) []Flow { return []Flow{{From: a, To: b}, {From: b, To: a}} }

// Around returns all flows into the host from the others, and out of it to them.
func Around(h *Host, others ...*Host) (in, out []Flow) {
	for _, o := range others {
		if o != h {
			in, out = append(in, Flow{From: o, To: h}), append(out, Flow{From: h, To: o})
		}
	}
	return in, out
}

// checkFlows says what is wrong with the flows of a fault.
func (l *Lab) checkFlows(flows []Flow) error {
	if len(flows) == 0 {
		return errors.New("nethosts: a fault needs at least one flow")
	}
	for _, f := range flows {
		switch {
		case f.From == nil || f.To == nil:
			return errors.New("nethosts: a flow needs two hosts, one is nil")
		case f.From == f.To:
			return fmt.Errorf("nethosts: flow %v: packets of a host to itself do not pass the switch", f)
		case f.From.lab != l || f.To.lab != l:
			return fmt.Errorf("nethosts: flow %v: a host is of another lab", f)
		}
	}
	return nil
}

func flowList(flows []Flow) string {
	var words []string
	for _, f := range flows {
		words = append(words, f.String())
	}
	return strings.Join(words, ", ")
}
