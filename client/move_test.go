package client

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/picker"
	"github.com/quorumwise/quorumwise/prober"
)

// scene builds views for the mover: endpoints a, b, c and calls on them.
type scene struct {
	t   *testing.T
	hub *picker.Hub
	now time.Time
	m   *mover
}

func newScene(t *testing.T) *scene {
	hub := picker.NewHub()
	t.Cleanup(hub.Close)
	return &scene{t: t, hub: hub, now: time.Unix(1000, 0), m: &mover{
		overdue: 250 * time.Millisecond, keepalive: 800 * time.Millisecond,
		election: time.Second, spread: 100 * time.Millisecond, hold: 300 * time.Millisecond, rand: func() float64 { return 0.5 },
	}}
}

func (s *scene) call(class picker.Class, age time.Duration) callView {
	_, c := s.hub.Begin(context.Background(), class, "/etcdserverpb.KV/Put")
	s.t.Cleanup(c.Finish)
	return callView{call: c, class: class, method: c.Method(), picked: s.now.Add(-age)}
}

func (s *scene) view(grades [3]prober.Grade, calls ...callView) view {
	v := view{now: s.now}
	for i, g := range grades {
		v.endpoints = append(v.endpoints, endpointView{
			address: string(rune('a' + i)), grade: g, reason: "no-quorum", since: s.now.Add(-400 * time.Millisecond), ready: true,
		})
	}
	v.endpoints[0].calls = calls
	return v
}

func ended(d decision) []*picker.Call {
	var out []*picker.Call
	for _, e := range d.ends {
		out = append(out, e.call)
	}
	return out
}

const (
	healthy   = prober.Healthy
	unknown   = prober.Unknown
	suspect   = prober.Suspect
	unhealthy = prober.Unhealthy
	parked    = prober.Parked
)

// Which class leaves an endpoint of which grade, with others of which grade.
func TestCallsLeaveByClassAndGrade(t *testing.T) {
	for _, tt := range []struct {
		name   string
		grades [3]prober.Grade
		want   map[picker.Class]bool // leaves at once or within the spread
	}{
		{"healthy member", [3]prober.Grade{healthy, healthy, healthy}, nil},
		{"unknown member beside healthy ones", [3]prober.Grade{unknown, healthy, healthy}, nil},
		{"suspect: reads only", [3]prober.Grade{suspect, healthy, suspect}, map[picker.Class]bool{picker.ClassRead: true}},
		{"suspect beside unknown: reads only", [3]prober.Grade{suspect, unknown, suspect}, map[picker.Class]bool{picker.ClassRead: true}},
		{"all suspect, as in an election: nothing", [3]prober.Grade{suspect, suspect, suspect}, nil},
		{"unhealthy, others only suspect: nothing", [3]prober.Grade{unhealthy, suspect, suspect}, nil},
		{"unhealthy: everything", [3]prober.Grade{unhealthy, healthy, suspect}, map[picker.Class]bool{
			picker.ClassRead: true, picker.ClassMutation: true, picker.ClassWatch: true, picker.ClassLease: true, picker.ClassStream: true}},
		{"parked: everything", [3]prober.Grade{parked, unknown, suspect}, map[picker.Class]bool{
			picker.ClassRead: true, picker.ClassMutation: true, picker.ClassWatch: true, picker.ClassLease: true, picker.ClassStream: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, class := range []picker.Class{picker.ClassRead, picker.ClassMutation, picker.ClassWatch, picker.ClassLease, picker.ClassStream, picker.ClassOther} {
				s := newScene(t)
				c := s.call(class, 10*time.Millisecond)
				v := s.view(tt.grades, c)
				first := s.m.decide(v)
				v.now = v.now.Add(100 * time.Millisecond)
				later := s.m.decide(v)
				if got := len(first.ends)+len(later.ends) > 0; got != tt.want[class] {
					t.Errorf("%s on grades %v: moved = %v, want %v", className(class), tt.grades, got, tt.want[class])
				}
			}
		})
	}
}

