package servershim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/membership"
)

// stalls is what a member's disk does from one time to another: it is frozen for so
// long at the begin of every period.
type stalls struct {
	from, to       time.Duration
	frozen, period time.Duration
}

// thaw is when a read that is ready at t gets through.
func (d stalls) thaw(t time.Duration) time.Duration {
	if t < d.from || t >= d.to {
		return t
	}
	if into := (t - d.from) % d.period; into < d.frozen {
		return min(t-into+d.frozen, d.to)
	}
	return t
}

// life is how a member does over the time of a script: its disk, how long a read that
// no disk holds up takes, and the term. Local reads and observations are always answered.
type life struct {
	disks []stalls
	rtt   func(time.Duration) time.Duration
	term  func(time.Duration) uint64
}

func always2ms(time.Duration) time.Duration { return 2 * ms }

func term5(time.Duration) uint64 { return 5 }

// ends is when a proof that began at t completes.
func (l life) ends(t time.Duration) time.Duration {
	t += l.rtt(t)
	for _, d := range l.disks {
		t = d.thaw(t)
	}
	return t
}

// change is one of the verdict.
type change struct {
	at      time.Duration
	verdict string // a reason, or serving
}

func (c change) String() string { return fmt.Sprintf("%v %s", c.at, c.verdict) }

// live lets a member live, with the loop awake on time, and returns all changes of the
// verdict.
func (s *script) live(l life, until time.Duration) []change {
	var changes []change
	before := "serving"
	ends := make(map[int]time.Time) // of proofs
	for s.now.Before(at(until)) {
		for _, kind := range []callKind{callRead, callObserve} {
			for len(s.out[kind]) > 0 {
				s.answer(kind, outcome{seen: membership.Observation{Cluster: 1, Member: 2, Leader: 3, Term: l.term(s.now.Sub(start)), RaftIndex: 9, AppliedIndex: 9, At: s.now}})
			}
		}
		next := s.answerProofs(l, ends)
		after := "serving"
		if r := s.report(); !r.Serving {
			after = string(r.Reason)
		}
		if after != before {
			changes = append(changes, change{s.now.Sub(start), after})
			before = after
		}
		if s.due.Before(next) {
			next = s.due
		}
		s.wakeAt(next)
	}
	return changes
}

// answerProofs answers those that are due, in the order in which they began, and returns
// when the next one will be.
func (s *script) answerProofs(l life, ends map[int]time.Time) (next time.Time) {
	var later []call
	next = s.now.Add(time.Hour)
	out := s.out[callProve]
	s.out[callProve] = nil
	for _, p := range out {
		begin := s.core.proofs.out[p.id].begin
		end, known := ends[p.id]
		if !known {
			end = at(l.ends(begin.Sub(start)))
			ends[p.id] = end
		}
		o := outcome{call: p, end: s.now}
		if limit := begin.Add(s.deadline(callProve)); end.After(limit) {
			end, o.err = limit, context.DeadlineExceeded
		}
		if end.After(s.now) {
			later = append(later, p)
			if end.Before(next) {
				next = end
			}
			continue
		}
		delete(ends, p.id)
		s.result(s.now, o)
	}
	s.turn()
	s.out[callProve] = append(later, s.out[callProve]...)
	return next
}

// outs are the times that the member was not serving, in pairs; the last may be open.
func outs(changes []change) (spans [][2]time.Duration) {
	for _, c := range changes {
		switch n := len(spans); {
		case c.verdict == "serving":
			spans[n-1][1] = c.at
		case n == 0 || spans[n-1][1] != 0:
			spans = append(spans, [2]time.Duration{c.at, 0})
		}
	}
	return spans
}

// As it was seen on a real disk: it stands still for 750 ms of each second, then it
// hangs, then it is well. In between the stalls proofs complete in 2 ms, enough of them in a
// row to return at once; and a window that takes the stalls for the distance finds
// nothing wrong any more.
func TestCoreOfAMemberWhoseDiskStallsAgainAndAgainGoesOnceAndReturnsOnce(t *testing.T) {
	for _, frozen := range []time.Duration{500 * ms, 750 * ms, 900 * ms} {
		for phase := time.Duration(0); phase < 100*ms; phase += 9 * ms {
			s := serves(t)
			from := 5*time.Second + phase
			hangs, heals := from+10*time.Second, from+20*time.Second
			changes := s.live(life{rtt: always2ms, term: term5, disks: []stalls{
				{from, hangs, frozen, time.Second}, {hangs, heals, time.Hour, time.Hour},
			}}, time.Minute)
			spans := outs(changes)
			if len(spans) != 1 || spans[0][0] > from+250*ms || spans[0][1] < heals+time.Second || spans[0][1] > heals+1300*ms {
				t.Errorf("frozen for %v of each second from %v, for good from %v to %v: got out in %v; want out once, by a window of 250 ms, and back once, 1 to 1.3 s after the heal\n%v",
					frozen, from, hangs, heals, spans, changes)
			}
		}
	}
}

