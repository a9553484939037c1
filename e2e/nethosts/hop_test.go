//go:build linux

package nethosts

import (
	"bytes"
	"net/netip"
	"testing"
	"time"
)

// frameOf is a frame as the device carries it.
func frameOf(from, to netip.Addr, payload byte) []byte {
	frame := make([]byte, 10+14+20+1)
	frame[10+12], frame[10+13] = 8, 0
	copy(frame[10+14+12:], from.AsSlice())
	copy(frame[10+14+16:], to.AsSlice())
	frame[len(frame)-1] = payload
	return frame
}

func TestHopKnowsItsFlowsAndLetsGoOfWhatIsLifted(t *testing.T) {
	a := &Host{addr: netip.MustParseAddr("10.64.0.2")}
	b := &Host{addr: netip.MustParseAddr("10.64.0.3")}
	h := &hop{wake: make(chan struct{}, 1), pipes: map[way]*pipe{}}
	one := &disturbance{flows: []Flow{{a, b}}, delay: 10 * time.Millisecond, rate: 5000}
	h.plan([]*disturbance{one, {flows: Between(a, b), delay: 20 * time.Millisecond}, {flows: []Flow{{a, b}}, rate: 9000}, {flows: []Flow{{b, a}}, lose: 1}})
	ab, ba := h.pipes[way{a.addr, b.addr}], h.pipes[way{b.addr, a.addr}]
	if len(h.pipes) != 2 || ab.delay != 30*time.Millisecond || ab.rate != 5000 || ba.delay != 20*time.Millisecond || ba.rate != 0 {
		t.Fatalf("a -> b: %+v, b -> a: %+v; want the sum of delays and the lowest rate", ab, ba)
	}
	h.take(start, frameOf(b.addr, a.addr, 1))
	h.take(start, frameOf(b.addr, a.addr, 2))
	h.take(start, frameOf(netip.MustParseAddr("10.64.0.9"), a.addr, 3))
	frames, wait := h.due(start)
	if len(frames) != 1 || frames[0][44] != 3 || wait != 20*time.Millisecond {
		t.Errorf("%d frames at once, the next in %v; want the one of a flow without fault, and 20ms", len(frames), wait)
	}
	h.plan([]*disturbance{one})
	frames, _ = h.due(start)
	if len(frames) != 2 || frames[0][44] != 1 || frames[1][44] != 2 {
		t.Errorf("%d frames when their fault was lifted, want both in order", len(frames))
	}
}

func FuzzWay(f *testing.F) {
	f.Add(frameOf(netip.MustParseAddr("10.64.0.2"), netip.MustParseAddr("10.64.0.3"), 1))
	f.Add([]byte{})
	f.Add(make([]byte, 44))
	f.Fuzz(func(t *testing.T, frame []byte) {
		w, ok := wayOf(frame)
		if ok != w.from.IsValid() || ok != w.to.IsValid() {
			t.Errorf("%x: %v, %v", frame, w, ok)
		}
		if ok && !bytes.Equal(frame[36:40], w.from.AsSlice()) {
			t.Errorf("%x comes from %v", frame, w.from)
		}
	})
}
