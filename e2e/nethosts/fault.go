package nethosts

import (
	"time"
)

// Flow is what packets travel: one way between two hosts.
type Flow struct{ From, To *Host }

// Between returns both ways between two hosts.
func Between(a, b *Host) []Flow { return []Flow{{a, b}, {b, a}} }

// Fault is a fault that acts until it is lifted.
type Fault struct{}

// String says what the fault does.
func (f *Fault) String() string { return "" }

// Lift ends the fault. Calling it again does nothing.
func (f *Fault) Lift() error { return errNotYet }

// addFault lists a fault that acts already; lift ends it and is called once.
// Heal leaves it alone. Closing the lab lifts it, before its hosts go.
func (l *Lab) addFault(text string, lift func() error) *Fault { return &Fault{} }

// Drop loses all packets silently.
func (l *Lab) Drop(flows ...Flow) (*Fault, error) { return nil, errNotYet }

// Lose loses the given part of the packets, 0 to 1, each by chance.
func (l *Lab) Lose(part float64, flows ...Flow) (*Fault, error) { return nil, errNotYet }

// Delay holds every packet for d and keeps the order.
func (l *Lab) Delay(d time.Duration, flows ...Flow) (*Fault, error) { return nil, errNotYet }

// Rate lets each flow carry so many bytes a second.
func (l *Lab) Rate(bytesPerSecond int, flows ...Flow) (*Fault, error) { return nil, errNotYet }

// Heal lifts all faults of the network.
func (l *Lab) Heal() error { return errNotYet }

// Faults describes the faults that act, oldest first.
func (l *Lab) Faults() []string { return nil }
