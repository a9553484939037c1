package healthsvc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

const (
	repoll       = 100 * time.Millisecond // from a missed poll to the next, while there is a status to lose
	pollGap      = 50 * time.Millisecond  // least time between the begins of two polls that were not due by themselves
	hintCeiling  = 10 * time.Second       // a server's wish for fewer polls is followed up to here
	lateWake     = 100 * time.Millisecond // a loop that wakes later than this suspects itself
	absentFirst  = time.Second            // from the first word that there is no such service to the next look
	absentLast   = time.Minute            // the same once it has been so for long
	absentCount  = 3                      // answers of the kind absencePossible in a row that make it certain
	watchFirst   = 100 * time.Millisecond // from the end of a Watch stream to the next one
	watchLast    = 5 * time.Second        // the same when they keep ending
	watchSettled = watchLast              // a stream that lived this long starts the backoff afresh
)

// errNoAnswer is what a follower reports for a poll that it gave up on.
type errNoAnswer struct {
	service string
	after   time.Duration
}

func (e errNoAnswer) Error() string {
	return fmt.Sprintf("healthsvc: no answer to Check(%q) within %v", e.service, e.after)
}

// Unwrap makes it a deadline like any other.
func (e errNoAnswer) Unwrap() error { return context.DeadlineExceeded }

// errServiceUnknown is the reason for StatusAbsent when a Watch said so.
var errServiceUnknown = errors.New("healthsvc: the server watches no such service")

// act is what a follower wants done after an input. Zero: nothing.
type act struct {
	abandon bool // give up the poll that is out
	poll    int  // start the poll of this number; 0: none
	watch   bool // open a Watch stream
	tell    bool // tell the news
}

// follower decides what is known of one service at one server. It has no goroutine, no clock and
// does no I/O: its owner feeds it what happens, with the time, and does what the returned act says.
//
// Bad news is believed as it comes: a NOT_SERVING push counts at once. A SERVING push only asks for
// a Check at once: good news can wait for one round trip, and the Check brings the identity by
// which old news is recognised.
type follower struct {
	cfg  FollowConfig // with defaults filled in
	rng  *rand.Rand
	news News

	// The poll that is out, at most one: a second would only queue behind the first.
	out      int // its number; 0: none is out
	numbered int // of the newest poll
	began    time.Time
	deadline time.Time // of the poll that is out
	dulled   bool      // we were late while it was out, so its round trip says nothing

	next      time.Time // when the next poll is due by itself
	asked     bool      // a push or a nudge wants a poll as soon as may be
	expire    time.Time // when silence makes the status unknown; moved on by every accepted answer
	patience  patience
	refusals  int // answers of the kind absencePossible in a row
	absentFor int // looks in a row that found no such service

	watching   bool      // a stream is open or being opened
	watchAt    time.Time // when to open the next; zero: not now
	watchBegan time.Time
	watchPause *backoff.ExponentialBackOff

	// The newest identity that was believed. Older news of the same speaker is dropped, for as
	// long as what was believed has not expired: a clock set back on the shim's host, or a cluster
	// bootstrapped again under the same ids, must not make us deaf for good.
	newest Identity
}

func newFollower(cfg FollowConfig, rng *rand.Rand, now time.Time) *follower {
	pause := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(watchFirst),
		backoff.WithMaxInterval(watchLast),
		backoff.WithMultiplier(2),
		backoff.WithMaxElapsedTime(0),
	)
	return &follower{
		cfg: cfg, rng: rng,
		news:       News{Since: now},
		next:       now,
		expire:     now.Add(cfg.Expire),
		watchAt:    now,
		watchPause: pause,
		patience:   patience{floor: cfg.Timeout},
	}
}

// wake does what time asks for. due is when the owner meant to call: the time that due returned.
func (f *follower) wake(now, due time.Time) act {
	if lateness := now.Sub(due); lateness > lateWake {
		f.excuse(now, lateness)
	}
	var a act
	if f.out != 0 && !now.Before(f.deadline) {
		a = f.missed(now, errNoAnswer{f.cfg.Service, f.deadline.Sub(f.began)})
		f.patience.strike()
		a.abandon = true
	}
	if f.perishable() && !now.Before(f.expire) {
		f.setStatus(now, StatusUnknown, "")
		f.newest = Identity{}
		a.tell = true
	}
	return f.start(now, a)
}

// excuse moves what would have come due while we could not look: our own pause is no evidence
// against the server. When in the poll's time the pause began is not known, so it gets all of its
// time again; but once only, since on a machine that is slow for good a poll that hangs would
// otherwise be waited for without end, and no other would be made.
func (f *follower) excuse(now time.Time, lateness time.Duration) {
	f.expire = f.expire.Add(lateness)
	if f.out != 0 && !f.dulled {
		f.deadline = now.Add(f.patience.deadline())
		f.dulled = true
	}
}

