package healthsvc

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// story drives a follower through what happens to it, and keeps the time.
type story struct {
	t   *testing.T
	f   *follower
	now time.Time
	act act
}

// tell0 is when all stories begin.
var tell0 = time.Unix(1_700_000_000, 0)

func begin(t *testing.T, cfg FollowConfig) *story {
	t.Helper()
	cfg.Tell = func(News) {}
	cfg, err := cfg.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return &story{t: t, f: newFollower(cfg, rand.New(rand.NewPCG(1, 2)), tell0), now: tell0}
}

// following begins a story in which the first poll has been answered SERVING by id.
func following(t *testing.T, id Identity) *story {
	t.Helper()
	s := begin(t, FollowConfig{})
	s.wake()
	s.after(ms).answer(wireServing, id)
	s.want(StatusServing, "")
	return s
}

func (s *story) after(d time.Duration) *story { s.now = s.now.Add(d); return s }

// wake calls when due, and not before.
func (s *story) wake() *story {
	due := s.f.due()
	if due.After(s.now) {
		s.now = due
	}
	s.act = s.f.wake(s.now, due)
	return s
}

// late wakes d after the follower wanted it.
func (s *story) late(d time.Duration) *story {
	due := s.f.due()
	s.now = due.Add(d)
	s.act = s.f.wake(s.now, due)
	return s
}

// untilPoll wakes until a poll begins, and returns how long that took.
func (s *story) untilPoll() time.Duration {
	s.t.Helper()
	began := s.now
	for range 10 {
		if s.wake(); s.act.poll != 0 {
			return s.now.Sub(began)
		}
	}
	s.t.Fatalf("no poll by %v", s.now.Sub(began))
	return 0
}

func (s *story) answer(st healthpb.HealthCheckResponse_ServingStatus, id Identity) *story {
	s.act = s.f.answered(s.now, answer{poll: s.f.out, at: s.now, status: st, headers: headers{identity: id}})
	return s
}

func (s *story) hint(poll time.Duration) *story {
	s.act = s.f.answered(s.now, answer{poll: s.f.out, at: s.now, status: wireServing, headers: headers{poll: poll}})
	return s
}

func (s *story) fail(code codes.Code) *story {
	s.act = s.f.answered(s.now, answer{poll: s.f.out, at: s.now, err: status.Error(code, "planted")})
	return s
}

func (s *story) push(st healthpb.HealthCheckResponse_ServingStatus) *story {
	s.act = s.f.pushed(s.now, push{at: s.now, status: st})
	return s
}

func (s *story) want(st Status, why string) *story {
	s.t.Helper()
	if got := s.f.news.Status; got != st {
		s.t.Errorf("at +%v the status is %v, want %v: %s", s.now.Sub(tell0), got, st, why)
	}
	return s
}

func (s *story) wantTold(told bool, why string) *story {
	s.t.Helper()
	if s.act.tell != told {
		s.t.Errorf("at +%v told is %v, want %v: %s", s.now.Sub(tell0), s.act.tell, told, why)
	}
	return s
}

func (s *story) wantMissed(n int, why string) *story {
	s.t.Helper()
	if got := s.f.news.Missed; got != n {
		s.t.Errorf("at +%v %d polls are missed, want %d: %s", s.now.Sub(tell0), got, n, why)
	}
	return s
}

func (s *story) wantPoll(polls bool, why string) *story {
	s.t.Helper()
	if got := s.act.poll != 0; got != polls {
		s.t.Errorf("at +%v a poll begins: %v, want %v: %s", s.now.Sub(tell0), got, polls, why)
	}
	return s
}

func within(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s is %v, want %v to %v", what, got, low, high)
	}
}

var member = Identity{Cluster: 1, Member: 2, Leader: 3, Term: 5, Start: time.Unix(1_600_000_000, 0)}