// Where the good times are longer than the first wait, the next waits are longer still.
func TestCoreOfAMemberThatFlapsIsOutForLongerEachTime(t *testing.T) {
	for _, c := range []struct {
		period time.Duration
		most   int // times that it goes, in five minutes of that
	}{
		{2500 * ms, 2},        // 1 s fits into the good times, 2 s does not
		{5 * time.Second, 4},  // 4 s does, 8 s does not
		{20 * time.Second, 6}, // 16 s does
	} {
		s := serves(t)
		const from, to = 5 * time.Second, 5*time.Second + 5*time.Minute
		spans := outs(s.live(life{rtt: always2ms, term: term5, disks: []stalls{{from, to, 750 * ms, c.period}}}, to+2*time.Minute))
		if len(spans) == 0 || len(spans) > c.most || spans[len(spans)-1][1] == 0 || spans[len(spans)-1][1] > to+time.Minute {
			t.Errorf("750 ms of stall each %v: got out in %v, want at most %d times, and back no later than a minute after the end at %v", c.period, spans, c.most, to)
		}
	}
}

func TestCoreOfAMemberThatWasCutReturnsInGoodTime(t *testing.T) {
	for _, long := range []time.Duration{300 * ms, time.Second, 10 * time.Second, 10 * time.Minute} {
		s := serves(t)
		const from = 5 * time.Second
		spans := outs(s.live(life{rtt: always2ms, term: term5, disks: []stalls{{from, from + long, long, long}}}, from+long+10*time.Second))
		if len(spans) != 1 || spans[0][1] < from+long+time.Second || spans[0][1] > from+long+1200*ms {
			t.Errorf("cut from %v for %v: got out in %v, want it back 1 to 1.2 s after that", from, long, spans)
		}
		if s.core.window.lost != 0 {
			t.Errorf("cut from %v for %v: the window of the member that is back is held to %v, want that it follows the round trip", from, long, s.core.window.lost)
		}
	}
}

// A member that is farther from the leader than before is not ill.
func TestCoreOfAMemberThatIsFartherAwayForGoodReturns(t *testing.T) {
	for _, c := range []struct {
		why    string
		term   func(time.Duration) uint64
		within time.Duration
	}{
		{"the network takes another way", term5, 7 * time.Second},
		{"an election moved the leader", func(t time.Duration) uint64 {
			if t < 5*time.Second {
				return 5
			}
			return 6
		}, 2500 * ms},
	} {
		for _, rtt := range []time.Duration{100 * ms, 200 * ms, 400 * ms, 600 * ms} {
			s := serves(t)
			const from = 5 * time.Second
			changes := s.live(life{term: c.term, rtt: func(t time.Duration) time.Duration {
				if t < from {
					return 2 * ms
				}
				return rtt
			}}, 10*time.Minute)
			spans := outs(changes)
			if len(spans) > 1 || len(spans) == 1 && (spans[0][1] == 0 || spans[0][1] > from+c.within) {
				t.Errorf("%s, %v from %v on: got out in %v, want it out once at most, and back within %v\n%v", c.why, rtt, from, spans, c.within, changes)
			}
		}
	}
}

// Elections stall the proofs of all; nobody waits for one.
func TestCoreReturnsAtOnceAfterElections(t *testing.T) {
	const every = 5070 * ms                                       // not in step with the observations
	for _, told := range []time.Duration{0, 50 * ms, 1300 * ms} { // when the new term shows
		s := serves(t)
		var disks []stalls
		for i := range 20 {
			from := 5*time.Second + time.Duration(i)*every
			disks = append(disks, stalls{from, from + 1500*ms, time.Hour, time.Hour})
		}
		changes := s.live(life{rtt: always2ms, disks: disks, term: func(t time.Duration) uint64 {
			return 5 + uint64(max(0, t-told-5*time.Second+every)/every)
		}}, 110*time.Second)
		for i, span := range outs(changes) {
			if back := span[1] - disks[i].to; back > 400*ms {
				t.Errorf("election %d, whose term shows after %v: got back %v after it, want within 400 ms: it was nobody's fault\n%v", i, told, back, changes)
				break
			}
		}
	}
}

// Whatever a member's disk does, a member that serves was good for its hold-down, and
// one that is good for the longest hold-down and its window's memory serves.
func TestCoreOfAMemberWithAnyDiskReturnsInTheEnd(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		s := serves(t)
		var l life
		end := 3 * time.Second
		for range 1 + rnd.IntN(5) {
			period := time.Duration(100+rnd.IntN(4000)) * ms
			d := stalls{end, end + time.Duration(rnd.IntN(20))*time.Second, time.Duration(rnd.Int64N(int64(period))), period}
			l.disks, end = append(l.disks, d), d.to
		}
		l.term = term5
		l.rtt = func(time.Duration) time.Duration { return time.Duration(1+rnd.IntN(40)) * ms }
		changes := s.live(l, end+62*time.Second)
		if n := len(changes); n > 0 && changes[n-1].verdict != "serving" {
			var lines []string
			for _, c := range changes[max(0, n-20):] {
				lines = append(lines, c.String())
			}
			t.Errorf("seed %d: got %v in the end, well since %v; want serving within the longest hold-down\ndisks %v\n%s", seed, changes[n-1], end, l.disks, strings.Join(lines, "\n"))
		}
	}
}

func TestLeastForgetsAfterTwoSpans(t *testing.T) {
	var l least
	got := []time.Duration{}
	for _, s := range []struct{ at, d time.Duration }{{0, 5}, {1, 9}, {2, 3}, {9, 7}, {10, 8}, {15, 9}, {20, 6}, {31, 9}, {99, 12}} {
		l.sample(at(s.at*time.Second), s.d, 10*time.Second)
		got = append(got, l.value())
	}
	if want := []time.Duration{5, 5, 3, 3, 3, 3, 6, 6, 12}; !slices.Equal(got, want) {
		t.Errorf("got %v as the least, want %v: that of this span of 10 s and the one before", got, want)
	}
}
