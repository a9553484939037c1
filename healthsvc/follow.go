package healthsvc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// FollowConfig configures Follow. Only Tell is required. A duration of zero is the default, a
// negative one an error; there is no upper limit.
type FollowConfig struct {
	// Service to follow, default (empty) etcd.serving.
	Service string
	// Poll is the time between two polls, default 500 ms. Polls prove that the path lives, since a
	// dead peer's Watch just stays silent; changes travel by push. Less finds a dead path sooner
	// and costs the server more. A server may ask for a longer time, up to 10 s.
	Poll time.Duration
	// Timeout is the least that one poll is given, default 150 ms. More is given, up to 2 s, where
	// the measured round trip needs it. Less condemns pauses, more notices a dead path later.
	Timeout time.Duration
	// Expire is the silence after which a status becomes StatusUnknown, default 3*Poll and at least
	// Poll: less is an error. It stretches in the same way as Poll when the server asks for fewer
	// polls.
	Expire time.Duration
	// Tell is called with every answer, every missed poll and every change, in order, never twice
	// at a time, from the goroutine that called Follow. What it does delays the following.
	Tell func(News)
	// Nudge makes the follower poll now, for instance because a call is overdue; also when the
	// service is absent and would be looked at only in a minute. May be nil, may be closed.
	Nudge <-chan struct{}
}

func (c FollowConfig) withDefaults() (FollowConfig, error) {
	if c.Tell == nil {
		return c, errors.New("healthsvc: FollowConfig.Tell is nil, want a function")
	}
	if c.Service == "" {
		c.Service = ServiceServing
	}
	for _, d := range []struct {
		field string
		value *time.Duration
		def   time.Duration
	}{
		{"Poll", &c.Poll, 500 * time.Millisecond},
		{"Timeout", &c.Timeout, 150 * time.Millisecond},
		{"Expire", &c.Expire, 0},
	} {
		if *d.value < 0 {
			return c, fmt.Errorf("healthsvc: FollowConfig.%s is %v, want 0 (default %v) or more", d.field, *d.value, d.def)
		}
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if c.Expire == 0 {
		c.Expire = 3 * c.Poll
	}
	if c.Expire < c.Poll {
		return c, fmt.Errorf("healthsvc: FollowConfig.Expire is %v, want at least Poll (%v): every status would expire between two polls", c.Expire, c.Poll)
	}
	return c, nil
}

// Follow follows one service at the server behind conn until ctx ends, then returns ctx's error; it
// returns earlier only with an error of its own: conn or Tell is nil, a duration is negative, or
// Expire is less than Poll. It owns its goroutines, one for the Watch
// stream and one for the poll that is out, and leaves none behind. No call of it waits for conn to
// become ready, so conn may be of any state; it should lead to one server only.
func Follow(ctx context.Context, conn grpc.ClientConnInterface, cfg FollowConfig) error {
	if conn == nil {
		return errors.New("healthsvc: Follow without a connection")
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &loop{
		listener: newListener(conn, cfg.Service),
		follower: newFollower(cfg, newRand(), time.Now()),
		tell:     cfg.Tell,
		nudge:    cfg.Nudge,
	}
	defer l.calls.Wait()
	defer cancel()
	return l.run(ctx)
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }

// loop owns the follower and does what it says.
type loop struct {
	*listener
	follower *follower
	tell     func(News)
	nudge    <-chan struct{}
	calls    sync.WaitGroup     // the goroutines of this Follow
	abandon  context.CancelFunc // of the newest poll
}

func (l *loop) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	due := time.Now()
	for {
		var a act
		select {
		case <-ctx.Done():
			return ctx.Err()
		case in := <-l.answers:
			a = l.follower.answered(time.Now(), in)
		case in := <-l.pushes:
			a = l.follower.pushed(time.Now(), in)
		case <-l.ended:
			a = l.follower.watchEnded(time.Now())
		case _, ok := <-l.nudge:
			if !ok {
				l.nudge = nil
				continue
			}
			a = l.follower.nudged(time.Now())
		case <-timer.C:
			a = l.wake(due)
		}
		l.act(ctx, a)
		due = l.follower.due()
		timer.Reset(time.Until(due))
	}
}

// wake lets an answer that has come in the meantime go before the judgement that it is late.
func (l *loop) wake(due time.Time) act {
	select {
	case in := <-l.answers:
		return l.follower.answered(time.Now(), in)
	default:
		return l.follower.wake(time.Now(), due)
	}
}

func (l *loop) act(ctx context.Context, a act) {
	if a.abandon {
		l.abandon()
	}
	if a.poll != 0 {
		if l.abandon != nil {
			l.abandon() // releases what the last poll's context holds
		}
		pollCtx, cancel := context.WithCancel(ctx)
		l.abandon = cancel
		l.calls.Go(func() { l.poll(pollCtx, a.poll) })
	}
	if a.watch {
		l.calls.Go(func() { l.watch(ctx) })
	}
	if a.tell {
		l.tell(l.follower.news)
	}
}