// due returns when wake is wanted next.
func (f *follower) due() time.Time {
	var at time.Time
	earliest := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	switch {
	case f.out != 0:
		earliest(f.deadline)
	case f.asked:
		earliest(f.began.Add(pollGap))
		earliest(f.next)
	default:
		earliest(f.next)
	}
	if f.perishable() {
		earliest(f.expire)
	}
	if !f.watching && !f.watchAt.IsZero() {
		earliest(f.watchAt)
	}
	return at
}

// perishable: the status is one that silence makes unknown. An absent service is looked at rarely,
// so its silence means nothing until a look fails.
func (f *follower) perishable() bool {
	switch f.news.Status {
	case StatusServing, StatusNotServing:
		return true
	case StatusAbsent:
		return f.news.Missed > 0
	case StatusUnknown:
		return false
	default:
		return false
	}
}

// start begins what is due and may begin.
func (f *follower) start(now time.Time, a act) act {
	wanted := !now.Before(f.next) || f.asked && !now.Before(f.began.Add(pollGap))
	if f.out == 0 && wanted {
		f.numbered++
		f.out, f.began, f.dulled, f.asked = f.numbered, now, false, false
		f.deadline = now.Add(f.patience.deadline())
		f.next = now.Add(f.jittered(f.interval()))
		a.poll = f.out
	}
	if !f.watching && !f.watchAt.IsZero() && !now.Before(f.watchAt) {
		f.watching, f.watchBegan, f.watchAt = true, now, time.Time{}
		a.watch = true
	}
	return a
}

// interval is the time between polls that are answered.
func (f *follower) interval() time.Duration {
	return max(f.cfg.Poll, min(f.news.Poll, hintCeiling))
}

// jittered takes up to a tenth off, so that followers that began together drift apart.
func (f *follower) jittered(d time.Duration) time.Duration {
	return d - time.Duration(f.rng.Float64()*float64(d)/10)
}

// answered takes a poll's answer. Those of polls given up before are ignored.
func (f *follower) answered(now time.Time, in answer) act {
	if in.poll != f.out || f.out == 0 {
		return act{}
	}
	if in.err != nil {
		return f.start(now, f.failed(now, in.err))
	}
	f.sample(in.at)
	f.out, f.refusals = 0, 0
	if in.status == healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
		return f.start(now, f.absent(now, f.began, errServiceUnknown))
	}
	a := f.cleared()
	if !f.began.Before(f.news.Began) && f.fresh(in.headers.identity) {
		f.accept(now, in)
		a.tell = true
	}
	return f.start(now, a)
}

// sample learns from the round trip of the poll that is out. The first answer of all, and the first
// after a miss, may have waited for a connection to be made.
func (f *follower) sample(arrived time.Time) {
	if f.news.Heard.IsZero() || f.news.Missed > 0 || f.dulled {
		return
	}
	f.patience.sample(max(arrived.Sub(f.began), 0))
}

// cleared notes that the path lives, whatever the answer was.
func (f *follower) cleared() act {
	a := act{tell: f.news.Missed > 0}
	f.news.Missed, f.news.Err = 0, nil
	return a
}

// accept believes a poll's answer.
func (f *follower) accept(now time.Time, in answer) {
	was := f.interval()
	f.believe(now, f.began, in.headers)
	f.setStatus(now, fromWire(in.status), in.headers.reason)
	f.absentFor = 0
	if is := f.interval(); is != was {
		f.next = f.began.Add(f.jittered(is))
	}
	if !f.watching && f.watchAt.IsZero() {
		f.watchAt = now // it was given up while the service was absent
	}
}

func fromWire(s healthpb.HealthCheckResponse_ServingStatus) Status {
	if s == healthpb.HealthCheckResponse_SERVING {
		return StatusServing
	}
	return StatusNotServing
}

// believe notes who spoke, when, and that the silence is over.
func (f *follower) believe(now, began time.Time, h headers) {
	f.news.Identity, f.news.ProofAge, f.news.ShimRTT, f.news.Poll = h.identity, h.proofAge, h.roundTrip, h.poll
	f.newest = newer(f.newest, h.identity)
	f.heard(now, began)
}

func (f *follower) heard(now, began time.Time) {
	f.news.Heard, f.news.Began = now, began
	f.expire = now.Add(f.lifetime())
}

// lifetime is how long a status outlives the last answer: it stretches with the polls.
func (f *follower) lifetime() time.Duration {
	return time.Duration(float64(f.cfg.Expire) * (float64(f.interval()) / float64(f.cfg.Poll)))
}

// setStatus is the one place that writes the status.
func (f *follower) setStatus(now time.Time, s Status, why Reason) {
	if f.news.Status != s {
		f.news.Status, f.news.Since = s, now
	}
	f.news.Reason = why
}

// failed takes a poll's error.
func (f *follower) failed(now time.Time, err error) act {
	switch classify(err) {
	case absenceCertain:
		f.refusals = 0
		return f.absent(now, f.began, err)
	case absencePossible:
		if f.refusals++; f.refusals >= absentCount || f.news.Status == StatusAbsent {
			return f.absent(now, f.began, err)
		}
	case absenceNone:
		f.refusals = 0
	}
	return f.missed(now, err)
}

