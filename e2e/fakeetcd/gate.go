package fakeetcd

import "sync"

// gate stops whoever waits at it while it is shut. The zero gate is open.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // nil while open; closed when the gate opens
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

func (g *gate) isShut() bool { return g.opening() != nil }

// opening returns a channel that is closed when the gate opens, nil if it is open.
func (g *gate) opening() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

// pass waits until the gate is open, and reports false when given up first.
func (g *gate) pass(giveUp <-chan struct{}) bool {
	for {
		opening := g.opening()
		if opening == nil {
			return true
		}
		select {
		case <-opening:
		case <-giveUp:
			return false
		}
	}
}