func TestFollowerBeginsWithPollAndWatch(t *testing.T) {
	s := begin(t, FollowConfig{}).wake()
	if !s.act.watch || s.act.poll == 0 {
		t.Errorf("first act = %+v, want a poll and a watch", s.act)
	}
	s.want(StatusUnknown, "nothing heard")
}

func TestFollowerPollsAtItsPaceJitteredDownwards(t *testing.T) {
	s := following(t, member)
	seen := make(map[time.Duration]bool)
	for range 50 {
		began := s.f.began
		s.untilPoll()
		gap := s.now.Sub(began)
		within(t, "the time between polls", gap, 450*ms, 500*ms)
		seen[gap] = true
		s.after(ms).answer(wireServing, member).wantTold(true, "every answer proves the path")
	}
	if len(seen) < 10 {
		t.Errorf("50 polls have %d different gaps: followers that began together must drift apart", len(seen))
	}
	if got := s.f.patience.srtt; got != ms {
		t.Errorf("round trip = %v, want 1ms", got)
	}
}

func TestFollowerTellsBadPushAtOnceAndChecksIt(t *testing.T) {
	s := following(t, member)
	s.after(200*ms).push(wireNotServing).want(StatusNotServing, "a push counts at once").
		wantTold(true, "bad news travels at once").wantPoll(true, "the Check brings the reason")
	if s.f.news.Began != s.now || s.f.news.Identity != member {
		t.Errorf("news = %+v, want it of the push, by the member known", s.f.news)
	}
	since := s.f.news.Since
	s.after(ms)
	s.act = s.f.answered(s.now, answer{poll: s.f.out, at: s.now, status: wireNotServing, headers: headers{identity: member, reason: ReasonNoQuorum}})
	s.want(StatusNotServing, "confirmed").wantTold(true, "the reason is news")
	if s.f.news.Reason != ReasonNoQuorum || s.f.news.Since != since {
		t.Errorf("news = %+v, want reason no-quorum since the push", s.f.news)
	}
}

func TestFollowerLetsGoodPushWaitForTheCheck(t *testing.T) {
	s := following(t, member)
	s.after(200 * ms).push(wireNotServing)
	s.after(ms).answer(wireNotServing, member)
	s.after(200*ms).push(wireServing).want(StatusNotServing, "a push has no identity to be judged by").wantPoll(true, "so it is asked for")
	s.after(ms).answer(wireServing, member).want(StatusServing, "the Check agrees")
}

func TestFollowerDropsAnswerThatBeganBeforeThePush(t *testing.T) {
	s := following(t, member)
	s.untilPoll()
	s.after(10*ms).push(wireNotServing).want(StatusNotServing, "newest").wantPoll(false, "one is out, another would queue behind it")
	s.after(ms).answer(wireServing, member).want(StatusNotServing, "the answer began before the push").wantPoll(false, "too soon after the last")
	if wait := s.untilPoll(); wait > pollGap {
		t.Errorf("the Check after the push waited %v more, want at most %v", wait, pollGap)
	}
}

func TestFollowerIgnoresRepeatedPushes(t *testing.T) {
	s := following(t, member)
	s.after(100*ms).push(wireServing).wantTold(false, "nothing new").wantPoll(false, "nothing new")
	s.after(ms).push(wireNotServing)
	s.after(ms).answer(wireNotServing, member)
	s.after(100*ms).push(wireNotServing).wantTold(false, "nothing new").wantPoll(false, "nothing new")
}

func TestFollowerIsNotSpunByAFlood(t *testing.T) {
	s := following(t, member)
	polls, told := 0, 0
	count := func() {
		if s.act.poll != 0 {
			polls++
		}
		if s.act.tell {
			told++
		}
	}
	for range 10_000 { // one second at 10 kHz, each poll answered in 100 us
		s.after(100 * time.Microsecond)
		if s.f.out != 0 {
			s.answer(wireServing, member)
			count()
		}
		s.push(wireNotServing)
		count()
		s.push(wireServing)
		count()
	}
	if polls > 21 || told > 42 {
		t.Errorf("20,000 pushes in a second made %d polls and were told %d times, want at most 21 and 42", polls, told)
	}
	if polls < 10 {
		t.Errorf("%d polls in the flood, want about 20: changes are followed", polls)
	}
}