func TestNothingMovesToAnEndpointThatIsNotConnected(t *testing.T) {
	s := newScene(t)
	v := s.view([3]prober.Grade{unhealthy, healthy, suspect}, s.call(picker.ClassLease, 0), s.call(picker.ClassRead, 0))
	v.endpoints[1].ready = false
	if d := s.m.decide(v); len(d.ends) > 0 {
		t.Fatalf("%d calls were ended although the only better endpoint is not connected: they would hang", len(d.ends))
	}
	v.endpoints[1].ready = true
	if d := s.m.decide(v); len(d.ends) != 2 {
		t.Errorf("%d calls were ended when the better endpoint became ready, want 2", len(d.ends))
	}
}

func TestLeasesGoFirstAndShortestLifeBeforeOthers(t *testing.T) {
	s := newScene(t)
	watch, mutation := s.call(picker.ClassWatch, 0), s.call(picker.ClassMutation, 0)
	long, short := s.call(picker.ClassLease, 0), s.call(picker.ClassLease, 0)
	long.lease.remaining, short.lease.remaining = 4*time.Second, time.Second
	v := s.view([3]prober.Grade{unhealthy, healthy, healthy}, watch, mutation, long, short)
	s.m.rand = func() float64 { return 0 }
	got, want := ended(s.m.decide(v)), []*picker.Call{short.call, long.call, watch.call, mutation.call}
	if len(got) != len(want) {
		t.Fatalf("%d calls ended, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("call %d to go is a %s, want a %s", i, className(got[i].Class()), className(want[i].Class()))
		}
	}
}

func TestWatchesLeaveSpreadOverTime(t *testing.T) {
	s := newScene(t)
	n := 0
	s.m.rand = func() float64 { n++; return []float64{0.1, 0.9}[n%2] }
	v := s.view([3]prober.Grade{unhealthy, healthy, healthy}, s.call(picker.ClassWatch, 0), s.call(picker.ClassWatch, 0))
	d := s.m.decide(v)
	if len(d.ends) != 0 || d.wait != 10*time.Millisecond {
		t.Fatalf("at once: %d ended, next look in %v; want none, and 10ms (the earlier of 10 and 90)", len(d.ends), d.wait)
	}
	v.now = v.now.Add(d.wait)
	if d = s.m.decide(v); len(d.ends) != 1 {
		t.Fatalf("after 10ms %d ended, want the first of two", len(d.ends))
	}
	v.now = v.now.Add(80 * time.Millisecond)
	if d = s.m.decide(v); len(d.ends) != 2 {
		t.Errorf("after 90ms %d due, want both", len(d.ends))
	}
}

// A mutation that was in flight when the leader was lost may have been
// forwarded to it and hang for seven seconds on a healthy member.
func TestMutationOfALostLeaderGetsTwoElectionTimeouts(t *testing.T) {
	s := newScene(t)
	old, fresh, read := s.call(picker.ClassMutation, 500*time.Millisecond), s.call(picker.ClassMutation, 0), s.call(picker.ClassRead, 500*time.Millisecond)
	fresh.picked = s.now.Add(time.Second)
	v := s.view([3]prober.Grade{healthy, healthy, healthy}, old, fresh, read)
	v.leader, v.term = 1, 5
	if d := s.m.decide(v); len(d.ends) != 0 {
		t.Fatalf("the first leader that is heard of took over from nobody, yet %d calls ended", len(d.ends))
	}
	changed := s.now.Add(100 * time.Millisecond)
	v.term, v.now = 6, changed // the same leader, elected again
	s.m.decide(v)
	v.now = changed.Add(1999 * time.Millisecond)
	if d := s.m.decide(v); len(d.ends) != 0 {
		t.Fatalf("%d calls ended before two election timeouts of the new leader", len(d.ends))
	}
	v.now = changed.Add(2 * time.Second)
	d := s.m.decide(v)
	if len(d.ends) != 1 || d.ends[0].call != old.call || d.ends[0].cause.Reason != ReasonLeaderLost {
		t.Errorf("ended %v, want only the mutation that was sent before the new leader", d.ends)
	}
}

