package client

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/picker"
	"github.com/quorumwise/quorumwise/prober"
)

func TestStreamsDriftBackToAMemberThatReturned(t *testing.T) {
	s := newScene(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	d := &drifter{over: time.Minute, rand: rnd.Float64}
	v := s.view([3]prober.Grade{healthy, healthy, unhealthy})
	for i := range 30 {
		e := &v.endpoints[i%2]
		e.calls = append(e.calls, s.call(picker.ClassWatch, 0))
	}
	d.decide(v)
	v.endpoints[2].grade = healthy
	moved := 0
	for range 60 {
		v.now = v.now.Add(time.Second)
		now, _ := d.decide(v)
		for _, p := range now {
			moved++
			if p.to != "c" {
				t.Errorf("a stream drifts to %s, want c, the one that returned", p.to)
			}
		}
		if len(now) > 5 {
			t.Errorf("%d streams moved within one second of sixty, want them spread", len(now))
		}
	}
	if moved != 10 {
		t.Errorf("%d of 30 streams drifted back to the third member, want its share, 10", moved)
	}
}

func TestLoneStreamDriftsWithTheProbabilityOfItsShare(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	moved := 0
	s := newScene(t)
	stream := s.call(picker.ClassWatch, 0)
	for range 3000 {
		d := &drifter{over: time.Second, rand: rnd.Float64}
		v := s.view([3]prober.Grade{healthy, healthy, unhealthy}, stream)
		d.decide(v)
		v.endpoints[2].grade = healthy
		d.decide(v)
		v.now = v.now.Add(time.Second)
		now, _ := d.decide(v)
		moved += len(now)
	}
	if moved < 900 || moved > 1100 {
		t.Errorf("%d of 3000 clients moved their only stream back, want about a third", moved)
	}
}

// An election makes every member suspect for a while; a connection's first
// success is no return either.
func TestPassingSuspicionAndFirstConnectionAreNoReturn(t *testing.T) {
	for _, away := range []func(*endpointView){
		func(e *endpointView) { e.grade = suspect },
		func(e *endpointView) { e.ready = false }, // not seen ready before
	} {
		s := newScene(t)
		d := &drifter{over: time.Second, rand: func() float64 { return 0 }}
		v := s.view([3]prober.Grade{healthy, healthy, healthy}, s.call(picker.ClassWatch, 0), s.call(picker.ClassWatch, 0), s.call(picker.ClassWatch, 0))
		back := v.endpoints[2]
		away(&v.endpoints[2])
		d.decide(v)
		v.endpoints[2] = back
		if now, _ := d.decide(v); len(now) != 0 || len(d.planned) != 0 {
			t.Errorf("%d streams moved, %d planned; want none: nobody had left", len(now), len(d.planned))
		}
	}
}

func TestDriftIsDroppedWhenItsTargetFailsAgain(t *testing.T) {
	s := newScene(t)
	d := &drifter{over: time.Minute, rand: func() float64 { return 0.5 }}
	v := s.view([3]prober.Grade{healthy, healthy, unhealthy}, s.call(picker.ClassWatch, 0), s.call(picker.ClassWatch, 0), s.call(picker.ClassWatch, 0))
	d.decide(v)
	v.endpoints[2].grade = healthy
	d.decide(v)
	if len(d.planned) == 0 {
		t.Fatal("nothing planned, want a stream for the member that returned")
	}
	v.endpoints[2].grade = unhealthy
	if now, _ := d.decide(v); len(now)+len(d.planned) != 0 {
		t.Errorf("%d moved, %d still planned towards a member that was given up, want none", len(now), len(d.planned))
	}
}

// The restart of the next member may be that of the leader. What drifts
// then waits for the end of the election, and goes as slowly after it.
func TestElectionDoesNotEndTheDrift(t *testing.T) {
	for _, grades := range [][3]prober.Grade{{suspect, suspect, suspect}, {suspect, suspect, healthy}, {suspect, healthy, healthy}, {healthy, healthy, suspect}} {
		s := newScene(t)
		rnd := rand.New(rand.NewPCG(7, 8))
		d := &drifter{over: time.Minute, rand: rnd.Float64}
		v := s.view([3]prober.Grade{healthy, healthy, unhealthy})
		for i := range 30 {
			e := &v.endpoints[i%2]
			e.calls = append(e.calls, s.call(picker.ClassWatch, 0))
		}
		d.decide(v)
		v.endpoints[2].grade = healthy
		d.decide(v)
		for i, g := range grades {
			v.endpoints[i].grade = g
		}
		if grades[2] == suspect {
			v.now = v.now.Add(time.Minute)
			if now, _ := d.decide(v); len(now) != 0 {
				t.Errorf("%v: %d streams went to a suspect member, want none", grades, len(now))
			}
		} else {
			d.decide(v)
		}
		for i := range grades {
			v.endpoints[i].grade = healthy
		}
		if now, _ := d.decide(v); len(now) > 1 || len(now)+len(d.planned) != 10 {
			t.Errorf("%v: %d streams went at once and %d are planned after the election, want 10 one by one", grades, len(now), len(d.planned))
		}
	}
}

func TestMemberThatHasItsShareAlreadyGetsNoMore(t *testing.T) {
	s := newScene(t)
	d := &drifter{over: time.Minute, rand: func() float64 { return 0.5 }}
	v := s.view([3]prober.Grade{healthy, healthy, unhealthy})
	for i := range 9 { // the third has opened new ones as soon as it was back
		e := &v.endpoints[i%3]
		e.calls = append(e.calls, s.call(picker.ClassWatch, 0))
	}
	d.decide(v)
	v.endpoints[2].grade = healthy
	if now, _ := d.decide(v); len(now)+len(d.planned) != 0 {
		t.Errorf("%d streams move, %d planned towards a member with its third, want none", len(now), len(d.planned))
	}
}

// Two members return at once: each gets its share, no stream is asked for twice.
func TestMembersThatReturnTogetherGetAShareEach(t *testing.T) {
	s := newScene(t)
	rnd := rand.New(rand.NewPCG(5, 6))
	d := &drifter{over: time.Minute, rand: rnd.Float64}
	v := s.view([3]prober.Grade{healthy, unhealthy, unhealthy})
	for range 30 {
		v.endpoints[0].calls = append(v.endpoints[0].calls, s.call(picker.ClassWatch, 0))
	}
	d.decide(v)
	v.endpoints[1].grade, v.endpoints[2].grade = healthy, healthy
	share := make(map[string]int)
	for range 61 {
		now, _ := d.decide(v)
		for _, p := range now {
			share[p.to]++
			v.endpoints[0].calls = slices.DeleteFunc(v.endpoints[0].calls, func(c callView) bool { return c.call == p.call })
		}
		v.now = v.now.Add(time.Second)
	}
	if share["b"] != 10 || share["c"] != 10 {
		t.Errorf("of 30 streams %v went to the two members that returned, want 10 each", share)
	}
}

// In a rolling restart the streams that were to come go with the next member
// that stops. Others come in their place, and no more than the share.
func TestStreamsThatWereToComeAndWentAreReplaced(t *testing.T) {
	s := newScene(t)
	rnd := rand.New(rand.NewPCG(7, 8))
	d := &drifter{over: time.Minute, rand: rnd.Float64}
	v := s.view([3]prober.Grade{healthy, healthy, unhealthy})
	for i := range 30 {
		e := &v.endpoints[i%2]
		e.calls = append(e.calls, s.call(picker.ClassWatch, 0))
	}
	d.decide(v)
	v.endpoints[2].grade = healthy
	d.decide(v)
	if len(d.planned) != 10 {
		t.Fatalf("%d streams are planned to come, want 10", len(d.planned))
	}
	v.endpoints[0].calls, v.endpoints[1].calls = nil, append(v.endpoints[1].calls, s.call(picker.ClassWatch, 0))
	for range 14 { // what was on the first is opened again on the second
		v.endpoints[1].calls = append(v.endpoints[1].calls, s.call(picker.ClassWatch, 0))
	}
	d.decide(v)
	if len(d.planned) != 10 {
		t.Errorf("%d streams are planned to come after those of one member were opened again, want 10", len(d.planned))
	}
	for range 8 { // new ones come by themselves
		v.endpoints[2].calls = append(v.endpoints[2].calls, s.call(picker.ClassWatch, 0))
	}
	d.decide(v)
	if n := len(d.planned); n < 4 || n > 5 {
		t.Errorf("%d streams are planned to come to a member that has 8 of 38, want the rest of its share of 12.7", n)
	}
}

func TestDriftCanBeTurnedOff(t *testing.T) {
	s := newScene(t)
	d := &drifter{over: -1, rand: func() float64 { return 0 }}
	v := s.view([3]prober.Grade{healthy, healthy, unhealthy}, s.call(picker.ClassWatch, 0))
	d.decide(v)
	v.endpoints[2].grade = healthy
	if now, next := d.decide(v); len(now) != 0 || next != 0 {
		t.Errorf("%d moved, next in %v, with rebalancing off", len(now), next)
	}
}