func TestFollowerGivesUpAHangingPoll(t *testing.T) {
	s := following(t, member)
	s.untilPoll()
	began := s.now
	s.wake().wantMissed(1, "no answer in the deadline").wantTold(true, "a miss is evidence").want(StatusServing, "not yet silent for long")
	if got := s.now.Sub(began); got != 150*ms {
		t.Errorf("given up after %v, want 150ms", got)
	}
	if !s.act.abandon || !errors.As(s.f.news.Err, new(errNoAnswer)) {
		t.Errorf("act %+v, error %v; want the poll abandoned, and said so", s.act, s.f.news.Err)
	}
	if got := s.untilPoll(); got != repoll {
		t.Errorf("polled again after %v, want %v, not a whole poll", got, repoll)
	}
	s.after(ms).answer(wireServing, member).wantMissed(0, "answered").wantTold(true, "answered")
	if s.f.news.Err != nil {
		t.Errorf("error %v is left after an answer", s.f.news.Err)
	}
}

func TestFollowerIgnoresAnswersOfAbandonedPolls(t *testing.T) {
	s := following(t, member)
	s.untilPoll()
	old := s.f.out
	s.wake()
	s.untilPoll()
	s.act = s.f.answered(s.now, answer{poll: old, at: s.now, status: wireNotServing})
	s.want(StatusServing, "that poll was given up").wantTold(false, "nothing happened")
	if s.f.out == 0 {
		t.Error("the poll that is out was ended by the answer of another")
	}
}

func TestFollowerForgetsWhatIsNotConfirmed(t *testing.T) {
	s := following(t, member)
	heard := s.now
	for s.f.news.Status == StatusServing {
		s.wake()
		if s.now.Sub(heard) > 10*time.Second {
			t.Fatal("still serving after 10s of silence")
		}
	}
	s.want(StatusUnknown, "silence is no good news").wantTold(true, "a change")
	if got := s.now.Sub(heard); got != 1500*ms {
		t.Errorf("expired after %v, want 1.5s", got)
	}
	if s.f.news.Since != s.now || s.f.news.Heard != heard {
		t.Errorf("news = %+v, want since now, heard then", s.f.news)
	}
	s.untilPoll()
	s.wake() // missed; nothing to lose any more
	within(t, "the pause after a miss with nothing to lose", s.untilPoll(), 450*ms, 500*ms)
}

func TestFollowerPollsFastWhileNothingWasEverHeard(t *testing.T) {
	s := begin(t, FollowConfig{}).wake()
	s.fail(codes.Unavailable).wantMissed(1, "refused").want(StatusUnknown, "refused is not absent")
	if got := s.untilPoll(); got != repoll {
		t.Errorf("polled again after %v, want %v", got, repoll)
	}
	for s.now.Sub(tell0) < 1500*ms {
		s.fail(codes.Unavailable)
		s.untilPoll()
	}
	s.fail(codes.Unavailable)
	within(t, "the pause once nothing answers", s.untilPoll(), 450*ms, 500*ms)
}