// Elections in quick succession must not keep it waiting: what was lost with the first
// leader stays lost.
func TestMutationOfALostLeaderGetsNoMoreTimeByLaterElections(t *testing.T) {
	s := newScene(t)
	c := s.call(picker.ClassMutation, 500*time.Millisecond)
	v := s.view([3]prober.Grade{healthy, healthy, healthy}, c)
	v.leader, v.term = 1, 5
	s.m.decide(v)
	lost := s.now.Add(100 * time.Millisecond)
	for v.now = lost; v.now.Before(lost.Add(2 * time.Second)); v.now = v.now.Add(50 * time.Millisecond) {
		if v.now.Sub(lost)%(600*time.Millisecond) == 0 {
			v.term++
		}
		if d := s.m.decide(v); len(d.ends) != 0 {
			t.Fatalf("ended %v after the first leader was lost, want two election timeouts", v.now.Sub(lost))
		}
	}
	if d := s.m.decide(v); len(d.ends) != 1 || !d.ends[0].cause.Since.Equal(lost) {
		t.Errorf("ended %v two election timeouts after its leader was lost, want the mutation, since then", d.ends)
	}
	for range 3 * mostChanges {
		v.term++
		s.m.decide(v)
	}
	if n := len(s.m.changes); n > mostChanges {
		t.Errorf("%d elections are remembered, want at most %d", n, mostChanges)
	}
}

// SetEndpoints may lead to another cluster, and one that is restored from a backup begins at
// low terms: leaders are lost there too. What is not news is a leader of the past.
func TestLeadersOfALowerTermAreFollowedWhenTheyLast(t *testing.T) {
	type step struct {
		term, leader uint64
		until        time.Duration
	}
	const ms = time.Millisecond
	for _, tt := range []struct {
		name  string
		steps []step
		want  []time.Duration // when changes were heard of
	}{
		{"another cluster", []step{{90, 1, 0}, {3, 2, 5000 * ms}, {4, 2, 9000 * ms}}, []time.Duration{5050 * ms}},
		{"another cluster that elects early", []step{{90, 1, 0}, {3, 2, 1000 * ms}, {4, 3, 9000 * ms}}, []time.Duration{2050 * ms}},
		{"another cluster that has no leader at first", []step{{90, 1, 0}, {0, 0, 3000 * ms}, {3, 2, 6000 * ms}, {4, 3, 9000 * ms}}, []time.Duration{6050 * ms}},
		{"a leader of the past between two", []step{{5, 1, 0}, {6, 2, 1000 * ms}, {5, 1, 2950 * ms}, {6, 2, 4000 * ms}}, []time.Duration{50 * ms}},
		{"a leader of the past now and then", []step{{6, 2, 0}, {5, 1, 1500 * ms}, {6, 2, 1600 * ms}, {5, 1, 3100 * ms}, {6, 2, 4000 * ms}}, nil},
	} {
		s := newScene(t)
		v := s.view([3]prober.Grade{healthy, healthy, healthy})
		for _, step := range tt.steps {
			for v.term, v.leader = step.term, step.leader; v.now.Sub(s.now) <= step.until; v.now = v.now.Add(50 * ms) {
				s.m.decide(v)
			}
		}
		var got []time.Duration
		for _, at := range s.m.changes {
			got = append(got, at.Sub(s.now))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: changes at %v, want at %v", tt.name, got, tt.want)
		}
	}
}

