//go:build linux

package nethosts

import "time"

const (
	longestDelay   = time.Minute
	lowestRate     = 1000     // bytes a second: two seconds for the largest packet
	pipeBound      = 32 << 20 // bytes that one flow may have under way
	lineQueue      = 250 * time.Millisecond
	lineLeast      = 16 << 10 // bytes that may wait for the slowest line
	smallestPacket = 100      // bytes: one that opens or ends a connection has less
	largestPacket  = 1499     // bytes: the links carry 1,500
)

// pipe is one flow on its way through the hop: a line of some rate, then a
// distance of some delay. Packets leave in the order in which they came.
type pipe struct {
	delay time.Duration
	rate  int // bytes a second, 0: no limit

	free    time.Time // the line is busy until then
	parcels []parcel  // as they came
	bytes   int
}

type parcel struct {
	due   time.Time // it also waits for those in front of it
	frame []byte
}

// push takes a frame, or loses it where no more can wait.
func (p *pipe) push(now time.Time, frame []byte) {
	if p.bytes+len(frame) > pipeBound {
		return
	}
	sent := now
	if p.rate > 0 {
		if p.free.Before(now) {
			p.free = now
		}
		if p.free.Sub(now) > p.patience() {
			return
		}
		p.free = p.free.Add(time.Duration(len(frame)) * time.Second / time.Duration(p.rate))
		sent = p.free
	}
	p.parcels = append(p.parcels, parcel{due: sent.Add(p.delay), frame: frame})
	p.bytes += len(frame)
}

// patience is how long a frame may wait for the line.
func (p *pipe) patience() time.Duration {
	return max(lineQueue, time.Duration(lineLeast)*time.Second/time.Duration(p.rate))
}

// next is when the first frame leaves.
func (p *pipe) next() (at time.Time, ok bool) {
	if len(p.parcels) == 0 {
		return time.Time{}, false
	}
	return p.parcels[0].due, true
}

// pop appends the frames that are due.
func (p *pipe) pop(now time.Time, frames [][]byte) [][]byte {
	n := 0
	for n < len(p.parcels) && !p.parcels[n].due.After(now) {
		frames = append(frames, p.parcels[n].frame)
		p.bytes -= len(p.parcels[n].frame)
		p.parcels[n].frame = nil
		n++
	}
	p.parcels = p.parcels[n:]
	if len(p.parcels) == 0 {
		p.parcels = nil
	}
	return frames
}

// flush appends all frames.
func (p *pipe) flush(frames [][]byte) [][]byte {
	for _, parcel := range p.parcels {
		frames = append(frames, parcel.frame)
	}
	p.parcels, p.bytes = nil, 0
	return frames
}