func TestFollowerDropsStaleNews(t *testing.T) {
	older, newer := member, member
	older.Start = member.Start.Add(-time.Hour)
	newer.Start = member.Start.Add(time.Hour)
	lower, higher, reset := member, member, newer
	lower.Term, higher.Term, reset.Term = 4, 6, 1
	other := lower
	other.Member = 99
	tests := []struct {
		name     string
		id       Identity
		accepted bool
	}{
		{"same", member, true},
		{"lower term", lower, false},
		{"higher term", higher, true},
		{"earlier start", older, false},
		{"later start", newer, true},
		{"later start with its term begun afresh", reset, true},
		{"another member", other, true},
		{"nothing known", Identity{}, true},
		{"later start, etcd not seen yet", Identity{Start: newer.Start}, true},
		{"earlier start, etcd not seen yet", Identity{Start: older.Start}, false},
		{"term unknown", Identity{Cluster: 1, Member: 2, Start: member.Start}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := following(t, member)
			s.untilPoll()
			want := StatusServing
			if tt.accepted {
				want = StatusNotServing
			}
			s.after(ms).answer(wireNotServing, tt.id).want(want, tt.name).wantTold(tt.accepted, "only accepted news is told")
		})
	}
}

func TestFollowerIsNotDeafForGoodToAnOlderStart(t *testing.T) {
	s := following(t, member)
	older := member
	older.Start = member.Start.Add(-time.Hour) // the host's clock was set back
	for s.f.news.Status == StatusServing {
		s.untilPoll()
		s.after(ms).answer(wireNotServing, older)
		if s.now.Sub(tell0) > 10*time.Second {
			t.Fatal("still serving on the word of a shim that is gone, after 10s")
		}
		if s.f.due().Equal(s.f.expire) {
			s.wake()
		}
	}
	s.want(StatusUnknown, "what was believed expired")
	s.untilPoll()
	s.after(ms).answer(wireNotServing, older).want(StatusNotServing, "nothing newer is left to compare with")
}

func TestFollowerLooksRarelyAtWhatIsAbsent(t *testing.T) {
	for _, code := range []codes.Code{codes.Unimplemented, codes.NotFound} {
		t.Run(code.String(), func(t *testing.T) {
			s := begin(t, FollowConfig{}).wake()
			s.after(ms).fail(code).want(StatusAbsent, "it answers, without the service").wantMissed(0, "it answered")
			if status.Code(s.f.news.Err) != code {
				t.Errorf("Err = %v, want the answer", s.f.news.Err)
			}
			for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
				within(t, "the next look", s.untilPoll(), want*900*ms, want*time.Second)
				s.fail(code).want(StatusAbsent, "still")
			}
			s.act = s.f.nudged(s.after(pollGap).now)
			s.wantPoll(true, "a nudge looks at once")
			s.answer(wireServing, member).want(StatusServing, "it has come")
			within(t, "the next poll", s.untilPoll(), 400*ms, 500*ms)
		})
	}
}

func TestFollowerTakesServiceUnknownPushForAbsent(t *testing.T) {
	s := begin(t, FollowConfig{}).wake()
	s.after(ms).push(wireUnknown).want(StatusAbsent, "the server says so").wantTold(true, "a change")
	s.push(wireUnknown).wantTold(false, "nothing new")
	s.after(ms).answer(wireServing, member).want(StatusAbsent, "the answer began before the push")
	s.untilPoll()
	s.answer(wireServing, member).want(StatusServing, "asked anew")
}

func TestFollowerTakesStrangeErrorsForAbsentOnlyInARow(t *testing.T) {
	s := following(t, member)
	for range 2 {
		s.untilPoll()
		s.fail(codes.Internal)
	}
	s.want(StatusServing, "may be a broken stream").wantMissed(2, "no answer all the same")
	s.untilPoll()
	s.fail(codes.Unknown).want(StatusAbsent, "three in a row are no accident: this is no such server")
}

func TestFollowerLosesAnAbsentServerThatFallsSilent(t *testing.T) {
	s := begin(t, FollowConfig{}).wake()
	s.fail(codes.Unimplemented)
	s.untilPoll()
	s.fail(codes.Unavailable).want(StatusAbsent, "one refusal").wantMissed(1, "refused")
	from := s.now
	for s.f.news.Status == StatusAbsent && s.now.Sub(from) < time.Minute {
		if s.wake(); s.act.poll != 0 {
			s.fail(codes.Unavailable)
		}
	}
	s.want(StatusUnknown, "nothing answers any more")
	if got := s.now.Sub(from); got != 1500*ms {
		t.Errorf("absent for %v after the first miss, want 1.5s", got)
	}
}