// v3lock's Lock waits for the lock on purpose, whoever leads meanwhile.
func TestCallThatWaitsOnPurposeIsLeftToWait(t *testing.T) {
	s := newScene(t)
	lock := s.call(picker.ClassMutation, time.Minute)
	lock.method = "/v3lockpb.Lock/Lock"
	v := s.view([3]prober.Grade{healthy, healthy, healthy}, lock)
	v.leader, v.term = 1, 5
	s.m.decide(v)
	v.term = 6
	s.m.decide(v)
	v.now = v.now.Add(time.Minute)
	if d := s.m.decide(v); len(d.ends)+len(d.prove) != 0 {
		t.Errorf("%d ended, proofs asked of %v after a change of leader; want the call left alone", len(d.ends), d.prove)
	}
	v.endpoints[0].grade = unhealthy
	if d := s.m.decide(v); len(d.ends) != 1 {
		t.Errorf("%d ended on an unhealthy member, want the call", len(d.ends))
	}
}

func TestUnansweredKeepaliveReopensItsStreamOnAHealthyMember(t *testing.T) {
	s := newScene(t)
	c := s.call(picker.ClassLease, time.Hour)
	c.lease.unanswered = s.now.Add(-799 * time.Millisecond)
	v := s.view([3]prober.Grade{healthy, suspect, suspect}, c)
	if d := s.m.decide(v); len(d.ends) != 0 || !d.watch {
		t.Fatalf("at 799ms: %d ended, watched %v; want none, and watched", len(d.ends), d.watch)
	}
	v.now = v.now.Add(time.Millisecond)
	d := s.m.decide(v)
	if len(d.ends) != 1 || d.ends[0].cause.Reason != ReasonKeepalive {
		t.Errorf("at 800ms: ended %v, want the lease stream, keepalive overdue", d.ends)
	}
}

// Patience follows the slowest answer of late, and doubles while there is
// none. A keepalive that a lost leader may have is not waited for.
func TestPatienceWithKeepalives(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lease leaseInfo
		after time.Duration // since the new leader; 0: none
		want  time.Duration // age at which the stream is opened again
		all   bool          // endpoints are to be avoided
	}{
		{"the first time", leaseInfo{}, 0, 800 * time.Millisecond, false},
		{"answers as fast as usual", leaseInfo{slow: 10 * time.Millisecond}, 0, 800 * time.Millisecond, false},
		{"slow answers", leaseInfo{slow: 2 * time.Second}, 0, 4 * time.Second, false},
		{"the second time", leaseInfo{tries: 1}, 0, 1600 * time.Millisecond, false},
		{"the third time", leaseInfo{tries: 2}, 0, 3200 * time.Millisecond, false},
		{"the third time, new leader 1 s after it was sent", leaseInfo{tries: 2}, time.Second, 1200 * time.Millisecond, false},
		{"none is better, new leader 1 s after it was sent", leaseInfo{tries: 2}, time.Second, 1200 * time.Millisecond, true},
	} {
		s := newScene(t)
		if tt.after > 0 {
			s.m.changes = []time.Time{s.now.Add(tt.after)}
		}
		for _, age := range []time.Duration{tt.want - 1, tt.want} {
			v := &view{now: s.now.Add(age), endpoints: []endpointView{{ready: true, grade: prober.Healthy}}}
			if tt.all {
				v.endpoints[0].grade = prober.Suspect
			}
			tt.lease.unanswered = s.now
			if got := s.m.keepaliveOverdue(v, &v.endpoints[0], tt.lease); got != (age == tt.want) {
				t.Errorf("%s: overdue after %v: %v, want so from %v on", tt.name, age, got, tt.want)
			}
		}
	}
}

