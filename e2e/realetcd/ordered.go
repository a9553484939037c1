//go:build linux

package realetcd

import (
	"errors"
	"slices"
)

const (
	// reach is how far ahead a segment may be. No receiver's window is as large: what is further is
	// not taken by the server either.
	reach = 64 << 20
	// heldMost bounds the bytes of a connection that wait for others before them.
	heldMost = 16 << 20
)

var errHeld = errors.New("too many bytes wait for some that never came")

// ordered puts in order what one side of a TCP connection sends, from one sequence number on.
type ordered struct {
	next uint32  // number of the next byte to deliver
	held []piece // ahead of it, in order of their numbers, each with something of its own
	size int     // bytes in held
	end  *uint32 // number after the last byte; nil: nobody said
}

// piece is bytes from a sequence number on.
type piece struct {
	seq  uint32
	data []byte
}

// ahead is how far a number is from the next one; negative: it was delivered. Numbers wrap around.
func (o *ordered) ahead(seq uint32) int { return int(int32(seq - o.next)) }

// over says whether all was delivered and nothing can follow.
func (o *ordered) over() bool { return o.end != nil && o.ahead(*o.end) <= 0 }

// finish says after which byte there is none. A number before what was delivered is of another
// connection.
func (o *ordered) finish(end uint32) {
	if ahead := o.ahead(end); ahead >= 0 && ahead <= reach {
		o.end = &end
	}
}

// add takes a segment and delivers what is in order now. The segment's bytes are its caller's.
func (o *ordered) add(seq uint32, data []byte, deliver func([]byte)) error {
	if ahead := o.ahead(seq); ahead > reach || ahead+len(data) <= 0 {
		return nil
	}
	if o.ahead(seq) > 0 {
		return o.hold(seq, data)
	}
	o.deliver(seq, data, deliver)
	for len(o.held) > 0 && o.ahead(o.held[0].seq) <= 0 {
		p := o.held[0]
		o.held, o.size = o.held[1:], o.size-len(p.data)
		o.deliver(p.seq, p.data, deliver)
	}
	return nil
}

// deliver gives away what of the bytes is new; they begin at the next one or before it.
func (o *ordered) deliver(seq uint32, data []byte, deliver func([]byte)) {
	old := -o.ahead(seq)
	if old >= len(data) {
		return
	}
	o.next += uint32(len(data) - old)
	deliver(data[old:])
}

func (o *ordered) hold(seq uint32, data []byte) error {
	at, same := slices.BinarySearchFunc(o.held, seq, func(p piece, seq uint32) int { return int(int32(p.seq - seq)) })
	if same && len(o.held[at].data) >= len(data) {
		return nil // sent again
	}
	if o.size+len(data) > heldMost {
		return errHeld
	}
	o.held = slices.Insert(o.held, at, piece{seq, slices.Clone(data)})
	o.size += len(data)
	return nil
}
