package relay

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrClosed is returned by Listen after Close.
var ErrClosed = errors.New("relay: network is closed")

// Direction is the bytes travelling from one node to another.
type Direction struct{ From, To string }

// String is "a->b".
func (d Direction) String() string { return d.From + "->" + d.To }

func (d Direction) reverse() Direction { return Direction{From: d.To, To: d.From} }

// rule is what the network does to a direction. The zero rule carries.
type rule struct {
	held  bool
	delay time.Duration
}

// Network is the doors of a set of nodes and the faults between them. Its zero
// value is not usable; see NewNetwork.
type Network struct {
	log *slog.Logger
	wg  sync.WaitGroup // every goroutine of every door and flow

	mu     sync.Mutex
	rules  map[Direction]rule // only directions that are not plain
	flows  map[*flow]struct{}
	doors  map[*Door]struct{}
	closed bool
}

// NewNetwork returns a network without faults. A nil logger discards.
func NewNetwork(log *slog.Logger) *Network {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Network{
		log:   log,
		rules: make(map[Direction]rule),
		flows: make(map[*flow]struct{}),
		doors: make(map[*Door]struct{}),
	}
}

// Listen opens a door to node `to`, whose real address is target, on a free port
// of 127.0.0.1. Connections that dials refuses to name are closed.
func (n *Network) Listen(to, target string, dials Dials) (*Door, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("relay: door to %s: %w", to, err)
	}
	d := &Door{network: n, to: to, target: target, dials: dials, lis: lis}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		lis.Close()
		return nil, ErrClosed
	}
	n.doors[d] = struct{}{}
	n.wg.Go(d.accept)
	return d, nil
}

// Hold loses everything that travels in the given directions from now on.
func (n *Network) Hold(ds ...Direction) {
	n.change(ds, func(r rule) rule { r.held = true; return r })
}

// Delay makes everything in the given directions arrive late by delay, which
// replaces an earlier delay; 0 takes it away. Order is kept.
func (n *Network) Delay(delay time.Duration, ds ...Direction) {
	n.change(ds, func(r rule) rule { r.delay = delay; return r })
}

// Heal takes every fault off the given directions and resets the connections
// that had something held. Without arguments it heals the whole network.
func (n *Network) Heal(ds ...Direction) {
	n.mu.Lock()
	if len(ds) == 0 {
		for d := range n.rules {
			ds = append(ds, d)
		}
	}
	for _, d := range ds {
		delete(n.rules, d)
	}
	var stuck []*flow
	for f := range n.flows {
		if f.stuckIn(ds) {
			stuck = append(stuck, f)
		}
	}
	n.mu.Unlock()
	n.log.Info("network healed", "directions", join(ds), "reset", len(stuck))
	for _, f := range stuck {
		f.reset()
	}
}

// Held lists the directions that carry nothing now, in order.
func (n *Network) Held() []Direction {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ds []Direction
	for d, r := range n.rules {
		if r.held {
			ds = append(ds, d)
		}
	}
	slices.SortFunc(ds, func(a, b Direction) int { return strings.Compare(a.String(), b.String()) })
	return ds
}

// Close shuts every door, resets every connection and returns when all of the
// network's goroutines are gone.
func (n *Network) Close() {
	n.mu.Lock()
	n.closed = true
	for d := range n.doors {
		d.lis.Close()
	}
	var flows []*flow
	for f := range n.flows {
		flows = append(flows, f)
	}
	n.mu.Unlock()
	for _, f := range flows {
		f.reset()
	}
	n.wg.Wait()
}

func (n *Network) change(ds []Direction, edit func(rule) rule) {
	n.mu.Lock()
	for _, d := range ds {
		n.rules[d] = edit(n.rules[d])
	}
	n.mu.Unlock()
	n.log.Info("network changed", "directions", join(ds))
}

func (n *Network) rule(d Direction) rule {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rules[d]
}

// enter files a flow; false means that the network is closed. A filed flow is
// reset by Close.
func (n *Network) enter(f *flow) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.flows[f] = struct{}{}
	return true
}

func (n *Network) leave(f *flow) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.flows, f)
}

func (n *Network) shut(d *Door) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.doors, d)
}

func join(ds []Direction) string {
	names := make([]string, len(ds))
	for i, d := range ds {
		names[i] = d.String()
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