// Where all answers are slow no stream that is opened again gets one sooner.
func TestOverdueKeepaliveStaysWhereNoEndpointIsBetter(t *testing.T) {
	for _, tt := range []struct {
		this, other prober.Grade
		ready       bool // the other
		want        bool
	}{
		{suspect, suspect, true, false},
		{prober.Unhealthy, suspect, true, true},
		{suspect, prober.Unhealthy, true, false},
		{suspect, healthy, true, true},
		{suspect, healthy, false, false},
		{suspect, prober.Unknown, true, true},
		{healthy, suspect, true, true},
	} {
		s := newScene(t)
		v := &view{now: s.now.Add(time.Minute), endpoints: []endpointView{{address: "a", ready: true, grade: tt.this}, {address: "b", ready: tt.ready, grade: tt.other}}}
		if got := s.m.keepaliveOverdue(v, &v.endpoints[0], leaseInfo{unanswered: s.now}); got != tt.want {
			t.Errorf("on a %v endpoint beside a %v one, connected %v: overdue %v, want %v", tt.this, tt.other, tt.ready, got, tt.want)
		}
	}
}

// Left to itself the stream might come back to the member with the fewest streams.
func TestOverdueKeepaliveGoesToTheBestOfTheOthers(t *testing.T) {
	for _, tt := range []struct {
		grades [3]prober.Grade
		ready  [3]bool
		want   string
	}{
		{[3]prober.Grade{healthy, healthy, suspect}, [3]bool{true, true, true}, "b"},
		{[3]prober.Grade{healthy, suspect, unknown}, [3]bool{true, true, true}, "c"},
		{[3]prober.Grade{healthy, healthy, suspect}, [3]bool{true, false, true}, "c"},
		{[3]prober.Grade{healthy, healthy, healthy}, [3]bool{true, false, false}, ""},
	} {
		s := newScene(t)
		c := s.call(picker.ClassLease, time.Hour)
		c.lease.unanswered = s.now.Add(-time.Second)
		v := s.view(tt.grades, c)
		for i := range v.endpoints {
			v.endpoints[i].ready = tt.ready[i]
		}
		if d := s.m.decide(v); len(d.ends) != 1 || d.ends[0].to != tt.want {
			t.Errorf("grades %v, connected %v: ends %v, want one that goes to %q", tt.grades, tt.ready, d.ends, tt.want)
		}
	}
}

// The first leader that is heard of took over from nobody, whenever the call began.
func TestFirstLeaderEndsNoMutation(t *testing.T) {
	s := newScene(t)
	v := s.view([3]prober.Grade{healthy, healthy, healthy}, s.call(picker.ClassMutation, time.Second))
	v.leader, v.term = 1, 5
	s.m.decide(v)
	v.now = v.now.Add(time.Minute)
	if d := s.m.decide(v); len(d.ends) != 0 {
		t.Errorf("%d mutations ended for a leader that took over from nobody", len(d.ends))
	}
}

// A verdict passes from suspect to unhealthy; the caller wants to know since
// when the member was bad.
func TestCallerIsToldSinceWhenTheMemberWasBad(t *testing.T) {
	s := newScene(t)
	v := s.view([3]prober.Grade{suspect, healthy, healthy}, s.call(picker.ClassMutation, 0))
	v.endpoints[0].since = s.now
	s.m.decide(v)
	v.now = s.now.Add(300 * time.Millisecond)
	v.endpoints[0].grade, v.endpoints[0].since = unhealthy, v.now
	d := s.m.decide(v)
	if len(d.ends) != 1 || !d.ends[0].cause.Since.Equal(s.now) || d.ends[0].cause.After != 300*time.Millisecond {
		t.Errorf("ended %v, want the mutation, told that its member was bad for 300ms", d.ends)
	}
	v.endpoints[0].grade = healthy
	s.m.decide(v)
	v.now = v.now.Add(time.Second)
	v.endpoints[0].grade, v.endpoints[0].since = unhealthy, v.now
	if d = s.m.decide(v); len(d.ends) != 1 || d.ends[0].cause.After != 0 {
		t.Errorf("ended %v, want the time of the present trouble only", d.ends)
	}
}

