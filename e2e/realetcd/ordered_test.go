//go:build linux

package realetcd

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// Segments in any order, cut anew when they are sent again, overlapping, twice, with numbers that
// wrap around: what is delivered is what was sent.
func TestOrderedDeliversWhatWasSent(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		sent := make([]byte, 1+rng.IntN(300))
		for i := range sent {
			sent[i] = byte(i * 7)
		}
		first := uint32(rng.Uint64())
		if seed%2 == 0 {
			first = -uint32(rng.IntN(len(sent) + 1)) // wraps around inside
		}
		var segments [][2]int
		for range 3 { // each time with other borders
			for at := 0; at < len(sent); {
				end := min(len(sent), at+1+rng.IntN(40))
				segments, at = append(segments, [2]int{at, end}), end
			}
		}
		rng.Shuffle(len(segments), func(i, j int) { segments[i], segments[j] = segments[j], segments[i] })
		o := ordered{next: first}
		o.finish(first + uint32(len(sent)))
		var got []byte
		for _, s := range segments {
			segment := bytes.Clone(sent[s[0]:s[1]])
			if err := o.add(first+uint32(s[0]), segment, func(p []byte) { got = append(got, p...) }); err != nil {
				t.Fatal(err)
			}
			clear(segment) // it is the caller's again
			if o.over() != (len(got) == len(sent)) {
				t.Fatalf("seed %d: over = %t after %d of %d bytes", seed, o.over(), len(got), len(sent))
			}
		}
		if !bytes.Equal(got, sent) {
			t.Fatalf("seed %d, first number %d: delivered %v; want %v", seed, first, got, sent)
		}
		if len(o.held) > 0 || o.size != 0 {
			t.Fatalf("seed %d: %d pieces of %d bytes are held after the end", seed, len(o.held), o.size)
		}
	}
}

func TestOrderedIgnoresWhatIsOfAnotherConnection(t *testing.T) {
	o := ordered{next: 1000}
	none := func(p []byte) { t.Errorf("delivered %q; want nothing", p) }
	for _, seq := range []uint32{1000 + reach + 1, 1000 + 1<<31, 500} {
		if err := o.add(seq, []byte("x"), none); err != nil || len(o.held) > 0 {
			t.Errorf("number %d: %v, %d pieces held; want it ignored", seq, err, len(o.held))
		}
	}
	for _, end := range []uint32{999, 1000 + reach + 1} {
		if o.finish(end); o.end != nil {
			t.Errorf("an end at %d was believed", end)
		}
	}
}

func TestOrderedHoldsNoMoreThanItsBound(t *testing.T) {
	o := ordered{next: 0}
	chunk := make([]byte, 1<<20)
	var err error
	held := 0
	for seq := uint32(1); err == nil && held <= heldMost; seq += 1 << 20 {
		if err = o.add(seq, chunk, func([]byte) {}); err == nil {
			held += len(chunk)
		}
		if again := o.add(seq, chunk, func([]byte) {}); err == nil && again != nil {
			t.Fatalf("the same again: %v", again)
		}
	}
	if !errors.Is(err, errHeld) || held != heldMost {
		t.Errorf("%v after %d bytes; want %v after %d", err, held, errHeld, heldMost)
	}
}
