//go:build linux

package realetcd

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// listener follows the word of one member's shim, wherever the member has it at the moment. One
// goroutine uses it.
type listener struct {
	member *Member
	track  *track

	address string // followed now; "": none
	conn    *grpc.ClientConn
	cancel  context.CancelFunc
	nudge   chan struct{}
	nudged  time.Time
	working sync.WaitGroup
	news    atomic.Pointer[healthsvc.News]
}

// attend sees to it that the right address is followed. A shim that is not there would be looked at
// once a minute only: it is asked again every second.
func (l *listener) attend(ctx context.Context) {
	if address := l.member.ShimAddr(); address != l.address {
		l.close()
		l.follow(ctx, address)
	}
	l.track.hear(l.word())
	n := l.news.Load()
	absent := n != nil && (n.Status == healthsvc.StatusAbsent || n.Status == healthsvc.StatusUnknown)
	if absent && time.Since(l.nudged) > time.Second {
		l.nudged = time.Now()
		select {
		case l.nudge <- struct{}{}:
		default:
		}
	}
}

func (l *listener) follow(ctx context.Context, address string) {
	if address == "" {
		return
	}
	conn, err := dial(address)
	if err != nil { // an address of ours is well-formed
		return
	}
	l.address, l.conn, l.nudge = address, conn, make(chan struct{}, 1)
	ctx, l.cancel = context.WithCancel(ctx)
	l.news.Store(&healthsvc.News{})
	cfg := healthsvc.FollowConfig{
		Expire: time.Second, // two polls
		Nudge:  l.nudge,
		Tell: func(n healthsvc.News) {
			l.news.Store(&n)
			l.track.hear(l.member.word(n))
		},
	}
	l.working.Go(func() { healthsvc.Follow(ctx, conn, cfg) }) // its error is that of ctx
}

// word is what the shim says now.
func (l *listener) word() string {
	n := l.news.Load()
	if l.address == "" || n == nil {
		return ShimAbsent
	}
	return l.member.word(*n)
}

// word is what a follower's news mean. A shim without a process says nothing: one that is silent
// has one.
func (m *Member) word(n healthsvc.News) string {
	switch m.ShimKind() {
	case ShimSidecar:
		if m.Shim() == nil {
			return ShimAbsent
		}
	case ShimInProcess:
		if !m.Running() {
			return ShimAbsent
		}
	}
	return shimWord(n)
}

// close stops following.
func (l *listener) close() {
	if l.address == "" {
		return
	}
	l.cancel()
	l.working.Wait()
	l.conn.Close()
	l.address = ""
	l.news.Store(nil)
}