// Nothing in flight, nothing to look at: a member that is down for days costs a
// client at rest no wake-ups.
func TestMoverRestsWhenNothingIsInFlight(t *testing.T) {
	for _, tt := range []struct {
		name  string
		calls []picker.Class
		grade prober.Grade
		watch bool
	}{
		{"nothing on a bad member", nil, unhealthy, false},
		{"a call that nobody moves", []picker.Class{picker.ClassOther}, unhealthy, false},
		{"a watch on a healthy member", []picker.Class{picker.ClassWatch}, healthy, false},
		{"a watch on a suspect one", []picker.Class{picker.ClassWatch}, suspect, true},
		{"a read", []picker.Class{picker.ClassRead}, healthy, true},
		{"a mutation", []picker.Class{picker.ClassMutation}, healthy, true},
	} {
		s := newScene(t)
		var calls []callView
		for _, class := range tt.calls {
			calls = append(calls, s.call(class, 0))
		}
		if d := s.m.decide(s.view([3]prober.Grade{tt.grade, suspect, suspect}, calls...)); d.watch != tt.watch {
			t.Errorf("%s: watched %v, want %v", tt.name, d.watch, tt.watch)
		}
	}
}

// A call begins shortly before it is filed: one look that sees nothing proves nothing.
func TestLoopRestsAfterASecondLookThatSawNothing(t *testing.T) {
	var r rest
	for i, step := range []struct {
		wake, watch bool
		wait        time.Duration
		idle        bool
	}{
		{true, true, activeTick, false},
		{false, false, activeTick, false},
		{false, false, activeTick, true}, // what begins from now on wakes the loop
		{false, false, idleTick, true},
		{true, false, activeTick, false},
		{false, false, activeTick, true},
		{true, false, activeTick, false},
	} {
		if step.wake {
			r.quiet = 0
		}
		if wait, idle := r.next(step.watch); wait != step.wait || idle != step.idle {
			t.Errorf("step %d: wait %v, idle %v; want %v, %v", i, wait, idle, step.wait, step.idle)
		}
	}
}

// An overdue call triggers a proof and is never itself a verdict.
func TestOverdueCallAsksForAProofAndStays(t *testing.T) {
	s := newScene(t)
	v := s.view([3]prober.Grade{healthy, healthy, healthy}, s.call(picker.ClassRead, 250*time.Millisecond))
	d := s.m.decide(v)
	if len(d.ends) != 0 || len(d.prove) != 1 || d.prove[0] != "a" {
		t.Errorf("ended %d, proofs asked of %v; want none ended, a proof of a", len(d.ends), d.prove)
	}
	v = s.view([3]prober.Grade{healthy, healthy, healthy}, s.call(picker.ClassWatch, time.Hour), s.call(picker.ClassRead, 249*time.Millisecond))
	if d := s.m.decide(v); len(d.prove) != 0 {
		t.Errorf("proofs asked of %v for a young read and an old watch, want none", d.prove)
	}
}

func TestMoverForgetsCallsThatAreGone(t *testing.T) {
	s := newScene(t)
	v := s.view([3]prober.Grade{unhealthy, healthy, healthy}, s.call(picker.ClassWatch, 0))
	s.m.decide(v)
	if len(s.m.due) != 1 {
		t.Fatalf("%d streams wait for their moment, want 1", len(s.m.due))
	}
	v.endpoints[0].calls = nil
	if s.m.decide(v); len(s.m.due) != 0 {
		t.Errorf("%d streams are remembered after they ended, want 0", len(s.m.due))
	}
}

