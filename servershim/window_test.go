package servershim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// start is when every test of the core begins.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return start.Add(d) }

const ms = time.Millisecond

func lanWindow() window { return window{floor: 250 * ms, ceiling: time.Second, slack: 200 * ms} }

func TestWindowFollowsTheRoundTrip(t *testing.T) {
	type step struct {
		after, rtt time.Duration
		tainted    bool
	}
	same := func(rtt time.Duration, n int) (steps []step) {
		for range n {
			steps = append(steps, step{after: rtt, rtt: rtt})
		}
		return steps
	}
	for _, c := range []struct {
		why      string
		steps    []step
		min, max time.Duration
	}{
		{"nothing measured: the floor", nil, 250 * ms, 250 * ms},
		{"a LAN: the floor", same(ms, 100), 250 * ms, 250 * ms},
		{"across regions: the round trip and the wait for the next proof", same(150*ms, 100), 350 * ms, 360 * ms},
		{"never above the ceiling", same(3*time.Second, 100), time.Second, time.Second},
		{"one stall on a LAN widens it for a while", append(same(ms, 100), step{600 * ms, 600 * ms, false}), 600 * ms, 900 * ms},
		{"but not for long", append(append(same(ms, 100), step{600 * ms, 600 * ms, false}), same(ms, 30)...), 250 * ms, 250 * ms},
		{"the first proof waited for etcd to start: that is no round trip", append([]step{{660 * ms, 660 * ms, false}, {60 * ms, 60 * ms, false}}, same(3*ms, 3)...), 250 * ms, 250 * ms},
		{"a quicker proof later on is no beginning", append(same(150*ms, 20), step{5 * ms, 5 * ms, false}), 400 * ms, 600 * ms},
		{"a pause of our own is no round trip", append(same(ms, 100), step{600 * ms, 600 * ms, true}), 250 * ms, 250 * ms},
		{"unless there has been none better for long", append(same(ms, 100), step{1600 * ms, 600 * ms, true}), 600 * ms, 900 * ms},
		{"a clock that went back is no negative round trip", []step{{0, -time.Hour, false}}, 250 * ms, 250 * ms},
	} {
		w := lanWindow()
		now := start
		for _, s := range c.steps {
			now = now.Add(s.after)
			w.sample(now.Add(-s.rtt), now, s.tainted)
		}
		if got := w.length(); got < c.min || got > c.max {
			t.Errorf("%s: got %v (%v, %v), want %v to %v", c.why, got, w.srtt, w.rttvar, c.min, c.max)
		}
	}
}

// Proofs overlap. Those that one stall held up are one measurement, not many.
func TestWindowMeasuresOneRoundTripAtATime(t *testing.T) {
	w := lanWindow()
	for i := range 100 {
		begin := at(time.Duration(i) * 100 * ms)
		w.sample(begin, begin.Add(ms), false)
	}
	begin := at(10 * time.Second)
	end := begin.Add(500 * ms)
	w.sample(begin, end, false)
	once := w.length()
	for i := 1; i < 5; i++ {
		w.sample(begin.Add(time.Duration(i)*100*ms), end, false)
	}
	if got := w.length(); got != once {
		t.Errorf("got a window of %v after five proofs that one stall held up, want %v as after one", got, once)
	}
}

// What stalls is not farther away.
func TestWindowOfALostMemberDoesNotLearnStalls(t *testing.T) {
	w := lanWindow()
	now := start
	sample := func(n int, rtt time.Duration) {
		for range n {
			w.sample(now, now.Add(rtt), false)
			now = now.Add(max(rtt, 100*ms))
		}
	}
	sample(50, ms)
	w.lose()
	for range 10 { // 750 ms of stall in each second
		sample(1, 750*ms)
		sample(2, ms)
		if got := w.length(); got != 250*ms {
			t.Fatalf("got a window of %v after stalls of a lost member, want 250 ms as when it was lost", got)
		}
	}
	w.use()
	sample(1, 750*ms)
	if got := w.length(); got < 900*ms {
		t.Errorf("got a window of %v of a member in use, want that it follows the round trip", got)
	}
	w.lose()
	lost := w.length()
	sample(40, ms)
	if got := w.length(); got != 250*ms {
		t.Errorf("got a window of %v after quick proofs, want 250 ms, not %v as when it was lost", got, lost)
	}
	w.use()
	w.lose()
	sample(4, 400*ms) // 1.6 s of them
	if got := w.length(); got != 250*ms {
		t.Errorf("got a window of %v when quick ones are only 1.6 s old, want 250 ms", got)
	}
	sample(8, 400*ms) // 4.8 s
	if got := w.length(); got < 600*ms {
		t.Errorf("got a window of %v when all proofs take 400 ms for long, want that it follows", got)
	}
	w.lose()
	w.moved()
	sample(1, 900*ms)
	if got := w.length(); got < 900*ms {
		t.Errorf("got a window of %v after the leader has moved, want that it follows at once", got)
	}
}

// dumbWindow keeps all samples and computes the whole series in floats each time.
type dumbWindow struct {
	begins, ends []float64 // seconds
	floor, ceil  float64
	slack        float64
}

func (d *dumbWindow) length() float64 {
	var srtt, rttvar float64
	taken, last := 0, math.Inf(-1)
	for i := range d.begins {
		if d.begins[i] < last {
			continue
		}
		rtt := math.Max(0, d.ends[i]-d.begins[i])
		if taken++; taken == 1 || taken < 5 && rtt < srtt {
			srtt, rttvar = rtt, rtt/2
		} else {
			rttvar = 0.75*rttvar + 0.25*math.Abs(srtt-rtt)
			srtt = 0.875*srtt + 0.125*rtt
		}
		last = d.ends[i]
	}
	return math.Min(d.ceil, math.Max(d.floor, srtt+4*rttvar+d.slack))
}

func TestWindowAgreesWithADumbSeries(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		floor := time.Duration(1+rnd.Int64N(500)) * ms
		w := window{floor: floor, ceiling: floor * time.Duration(1+rnd.IntN(10)), slack: time.Duration(rnd.Int64N(300)) * ms}
		d := dumbWindow{floor: w.floor.Seconds(), ceil: w.ceiling.Seconds(), slack: w.slack.Seconds()}
		now := time.Duration(0)
		for range 60 {
			now += time.Duration(rnd.Int64N(int64(200 * ms)))
			begin := now - time.Duration(rnd.ExpFloat64()*float64(100*ms))
			w.sample(at(begin), at(now), false)
			d.begins, d.ends = append(d.begins, begin.Seconds()), append(d.ends, now.Seconds())
			if got, want := w.length().Seconds(), d.length(); math.Abs(got-want) > 1e-6 {
				t.Fatalf("seed %d: got %v s after %d samples, want %v s", seed, got, len(d.begins), want)
			}
		}
	}
}
