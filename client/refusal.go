package client

import (
	"math/rand/v2"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A server that has too much to do refuses new streams with ResourceExhausted.
// clientv3 takes that for the end of the watch. It is a moment to wait, and to
// come back at another time than everybody else.
const (
	refusalWait    = 100 * time.Millisecond // the first, before the spread
	refusalWaitMax = 2 * time.Second        // the longest, before the spread
	// refusalPatience is how long watches are opened again while nobody takes
	// them: after that their user is told.
	refusalPatience = time.Minute
	// refusalRow is how long after a refusal the next one still belongs to its row.
	// Between them lies no more than a wait and an attempt; where more does, whoever
	// was refused has gone.
	refusalRow = 10 * time.Second
)

// refusals are the refusals in a row of a client's watch streams. It is a pure
// core.
type refusals struct {
	since time.Time // of the first; zero: none
	last  time.Time // of the newest
}

// refused returns how long to wait before the next attempt: about as long as it
// has lasted, so that the waits double, and each by itself, so that those who were
// refused together do not come back together. It is false when it has lasted too
// long: then the user is told, after the same wait, since he may come back at once.
func (r *refusals) refused(now time.Time, random float64) (time.Duration, bool) {
	if r.since.IsZero() || now.Sub(r.last) > refusalRow {
		r.since = now
	}
	r.last = now
	lasted := now.Sub(r.since)
	wait := min(max(lasted, refusalWait), refusalWaitMax)
	return time.Duration((0.5 + random) * float64(wait)), lasted < refusalPatience
}

// accepted ends the row.
func (r *refusals) accepted() { r.since = time.Time{} }

// refusalLog is the refusals that all watch streams of a client share.
type refusalLog struct {
	mu   sync.Mutex
	core refusals
}

func (l *refusalLog) accepted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.core.accepted()
}

func (l *refusalLog) refused(now time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.core.refused(now, rand.Float64())
}

// watchStream is a moving stream of watches.
type watchStream struct {
	*movingStream
	heard   bool // an answer came
	refused bool // a watch was created and cancelled in one
}

// RecvMsg implements grpc.ClientStream. One goroutine of clientv3 calls it.
func (s *watchStream) RecvMsg(m any) error {
	err := s.movingStream.RecvMsg(m)
	if err != nil {
		return s.resume(err)
	}
	if !s.heard {
		s.heard = true
		s.a.refusals.accepted()
	}
	if r, ok := m.(*pb.WatchResponse); ok && r.GetCreated() && r.GetCanceled() {
		s.refused = true
	}
	return nil
}

// resume makes an error at which clientv3 would give all watches of the stream up
// one at which it resumes them, where that is right.
func (s *watchStream) resume(err error) error {
	code := status.Code(err)
	// At "no leader", which has the same code, clientv3 gives up as well.
	if s.ctx.Err() != nil || code == codes.Unavailable && !(s.refused && isNoLeader(err)) {
		return err
	}
	switch {
	case s.heard && endsContext(code):
		// Not by the caller, who still waits: by the member or somebody on the way, such as a
		// proxy that bounds how long a stream lasts.
		s.rest(time.Duration((0.5 + rand.Float64()) * float64(refusalWait)))
	case !s.heard && (code == codes.ResourceExhausted || endsContext(code)):
		// Not one that was heard: its messages may be too large for this client, and
		// would be again.
		wait, again := s.a.refusals.refused(time.Now())
		s.rest(wait)
		if !again {
			return err
		}
	case s.refused:
		// The watch that was refused may still be on its way out of clientv3's state
		// Should the stream end for good now, clientv3 would wait for it for
		// ever, all watches of the stream with it, and Close. Opened again, the stream
		// fails by itself if it has to.
	default:
		return err
	}
	if s.ctx.Err() != nil {
		return err // meanwhile nobody wants it any more
	}
	return status.Errorf(codes.Unavailable, "quorumwise: the watch stream is opened again after: %v", err)
}

// endsContext tells the codes of a context that is over.
func endsContext(code codes.Code) bool {
	return code == codes.Canceled || code == codes.DeadlineExceeded
}

// rest waits, no longer than somebody wants the stream.
func (s *watchStream) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
}

var _ grpc.ClientStream = (*watchStream)(nil)