// After a loss that hit all members the first one to be back must not draw what the next
// one serves already.
func TestNothingButReadsLeavesAMemberThatSettles(t *testing.T) {
	s := newScene(t)
	var calls []callView
	for _, c := range []picker.Class{picker.ClassLease, picker.ClassWatch, picker.ClassMutation, picker.ClassStream} {
		calls = append(calls, s.call(c, time.Second))
	}
	v := s.view([3]prober.Grade{unhealthy, healthy, suspect}, calls...)
	v.endpoints[0].reason, v.endpoints[0].settling = prober.ReasonSettling, true
	for range 4 {
		if d := s.m.decide(v); len(d.ends) != 0 {
			t.Fatalf("%d calls left a member that proves its quorum, want none: %v", len(d.ends), d.ends[0].cause)
		}
		v.now = v.now.Add(50 * time.Millisecond)
	}
	later := v
	later.now = v.now.Add(time.Second)
	if d := s.m.decide(later); len(d.ends) != 1 || d.ends[0].call.Class() != picker.ClassMutation {
		t.Errorf("%d calls left when the mutation was over two election timeouts old, want it alone: it was lost with the quorum", len(d.ends))
	}
	v.endpoints[0].reason, v.endpoints[0].settling = "no-quorum", false
	lost, left := later.now, make(map[*picker.Call]bool)
	for v.now = lost; v.now.Before(lost.Add(600 * time.Millisecond)); v.now = v.now.Add(50 * time.Millisecond) {
		for _, c := range ended(s.m.decide(v)) {
			if c.Class() != picker.ClassMutation && v.now.Sub(lost) < 300*time.Millisecond {
				t.Errorf("a %v left %v after its quorum was lost again; want none before a hold: it may be an election that the other has not noticed", c.Class(), v.now.Sub(lost))
			}
			left[c] = true
		}
	}
	if len(left) != len(calls) {
		t.Errorf("%d of %d calls left when its quorum was lost again for longer than a hold; want all", len(left), len(calls))
	}
}

// A quorum that comes and goes for good, each time for less than a hold, is none: what is
// there leaves. One that lasts for a hold counts, as it does on a member in use.
func TestMemberThatRelapsesAgainAndAgainIsLeft(t *testing.T) {
	for _, tt := range []struct {
		settles, relapses time.Duration
		want              bool // it is left
	}{
		{100 * time.Millisecond, 250 * time.Millisecond, true},
		{250 * time.Millisecond, 100 * time.Millisecond, true},
		{350 * time.Millisecond, 250 * time.Millisecond, false},
		{350 * time.Millisecond, 450 * time.Millisecond, true},
	} {
		s := newScene(t)
		watch, lease := s.call(picker.ClassWatch, 0), s.call(picker.ClassLease, 0)
		v := s.view([3]prober.Grade{unhealthy, healthy, healthy}, watch, lease)
		left, first := make(map[*picker.Call]bool), time.Duration(0)
		for ; v.now.Sub(s.now) < 10*time.Second; v.now = v.now.Add(50 * time.Millisecond) {
			v.endpoints[0].settling = v.now.Sub(s.now)%(tt.settles+tt.relapses) < tt.settles
			for _, c := range ended(s.m.decide(v)) {
				if left[c] = true; first == 0 {
					first = v.now.Sub(s.now)
				}
			}
		}
		if got := len(left) == 2; got != tt.want || len(left) == 1 {
			t.Errorf("quorum for %v, none for %v: %d of watch and lease left, want all: %v", tt.settles, tt.relapses, len(left), tt.want)
		}
		if tt.want && first < tt.settles+300*time.Millisecond {
			t.Errorf("quorum for %v, none for %v: left after %v, want a hold after the first relapse", tt.settles, tt.relapses, first)
		}
	}
}

