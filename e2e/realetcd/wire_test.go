//go:build linux

package realetcd

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

var client1 = netip.MustParseAddrPort("10.0.0.9:40000")

// listening is a count whose segments a test gives.
func listening() *wire { return &wire{connections: make(map[netip.AddrPort]*inbound)} }

// send gives what a client sends on a connection whose SYN had the number first, after some bytes.
func (w *wire) send(first uint32, after int, p []byte) {
	w.segment(nethosts.Segment{From: client1, Seq: first + 1 + uint32(after), Payload: p})
}

// What has ended is not kept: members live for hours and ports are many.
func TestWireForgetsConnectionsThatEnded(t *testing.T) {
	for name, last := range map[string]nethosts.Segment{
		"finished":              {Seq: 6, FIN: true},
		"reset":                 {Seq: 6, RST: true},
		"it cannot be followed": {Seq: 7, Payload: make([]byte, heldMost+1)},
	} {
		w := listening()
		w.segment(nethosts.Segment{From: client1, Seq: 5, SYN: true})
		last.From = client1
		if w.segment(last); len(w.connections) != 0 {
			t.Errorf("%s: %d connections are kept; want none", name, len(w.connections))
		}
		w.send(5, 0, oneCall("a"))
		if len(w.connections) != 0 || len(w.counts) != 0 {
			t.Errorf("%s: it was taken up again", name)
		}
	}
}

// damaged is a capture that lost something, and ended early.
type damaged struct {
	lost   int
	err    error
	synced bool
}

func (d *damaged) Sync()              { d.synced = true }
func (d *damaged) Close() error       { return nil }
func (d *damaged) Lost() (int, error) { return d.lost, d.err }

// A count that lacks something must not look like a whole one, also of a capture before the last.
func TestWireTellsWhatItsCapturesLost(t *testing.T) {
	whole, lost, ended := &damaged{}, &damaged{lost: 3}, &damaged{err: errors.New("the capture ended: no such device")}
	for name, tc := range map[string]struct {
		captures []*damaged
		want     []string
	}{
		"nothing":            {[]*damaged{whole}, nil},
		"some segments":      {[]*damaged{lost, whole}, []string{"3 segments that came were not looked at: the harness was too slow"}},
		"all after a moment": {[]*damaged{ended}, []string{"the capture ended: no such device"}},
	} {
		w := listening()
		for _, c := range tc.captures {
			w.captures = append(w.captures, c)
		}
		w.count([]string{"a"})
		got := make(map[string]int)
		if gaps := w.addTo(got); !slices.Equal(gaps, tc.want) || got["a"] != 1 {
			t.Errorf("%s: gaps %q, counted %v; want %q, and a once", name, gaps, got, tc.want)
		}
		for i, c := range tc.captures {
			if !c.synced {
				t.Errorf("%s: what came to capture %d before the call was not waited for", name, i)
			}
		}
	}
}

func oneCall(value string) []byte {
	k := newTalk()
	k.call(1, putPath, put(value), 100)
	return k.Bytes()
}

func TestWireFollowsConnectionsFromTheirBegin(t *testing.T) {
	syn := func(first uint32) nethosts.Segment { return nethosts.Segment{From: client1, Seq: first, SYN: true} }
	a, b := oneCall("a"), oneCall("b")
	whole := func(first uint32, p []byte) func(*wire) {
		return func(w *wire) { w.segment(syn(first)); w.send(first, 0, p) }
	}
	for name, tc := range map[string]struct {
		happens []func(*wire)
		want    map[string]int
		gaps    int
	}{
		"a call":                   {[]func(*wire){whole(5, a)}, map[string]int{"a": 1}, 0},
		"all of it sent again":     {[]func(*wire){whole(5, a), whole(5, a)}, map[string]int{"a": 1}, 0},
		"the end before the begin": {[]func(*wire){func(w *wire) { w.segment(syn(5)); w.send(5, 40, a[40:]); w.send(5, 0, a[:40]) }}, map[string]int{"a": 1}, 0},
		"a port used again":        {[]func(*wire){whole(5, a), whole(1<<31, b), whole(7, a)}, map[string]int{"a": 2, "b": 1}, 0},
		"a port used again after a reset that answers the host": {[]func(*wire){
			func(w *wire) { w.segment(syn(5)); w.send(5, 0, a[:40]); w.segment(syn(99)) },
			func(w *wire) { w.segment(nethosts.Segment{From: client1, Seq: 6 + 40, RST: true}) },
			whole(99, b),
		}, map[string]int{"b": 1}, 0},
		"a SYN that the host did not take": {[]func(*wire){
			func(w *wire) { w.segment(syn(5)); w.send(5, 0, a[:40]); w.segment(syn(1 << 31)); w.send(5, 40, a[40:]) },
			whole(77, b),
		}, map[string]int{"b": 1}, 1},
		"no begin: nobody takes it": {[]func(*wire){func(w *wire) { w.send(5, 0, a) }}, nil, 0},
		"an end in between":         {[]func(*wire){func(w *wire) { w.segment(syn(5)); w.segment(nethosts.Segment{From: client1, Seq: 6, FIN: true}) }, func(w *wire) { w.send(5, 0, a) }}, nil, 0},
		"reset":                     {[]func(*wire){func(w *wire) { w.segment(syn(5)); w.segment(nethosts.Segment{From: client1, Seq: 6, RST: true}) }, func(w *wire) { w.send(5, 0, a) }}, nil, 0},
		"a reset of another number": {[]func(*wire){func(w *wire) { w.segment(syn(5)); w.segment(nethosts.Segment{From: client1, Seq: 99, RST: true}) }, func(w *wire) { w.send(5, 0, a) }}, map[string]int{"a": 1}, 0},
		"the end comes with a call": {[]func(*wire){func(w *wire) {
			w.segment(syn(5))
			w.segment(nethosts.Segment{From: client1, Seq: 6, Payload: a, FIN: true})
		}}, map[string]int{"a": 1}, 0},
		"what cannot be followed":     {[]func(*wire){whole(5, []byte("\x16\x03")), whole(7, a)}, map[string]int{"a": 1}, 1},
		"too much ahead of what came": {[]func(*wire){func(w *wire) { w.segment(syn(5)); w.send(5, 1, make([]byte, heldMost+1)) }, whole(7, b)}, map[string]int{"b": 1}, 1},
	} {
		w := listening()
		for _, do := range tc.happens {
			do(w)
		}
		got := make(map[string]int)
		if gaps := w.addTo(got); !maps.Equal(got, tc.want) || len(gaps) != tc.gaps {
			t.Errorf("%s: counted %v with gaps %q; want %v with %d", name, got, gaps, tc.want, tc.gaps)
		}
	}
}