// missed takes a poll that got no answer. The next comes soon while there is a status to lose or
// none was ever had; after that at the usual pace.
func (f *follower) missed(now time.Time, err error) act {
	f.out = 0
	f.news.Missed++
	f.news.Err = err
	if f.news.Status == StatusAbsent && f.news.Missed == 1 {
		f.expire = now.Add(f.lifetime())
	}
	pause := repoll
	if f.news.Status == StatusUnknown && !now.Before(f.expire) {
		pause = f.jittered(f.cfg.Poll)
	}
	f.next = now.Add(pause)
	return act{tell: true}
}

// absent takes the word that there is no such service, by a call that began then.
func (f *follower) absent(now, began time.Time, err error) act {
	f.out = 0
	f.news.Missed, f.news.Err = 0, err
	f.setStatus(now, StatusAbsent, "")
	f.heard(now, began)
	f.next = now.Add(f.jittered(f.absentPause()))
	f.absentFor++
	f.newest = Identity{}
	if !f.watching {
		f.watchAt = time.Time{}
	}
	return act{tell: true}
}

func (f *follower) absentPause() time.Duration {
	pause := max(absentFirst, f.cfg.Poll)
	for range f.absentFor {
		if pause >= absentLast {
			break
		}
		pause *= 2
	}
	return min(pause, max(absentLast, f.cfg.Poll))
}

// pushed takes a message of the Watch stream.
func (f *follower) pushed(now time.Time, in push) act {
	if in.headers != nil && !f.fresh(in.headers.identity) {
		return act{}
	}
	switch fromPush(in.status) {
	case StatusServing:
		if f.news.Status == StatusServing {
			return act{}
		}
		f.asked = true
		return f.start(now, act{})
	case StatusAbsent:
		if f.news.Status == StatusAbsent {
			return act{}
		}
		out := f.out
		a := f.absent(now, in.at, errServiceUnknown)
		f.out = out // the poll goes on; it tells the same or better
		return f.start(now, a)
	case StatusNotServing, StatusUnknown:
		return f.start(now, f.pushedBad(now, in))
	default:
		return act{}
	}
}

func fromPush(s healthpb.HealthCheckResponse_ServingStatus) Status {
	if s == healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
		return StatusAbsent
	}
	return fromWire(s)
}

// pushedBad takes NOT_SERVING by push: told at once if it is news, and explained by the Check that
// follows. A repetition is not told, but makes older answers old.
func (f *follower) pushedBad(now time.Time, in push) act {
	again := f.news.Status == StatusNotServing
	if in.headers != nil {
		f.believe(now, in.at, *in.headers)
		f.setStatus(now, StatusNotServing, in.headers.reason)
	} else {
		f.heard(now, in.at)
		if !again {
			f.setStatus(now, StatusNotServing, "")
		}
	}
	if again && f.out == 0 {
		return act{}
	}
	f.asked, f.absentFor = true, 0
	return act{tell: !again}
}

// watchEnded takes the end of the Watch stream: polls go on, and the stream is tried again after a
// pause that grows as long as streams end young.
func (f *follower) watchEnded(now time.Time) act {
	if now.Sub(f.watchBegan) >= watchSettled {
		f.watchPause.Reset()
	}
	if f.news.Status == StatusServing && now.Sub(f.watchBegan) >= watchFirst {
		f.asked = true // most streams end because the server does
	}
	f.watching = false
	pause := f.watchPause.NextBackOff()
	if f.news.Status != StatusAbsent {
		f.watchAt = now.Add(pause)
	}
	return f.start(now, act{})
}

// nudged takes the wish for a poll now.
func (f *follower) nudged(now time.Time) act {
	f.asked = true
	return f.start(now, act{})
}

// fresh reports whether news from id is as new as what is known already.
func (f *follower) fresh(id Identity) bool {
	switch {
	case id.Member != 0 && f.newest.Member != 0 && id.Member != f.newest.Member,
		id.Cluster != 0 && f.newest.Cluster != 0 && id.Cluster != f.newest.Cluster:
		return true // another member: nothing to compare
	case !id.Start.IsZero() && !f.newest.Start.IsZero() && !id.Start.Equal(f.newest.Start):
		return id.Start.After(f.newest.Start)
	case id.Term != 0 && id.Member != 0 && id.Member == f.newest.Member:
		return id.Term >= f.newest.Term
	default:
		return true
	}
}

// newer returns what is known after id was believed: a later life replaces everything, gaps in what
// the same life says do not.
func newer(known, id Identity) Identity {
	if id.Member != 0 && id.Member != known.Member ||
		id.Cluster != 0 && id.Cluster != known.Cluster ||
		id.Start.After(known.Start) {
		return id
	}
	known.Term = max(known.Term, id.Term)
	known.Leader = id.Leader
	return known
}