// What waits on purpose, or was sent when the member had its quorum back, is not lost.
func TestMutationThatWasNotLostStaysOnAMemberThatSettles(t *testing.T) {
	s := newScene(t)
	lock, lost, late := s.call(picker.ClassMutation, time.Hour), s.call(picker.ClassMutation, 0), s.call(picker.ClassMutation, 0)
	lock.method, late.picked = "/v3lockpb.Lock/Lock", s.now.Add(200*time.Millisecond)
	v := s.view([3]prober.Grade{unhealthy, suspect, suspect}, lock, lost, late)
	v.now = s.now.Add(100 * time.Millisecond)
	v.endpoints[0].reason, v.endpoints[0].settling = prober.ReasonSettling, true
	s.m.decide(v) // nobody is better yet
	v.endpoints[1].grade = healthy
	for v.now = s.now.Add(1950 * time.Millisecond); v.now.Before(s.now.Add(10 * time.Second)); v.now = v.now.Add(50 * time.Millisecond) {
		d := s.m.decide(v)
		if v.now.Sub(s.now) < 2*time.Second && len(d.ends) != 0 {
			t.Fatalf("%d ended before two election timeouts", len(d.ends))
		}
		if v.now.Sub(s.now) >= 2*time.Second && (len(d.ends) != 1 || d.ends[0].call != lost.call) {
			t.Fatalf("%d ended after %v, want only the mutation that was sent before the member settled", len(d.ends), v.now.Sub(s.now))
		}
	}
	// Its quorum goes, and comes back within a hold: what was sent before is lost now.
	v.endpoints[0].settling = false
	if d := s.m.decide(v); len(d.ends) != 1 {
		t.Errorf("%d ended in a relapse shorter than a hold, want only what was lost before", len(d.ends))
	}
	v.now = v.now.Add(100 * time.Millisecond)
	v.endpoints[0].settling = true
	if d := s.m.decide(v); len(d.ends) != 2 {
		t.Errorf("%d ended after the relapse, want both mutations and not the lock", len(d.ends))
	}
}

// A shim that is rolled out anew stops; the etcd beside it goes on and answers.
func TestMutationGetsItsAnswerFromAMemberWhoseShimDrains(t *testing.T) {
	for reason, stays := range map[string]bool{prober.ReasonDraining: true, "no-quorum": false} {
		s := newScene(t)
		call := s.call(picker.ClassMutation, time.Second)
		v := s.view([3]prober.Grade{unhealthy, healthy, healthy}, call)
		v.endpoints[0].reason = reason
		if got := len(s.m.decide(v).ends) == 0; got != stays {
			t.Errorf("%s: the mutation stays: %v, want %v", reason, got, stays)
		}
		v.now = v.now.Add(2 * time.Second)
		if len(s.m.decide(v).ends) != 1 {
			t.Errorf("%s: the mutation stays for more than two election timeouts, want it ended", reason)
		}
	}
}

// Puts that take longer than the age at which a call counts as overdue, in each of
// thousands of clients, must not cost a slow cluster a proof at every look.
func TestOverdueCallsOfASlowClusterAskLessAndLess(t *testing.T) {
	s := newScene(t)
	asked := func(grade prober.Grade, age, during time.Duration) (n int) {
		for end := s.now.Add(during); s.now.Before(end); s.now = s.now.Add(50 * time.Millisecond) {
			if len(s.m.decide(s.view([3]prober.Grade{grade, healthy, healthy}, s.call(picker.ClassMutation, age))).prove) > 0 {
				n++
			}
		}
		return n
	}
	const late, soon = 300 * time.Millisecond, 100 * time.Millisecond
	if n := asked(healthy, late, 10*time.Second); n < 10 || n > 14 {
		t.Errorf("%d proofs asked for in 10 s, want some at first and then one a second", n)
	}
	if n := asked(healthy, soon, 500*time.Millisecond) + asked(healthy, late, 500*time.Millisecond); n > 1 {
		t.Errorf("%d proofs asked for right after a pause, want no new beginning: calls come and go", n)
	}
	if n := asked(suspect, late, 500*time.Millisecond); n != 10 {
		t.Errorf("%d proofs asked for in 10 looks at a suspect member, want all: it is about to be judged", n)
	}
	asked(healthy, soon, 2*time.Second)
	if n := asked(healthy, late, 500*time.Millisecond); n < 2 {
		t.Errorf("%d proofs asked for in 500 ms after a calm, want more: it may be a fault", n)
	}
}