func TestFollowerStretchesWithTheServersWish(t *testing.T) {
	tests := []struct {
		hint, poll time.Duration
	}{
		{0, 500 * ms},
		{100 * ms, 500 * ms},
		{2 * time.Second, 2 * time.Second},
		{time.Hour, hintCeiling},
		{1<<63 - 1, hintCeiling},
	}
	for _, tt := range tests {
		s := begin(t, FollowConfig{}).wake().hint(tt.hint)
		heard := s.now
		within(t, "the next poll with a hint of "+tt.hint.String(), s.untilPoll(), tt.poll*9/10, tt.poll)
		for s.f.news.Status == StatusServing {
			s.wake()
		}
		if got := s.now.Sub(heard); got != 3*tt.poll {
			t.Errorf("with a hint of %v the status expired after %v, want %v", tt.hint, got, 3*tt.poll)
		}
	}
}

func TestFollowerSuspectsItselfWhenItWakesLate(t *testing.T) {
	s := following(t, member)
	s.untilPoll()
	s.late(5*time.Second).wantMissed(0, "we slept, not they").want(StatusServing, "our silence is not theirs")
	s.after(ms).answer(wireServing, member).want(StatusServing, "it had answered all along")
	if got := s.f.patience.srtt; got > 10*ms {
		t.Errorf("round trip = %v, want our sleep left out of it", got)
	}
}

func TestFollowerStillFindsADeadServerAfterWakingLate(t *testing.T) {
	s := following(t, member)
	s.untilPoll()
	s.late(5 * time.Second)
	s.wake().wantMissed(1, "the extended deadline has passed too")
}

func TestFollowerThatIsAlwaysLateMissesAPollThatHangs(t *testing.T) {
	s := following(t, member)
	s.untilPoll()
	s.late(time.Second).wantMissed(0, "it may have been answered while we slept")
	s.late(time.Second).wantMissed(1, "it had its time anew already: being slow for good is no excuse for a server that hangs")
	if s.act.poll == 0 && s.wake().act.poll == 0 {
		t.Error("no poll follows the one that was given up: the server would be waited for without end")
	}
}

func TestFollowerIsNotExcusedForALittleLateness(t *testing.T) {
	s := following(t, member)
	s.untilPoll()
	s.late(lateWake).wantMissed(1, "this much happens on any host")
}

func TestFollowerRetriesWatchWithGrowingPauses(t *testing.T) {
	s := following(t, member)
	var pauses []time.Duration
	for range 12 {
		s.act = s.f.watchEnded(s.now)
		ended := s.now
		for s.wake(); !s.act.watch; s.wake() {
			if s.f.out != 0 {
				s.answer(wireServing, member)
			}
		}
		pauses = append(pauses, s.now.Sub(ended))
	}
	within(t, "the first pause", pauses[0], 50*ms, 150*ms)
	for _, pause := range pauses[8:] {
		within(t, "a late pause", pause, watchLast/2, watchLast*3/2)
	}
	s.after(watchSettled)
	s.f.watchEnded(s.now)
	within(t, "the pause after a stream that lived", s.f.watchAt.Sub(s.now), 50*ms, 150*ms)
}

func TestFollowerOpensNoWatchWhileAbsent(t *testing.T) {
	s := begin(t, FollowConfig{}).wake()
	s.act = s.f.watchEnded(s.now)
	s.fail(codes.Unimplemented)
	for range 5 {
		s.untilPoll()
		if s.act.watch {
			t.Error("a watch is opened at a server without the service: the look by Check suffices")
		}
		s.fail(codes.Unimplemented)
	}
	s.untilPoll()
	s.answer(wireServing, member)
	if !s.act.watch {
		t.Error("no watch is opened although the service has come")
	}
}

