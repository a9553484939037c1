//go:build linux

package nethosts

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Fault is a fault that acts until it is lifted.
type Fault struct {
	lab     *Lab
	text    string
	network bool // Heal lifts it
	lift    func() error

	once sync.Once
	err  error // of lift
}

// String says what the fault does.
func (f *Fault) String() string { return f.text }

// Lift ends the fault. Calling it again returns what the first call did.
func (f *Fault) Lift() error {
	f.once.Do(func() {
		f.lab.unlist(f)
		f.err = f.lift()
		f.lab.log.Info("fault lifted", "fault", f.text)
	})
	return f.err
}

// addFault lists a fault that acts already; lift ends it and is called once. Heal
// leaves it alone. Close lifts it, before its hosts go.
func (l *Lab) addFault(text string, lift func() error) *Fault {
	return l.list(&Fault{lab: l, text: text, lift: lift})
}

func (l *Lab) list(f *Fault) *Fault {
	l.mu.Lock()
	l.faults = append(l.faults, f)
	l.mu.Unlock()
	l.log.Info("fault", "fault", f.text)
	return f
}

func (l *Lab) unlist(f *Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = slices.DeleteFunc(l.faults, func(o *Fault) bool { return o == f })
}

// Drop loses all packets of the flows silently, on their way through the switch:
// both sides keep their connections and hear nothing.
func (l *Lab) Drop(flows ...Flow) (*Fault, error) {
	return l.disturb("drop", &disturbance{flows: flows, lose: 1})
}

// Lose loses part of the packets of the flows, 0 to 1, each packet by chance.
// The chances of several faults are independent.
func (l *Lab) Lose(part float64, flows ...Flow) (*Fault, error) {
	if !(part >= 0 && part <= 1) {
		return nil, fmt.Errorf("nethosts: part of the packets to lose: %v, 0 to 1 is allowed", part)
	}
	return l.disturb(fmt.Sprintf("lose %.3g%%", part*100), &disturbance{flows: flows, lose: part})
}

// LoseLarge loses the IP packets of the flows that have more than that many bytes,
// header included, and lets smaller ones pass: a path whose MTU is less than its ends
// believe, and nobody says so.
func (l *Lab) LoseLarge(bytes int, flows ...Flow) (*Fault, error) {
	if bytes < smallestPacket || bytes > largestPacket {
		return nil, fmt.Errorf("nethosts: lose packets of more than %d bytes: %d to %d is allowed", bytes, smallestPacket, largestPacket)
	}
	return l.disturb(fmt.Sprintf("lose packets of more than %d bytes", bytes), &disturbance{flows: flows, lose: 1, above: bytes})
}

// Delay holds every packet of the flows for d and keeps their order. Delays of
// several faults add up. What is on the way when a delay is lifted arrives at
// once.
func (l *Lab) Delay(d time.Duration, flows ...Flow) (*Fault, error) {
	if d <= 0 || d > longestDelay {
		return nil, fmt.Errorf("nethosts: delay %v: more than 0 and at most %v is allowed", d, longestDelay)
	}
	return l.disturb("delay "+d.String(), &disturbance{flows: flows, delay: d})
}

// Rate lets each of the flows carry that many bytes a second and no more, as a
// slow line does: up to a quarter of a second's packets wait, what is more is
// lost. Of several rates the lowest counts.
func (l *Lab) Rate(bytesPerSecond int, flows ...Flow) (*Fault, error) {
	if bytesPerSecond < lowestRate {
		return nil, fmt.Errorf("nethosts: rate of %d bytes a second: at least %d is allowed", bytesPerSecond, lowestRate)
	}
	return l.disturb(fmt.Sprintf("rate %d B/s", bytesPerSecond), &disturbance{flows: flows, rate: bytesPerSecond})
}

func (l *Lab) disturb(what string, d *disturbance) (*Fault, error) {
	if err := l.checkFlows(d.flows); err != nil {
		return nil, err
	}
	d.flows = slices.Clone(d.flows)
	if err := l.wire.add(d); err != nil {
		return nil, err
	}
	return l.list(&Fault{
		lab: l, network: true, text: what + ": " + flowList(d.flows),
		lift: func() error { return l.wire.remove(d) },
	}), nil
}

// Heal lifts all faults of the network at once.
func (l *Lab) Heal() error {
	err := l.wire.removeAll()
	l.mu.Lock()
	faults := slices.Clone(l.faults)
	l.mu.Unlock()
	errs := []error{err}
	for _, f := range faults {
		if f.network {
			errs = append(errs, f.Lift())
		}
	}
	return errors.Join(errs...)
}

// Faults describes the faults that act, oldest first.
func (l *Lab) Faults() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var texts []string
	for _, f := range l.faults {
		texts = append(texts, f.text)
	}
	return texts
}
