//go:build linux

package nethosts

import (
	"math/rand/v2"
	"testing"
	"time"
)

// start is when the steps of a pipe's test begin.
var start = time.Unix(1000, 0)

func after(d time.Duration) time.Time { return start.Add(d) }

func TestPipeDelaysAndLetsNothingOvertake(t *testing.T) {
	p := &pipe{delay: 50 * time.Millisecond}
	p.push(after(0), []byte("a"))
	p.push(after(10*time.Millisecond), []byte("b"))
	p.delay = 0 // one of the faults was lifted
	p.push(after(20*time.Millisecond), []byte("c"))
	for _, step := range []struct {
		at   time.Duration
		want string
	}{{49 * time.Millisecond, ""}, {50 * time.Millisecond, "a"}, {59 * time.Millisecond, ""}, {60 * time.Millisecond, "bc"}, {time.Second, ""}} {
		got := ""
		for _, frame := range p.pop(after(step.at), nil) {
			got += string(frame)
		}
		if got != step.want {
			t.Errorf("at %v %q comes out, want %q", step.at, got, step.want)
		}
	}
	if p.bytes != 0 || p.parcels != nil {
		t.Errorf("an empty pipe holds %d bytes, %v", p.bytes, p.parcels)
	}
}

func TestPipeCarriesItsRateAndLosesWhatWouldWaitTooLong(t *testing.T) {
	const rate = 100_000
	p := &pipe{rate: rate}
	for range 1000 { // ten seconds' worth at once
		p.push(after(0), make([]byte, 1000))
	}
	if at, ok := p.next(); !ok || at != after(10*time.Millisecond) {
		t.Errorf("the first of 1000 bytes at 100 kB/s leaves %v after it came, want 10ms", at.Sub(start))
	}
	bytes := 0
	for _, f := range p.pop(after(100*time.Millisecond), nil) {
		bytes += len(f)
	}
	if bytes != rate/10 {
		t.Errorf("%d bytes in 100ms, want %d", bytes, rate/10)
	}
	last := p.parcels[len(p.parcels)-1].due.Sub(start)
	if last < lineQueue || last > lineQueue+20*time.Millisecond {
		t.Errorf("the last frame waits %v, want the bound of the queue %v", last, lineQueue)
	}
	// An idle line saves nothing up.
	p.flush(nil)
	p.push(after(time.Hour), make([]byte, 1000))
	p.push(after(time.Hour), make([]byte, 1000))
	if got := len(p.pop(after(time.Hour+10*time.Millisecond), nil)); got != 1 {
		t.Errorf("after an hour of silence %d frames pass in 10ms, want 1", got)
	}
}

func TestSlowestLineStillTakesALargePacket(t *testing.T) {
	p := &pipe{rate: lowestRate}
	p.push(after(0), make([]byte, 8*1448))
	p.push(after(0), make([]byte, 8*1448))
	if len(p.parcels) != 2 {
		t.Errorf("%d of 2 frames are taken: such a line would carry nothing", len(p.parcels))
	}
}

func TestPipeHoldsBoundedBytes(t *testing.T) {
	p := &pipe{delay: time.Minute}
	for range pipeBound/60_000 + 100 {
		p.push(after(0), make([]byte, 60_000))
	}
	if p.bytes > pipeBound || p.bytes < pipeBound-60_000 {
		t.Errorf("the pipe holds %d bytes, want at most %d", p.bytes, pipeBound)
	}
	if n := len(p.flush(nil)); n != pipeBound/60_000 || p.bytes != 0 {
		t.Errorf("flush gave %d frames and left %d bytes", n, p.bytes)
	}
}

// Whatever acts on a pipe, order is kept, no frame comes early, and none is lost
// without a rate.
func TestPipeKeepsOrderUnderAnyChange(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	p, now := &pipe{}, start
	var earliest []time.Time
	sent, next := byte(0), byte(0)
	for i := range 5000 {
		now = now.Add(time.Duration(random.IntN(1000)) * time.Microsecond)
		switch random.IntN(4) {
		case 0:
			p.delay = time.Duration(random.IntN(5)) * time.Millisecond
		case 1, 2:
			p.push(now, []byte{sent})
			sent++
			earliest = append(earliest, now.Add(p.delay))
		case 3:
			for _, f := range p.pop(now, nil) {
				if f[0] != next {
					t.Fatalf("seed %d, step %d: frame %d comes out, want %d", seed, i, f[0], next)
				}
				if now.Before(earliest[0]) {
					t.Fatalf("seed %d, step %d: frame %d comes %v early", seed, i, f[0], earliest[0].Sub(now))
				}
				earliest = earliest[1:]
				next++
			}
		}
		if len(earliest) > 200 {
			t.Fatalf("seed %d: frames do not come out", seed)
		}
	}
}
