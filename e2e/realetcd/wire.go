//go:build linux

package realetcd

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

// wire counts the mutations that come in by the client port of a member's host, for servers that
// cannot count themselves. What comes by the host's loopback, from the sidecar alone, is not seen.
type wire struct {
	mu          sync.Mutex // taken inside of a capture's
	captures    []capture  // all but the last one were closed
	connections map[netip.AddrPort]*inbound
	counts      map[string]int
	gaps        []string // why some may be missing
}

// capture is what a wire wants of a *nethosts.Capture.
type capture interface {
	Sync()
	Lost() (int, error)
	Close() error
}

// inbound is what a client sends on one connection.
type inbound struct {
	first    uint32  // sequence number of its SYN
	stood    *uint32 // where the one before stood that had the port and had not ended; nil: there was none
	bytes    ordered
	requests requests
	over     bool
}

// open begins to count, before a server begins to listen: of each connection that it will accept
// the first segment is seen.
func (w *wire) open(h *nethosts.Host) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.connections != nil {
		return nil
	}
	c, err := h.Capture(ClientPort, w.segment)
	if err != nil {
		return err
	}
	w.captures, w.connections = append(w.captures, c), make(map[netip.AddrPort]*inbound)
	return nil
}

// close ends the count, for a server that counts itself.
func (w *wire) close() error {
	c := w.last()
	if c == nil {
		return nil
	}
	err := c.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connections = nil
	return err
}

func (w *wire) last() capture {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.captures) == 0 {
		return nil
	}
	return w.captures[len(w.captures)-1]
}

// segment takes what a capture saw. Segments of connections that did not begin under its eyes
// reach no server: the host refuses them.
func (w *wire) segment(s nethosts.Segment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.connections[s.From]
	if s.SYN {
		if c == nil || c.first != s.Seq { // not sent again; a port may be used again
			w.connections[s.From] = w.begin(s, c)
		}
		return
	}
	if c == nil {
		return
	}
	err := c.segment(s)
	if c.over {
		delete(w.connections, s.From)
	}
	if err != nil {
		w.gaps = append(w.gaps, fmt.Sprintf("a connection from %s cannot be followed: %v", s.From, err))
	}
}

// begin is a connection that a SYN opens. The host takes it only if it knows of none from that
// port, as where its own reset, which is not seen, ended the one before.
func (w *wire) begin(s nethosts.Segment, before *inbound) *inbound {
	c := &inbound{first: s.Seq, bytes: ordered{next: s.Seq + 1}, requests: requests{take: w.count}}
	if before != nil {
		stood := before.bytes.next // the rest of it is let go
		c.stood = &stood
	}
	return c
}

var errGoesOn = errors.New("it goes on where it stood before another one was opened")

// unopened says of a segment that the host did not take the SYN: nothing came after that, and this
// goes on where the connection before stood.
func (c *inbound) unopened(s nethosts.Segment) bool {
	begin := c.first + 1
	return c.stood != nil && c.bytes.next == begin && s.Seq == *c.stood && s.Seq != begin && len(s.Payload) > 0
}

func (c *inbound) segment(s nethosts.Segment) (err error) {
	if c.unopened(s) {
		c.over = true
		return errGoesOn
	}
	if s.RST {
		c.over = s.Seq == c.bytes.next // the host asks about any other
		return nil
	}
	if s.FIN {
		c.bytes.finish(s.Seq + uint32(len(s.Payload)))
	}
	errHeld := c.bytes.add(s.Seq, s.Payload, func(p []byte) {
		if e := c.requests.write(p); e != nil {
			err = e
		}
	})
	if errHeld != nil {
		err = errHeld
	}
	c.over = errHeld != nil || c.bytes.over()
	return err
}

func (w *wire) count(values []string) {
	if w.counts == nil {
		w.counts = make(map[string]int)
	}
	for _, v := range values {
		w.counts[v]++
	}
}

// addTo adds all that came before the call, and says what may be missing.
func (w *wire) addTo(counts map[string]int) (gaps []string) {
	w.mu.Lock()
	captures := slices.Clone(w.captures)
	w.mu.Unlock()
	for _, c := range captures {
		c.Sync()
		lost, err := c.Lost()
		if lost > 0 {
			gaps = append(gaps, fmt.Sprintf("%d segments that came were not looked at: the harness was too slow", lost))
		}
		if err != nil {
			gaps = append(gaps, err.Error())
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for v, n := range w.counts {
		counts[v] += n
	}
	return append(gaps, w.gaps...)
}