func TestFollowerChecksAtOnceWhenItsWatchIsEnded(t *testing.T) {
	s := following(t, member)
	s.after(200 * ms)
	s.act = s.f.watchEnded(s.now)
	s.wantPoll(true, "most streams end because the server does")
}

func TestFollowerCoalescesNudges(t *testing.T) {
	s := following(t, member)
	polls := 0
	for range 1000 {
		s.after(ms)
		s.act = s.f.nudged(s.now)
		if s.act.poll != 0 {
			polls++
			s.answer(wireServing, member)
		}
	}
	if polls < 15 || polls > 20 {
		t.Errorf("1000 nudges in a second made %d polls, want up to 20", polls)
	}
}

func TestFollowerMeasuresOnlyPollsThatWaitedForNothingElse(t *testing.T) {
	s := begin(t, FollowConfig{}).wake()
	s.after(140*ms).answer(wireServing, member)
	if got := s.f.patience.srtt; got != 0 {
		t.Errorf("round trip = %v after the first answer, want 0: it waited for the connection", got)
	}
	s.untilPoll()
	s.wake() // missed
	s.untilPoll()
	s.after(140*ms).answer(wireServing, member)
	if got := s.f.patience.srtt; got != 0 {
		t.Errorf("round trip = %v after a miss, want 0: the connection may be a new one", got)
	}
	s.untilPoll()
	s.after(2*ms).answer(wireServing, member)
	if got := s.f.patience.srtt; got != 2*ms {
		t.Errorf("round trip = %v, want 2ms", got)
	}
}

// FuzzFollower feeds any order of inputs and wants the promises kept that hold always.
func FuzzFollower(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	f.Add([]byte("\x00\x11\x22\x33\x00\x00\x00\x00\x00\x00\x00\x09\x09\x00\x0a\x00"))
	f.Fuzz(func(t *testing.T, inputs []byte) {
		s := begin(t, FollowConfig{})
		lastPoll := time.Time{}
		for _, in := range inputs {
			s.act = act{}
			s.after(time.Duration(in>>4) * 7 * ms)
			id := member
			id.Term += uint64(in >> 6)
			switch in & 0xf {
			case 0, 1, 2, 3:
				s.wake()
			case 4:
				s.answer(wireServing, id)
			case 5:
				s.answer(wireNotServing, id)
			case 6:
				s.answer(wireUnknown, id)
			case 7:
				s.fail(codes.Code(in >> 4))
			case 8:
				s.push(wireServing)
			case 9:
				s.push(wireNotServing)
			case 10:
				s.push(wireUnknown)
			case 11:
				if s.f.watching {
					s.act = s.f.watchEnded(s.now)
				}
			case 12:
				s.act = s.f.nudged(s.now)
			case 13:
				s.late(time.Duration(in) * 20 * ms)
			case 14:
				s.push(healthpb.HealthCheckResponse_ServingStatus(in))
			case 15:
				s.hint(time.Duration(in) << 30)
			}
			if s.act.poll != 0 {
				if gap := s.now.Sub(lastPoll); gap < pollGap {
					t.Fatalf("two polls within %v, want at least %v", gap, pollGap)
				}
				lastPoll = s.now
			}
			if due := s.f.due(); due.IsZero() || due.Sub(s.now) > 2*time.Minute {
				t.Fatalf("next wake-up in %v: nothing would ever happen again", due.Sub(s.now))
			}
			if s.f.news.Missed > 0 && s.f.news.Err == nil {
				t.Fatalf("%d polls missed for no reason", s.f.news.Missed)
			}
			if s.f.news.Status == StatusServing && s.now.Sub(s.f.expire) > 0 && s.f.due().After(s.now) {
				t.Fatalf("serving %v after it expired", s.now.Sub(s.f.expire))
			}
		}
	})
}
