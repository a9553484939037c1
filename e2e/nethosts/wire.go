//go:build linux

package nethosts

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// wire makes the switch do to packets what the faults say.
type wire struct {
	lab *Lab

	mu        sync.Mutex // one change at a time, held while it is made
	acting    []*disturbance
	unplugged map[*Host]bool
	hop       *hop // nil until a packet has to be held
	tables    bool // there are tables
	closed    bool
}

func newWire(l *Lab) *wire { return &wire{lab: l, unplugged: map[*Host]bool{}} }

func (w *wire) add(d *disturbance) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	before, after := w.acting, append(slices.Clone(w.acting), d)
	if d.hops() {
		// The hop has to know what to do with a packet when the first comes.
		if err := w.openHop(); err != nil {
			return err
		}
		w.hop.plan(after)
	}
	if err := w.apply(after); err != nil {
		w.planHop(before)
		if d.hops() {
			return &UnavailableError{What: "a delay or a rate of packets", Why: fmt.Sprintf("%v: a kernel with CONFIG_NFT_FWD_NETDEV is needed", err)}
		}
		return err
	}
	return nil
}

func (w *wire) remove(d *disturbance) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	after := slices.DeleteFunc(slices.Clone(w.acting), func(o *disturbance) bool { return o == d })
	if len(after) == len(w.acting) {
		return nil // Heal was here
	}
	return w.reduce(after)
}

func (w *wire) removeAll() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.acting) == 0 {
		return nil
	}
	return w.reduce(nil)
}

// reduce sends new packets the straight way first, and lets those go then that
// are held.
func (w *wire) reduce(after []*disturbance) error {
	if err := w.apply(after); err != nil {
		return err
	}
	w.planHop(after)
	return nil
}

func (w *wire) apply(after []*disturbance) error {
	if err := nft("the switch", rules(w.lab.number, after, w.unplugged)); err != nil {
		return err
	}
	w.acting, w.tables = after, true
	return nil
}

func (w *wire) planHop(acting []*disturbance) {
	if w.hop != nil {
		w.hop.plan(acting)
	}
}

// unplug takes a host's link off the switch, once.
func (w *wire) unplug(h *Host) (first bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unplugged[h] {
		return false, nil
	}
	w.unplugged[h] = true
	return true, ip("the switch", nil, "link del "+h.port)
}

func (w *wire) openHop() error {
	if w.hop != nil {
		return nil
	}
	hop, err := newHop(hopName(w.lab.number), w.lab.bridge)
	if err != nil {
		return err
	}
	w.hop = hop
	return nil
}

// close removes all rules; there are none after it.
func (w *wire) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.acting = true, nil
	var errs []error
	if w.tables {
		errs = append(errs, nft("the switch", noRules(w.lab.number)))
	}
	if w.hop != nil {
		errs = append(errs, w.hop.close())
		w.hop = nil
	}
	return errors.Join(errs...)
}
