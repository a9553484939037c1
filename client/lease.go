package client

import (
	"context"
	"sort"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/quorumwise/quorumwise/picker"
)

// leaseStream is a keepalive stream that moves without its user noticing.
// clientv3 would wait half a second before it opened another one, which a short
// lease may not have; here the stream below is replaced and the keepalives that
// have no answer are sent again, shortest life first. A keepalive may be
// repeated: it only sets the lease's life to its TTL.
type leaseStream struct {
	a    *Attachment
	ctx  context.Context // the caller's
	open opener
	opts []grpc.CallOption
	stop func() bool // undoes the clean-up at the end of ctx

	// sendMu serialises what is sent, over the replacement of the stream below.
	sendMu sync.Mutex

	mu     sync.Mutex
	below  grpc.ClientStream
	call   *picker.Call
	closed bool                // CloseSend was called
	ended  bool                // the reader was told that it has ended
	sent   map[int64]time.Time // lease ID: its oldest keepalive without an answer
	lives  map[int64]time.Time // lease ID: when it ends unless it is kept alive
	// slow is how long answers take, at their slowest of late; tries is how often
	// the stream was opened again since the last answer. Both make the next
	// opening later: in a cluster that is slow as a whole, a stream that is
	// replaced before its answer can come never gets one.
	slow  time.Duration
	tries int
}

// maxTries bounds the doubling of the patience.
const maxTries = 4

func (a *Attachment) openLeaseStream(ctx context.Context, open opener, opts []grpc.CallOption) (grpc.ClientStream, error) {
	s := &leaseStream{a: a, ctx: ctx, open: open, opts: opts, sent: make(map[int64]time.Time), lives: make(map[int64]time.Time)}
	below, call, err := a.open(ctx, picker.ClassLease, methodKeepAlive, open, opts)
	if err != nil {
		return nil, err
	}
	s.below, s.call = below, call
	a.leases.add(s)
	s.stop = context.AfterFunc(ctx, func() { a.leases.remove(s) })
	return s, nil
}

// end forgets a stream that has ended before its context did.
func (s *leaseStream) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.a.leases.remove(s)
	s.stop()
}

func (s *leaseStream) current() (grpc.ClientStream, *picker.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.below, s.call
}

// SendMsg implements grpc.ClientStream. It reports an error only after the reader
// got one, or at the end of the context: clientv3 stops sending for good at an
// error, until its reader opens another stream. gRPC tells the sender of the end of
// a stream first, and here its reader may replace it: then the keepalive goes out
// with the next one.
func (s *leaseStream) SendMsg(m any) error {
	s.sendMu.Lock()
	defer s.sendMu.Unlock()
	if req, ok := m.(*pb.LeaseKeepAliveRequest); ok {
		s.mu.Lock()
		if _, waiting := s.sent[req.GetID()]; !waiting {
			s.sent[req.GetID()] = time.Now()
		}
		s.mu.Unlock()
		s.a.started()
	}
	below, _ := s.current()
	if err := below.SendMsg(m); err != nil && s.over() {
		return err
	}
	return nil
}

// over reports whether nothing can replace the stream below any more.
func (s *leaseStream) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended || s.ctx.Err() != nil
}

// RecvMsg implements grpc.ClientStream.
func (s *leaseStream) RecvMsg(m any) error {
	for {
		below, call := s.current()
		err := below.RecvMsg(m)
		if err == nil {
			if resp, ok := m.(*pb.LeaseKeepAliveResponse); ok {
				s.answered(resp, time.Now())
			}
			return nil
		}
		if s.ctx.Err() != nil || !s.replaceable(call, err) {
			s.end()
			return err
		}
		if err := s.reopen(); err != nil {
			s.end()
			return err
		}
	}
}

// replaceable reports whether the stream below ended in a way that another
// member can mend.
func (s *leaseStream) replaceable(call *picker.Call, err error) bool {
	if moved(call) != nil && endedByUs(err) {
		return true
	}
	if requiresLeader(s.ctx) && s.a.leaderless(call, err) {
		s.a.noLeaderMove(call)
		return true
	}
	return false
}

func (s *leaseStream) answered(resp *pb.LeaseKeepAliveResponse, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, waiting := s.sent[resp.GetID()]; waiting {
		s.slow, s.tries = max(now.Sub(at), s.slow/2), 0
	}
	delete(s.sent, resp.GetID())
	if resp.GetTTL() <= 0 {
		delete(s.lives, resp.GetID())
		return
	}
	s.lives[resp.GetID()] = now.Add(lifetime(resp.GetTTL()))
	s.a.ttls.look(resp.GetTTL(), s.a.cfg.KeepaliveOverdue)
}

// reopen replaces the stream below and sends again what has no answer.
func (s *leaseStream) reopen() error {
	below, call, err := s.a.open(s.ctx, picker.ClassLease, methodKeepAlive, s.open, s.opts)
	if err != nil {
		return err
	}
	s.sendMu.Lock()
	ids, closed := s.replace(below, call, time.Now())
	// Thousands do not fit into the windows of a stream whose answers nobody reads: that is
	// what the caller goes on to do meanwhile.
	go func() { // ends with the stream below at the latest
		defer s.sendMu.Unlock()
		for _, id := range ids {
			if below.SendMsg(&pb.LeaseKeepAliveRequest{ID: id}) != nil {
				return // the reader finds out why
			}
		}
		if closed {
			_ = below.CloseSend() // the reader finds out here too
		}
	}()
	return nil
}

// replace makes the new stream the current one and returns the leases whose
// keepalive has no answer, shortest life first. They count as sent now.
func (s *leaseStream) replace(below grpc.ClientStream, call *picker.Call, now time.Time) (ids []int64, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := moved(s.call); m != nil && m.Reason == ReasonKeepalive {
		s.tries = min(s.tries+1, maxTries)
	}
	s.below, s.call = below, call
	for id := range s.sent {
		ids = append(ids, id)
		s.sent[id] = now
	}
	sort.Slice(ids, func(i, j int) bool {
		if a, b := s.lives[ids[i]], s.lives[ids[j]]; !a.Equal(b) {
			return a.Before(b)
		}
		return ids[i] < ids[j]
	})
	return ids, s.closed
}

// CloseSend implements grpc.ClientStream.
func (s *leaseStream) CloseSend() error {
	s.sendMu.Lock()
	defer s.sendMu.Unlock()
	s.mu.Lock()
	s.closed = true
	below := s.below
	s.mu.Unlock()
	return below.CloseSend()
}

// Header implements grpc.ClientStream.
func (s *leaseStream) Header() (metadata.MD, error) {
	below, _ := s.current()
	return below.Header()
}

// Trailer implements grpc.ClientStream.
func (s *leaseStream) Trailer() metadata.MD {
	below, _ := s.current()
	return below.Trailer()
}

// Context implements grpc.ClientStream. It is the caller's, since the stream
// below may be replaced.
func (s *leaseStream) Context() context.Context { return s.ctx }

// leaseInfo is what the mover wants to know of a lease stream.
type leaseInfo struct {
	unanswered time.Time     // oldest keepalive without an answer; zero: none
	remaining  time.Duration // shortest life left
	slow       time.Duration // see leaseStream
	tries      int
}

func (s *leaseStream) info(now time.Time) (*picker.Call, leaseInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := leaseInfo{slow: s.slow, tries: s.tries}
	for _, at := range s.sent {
		if l.unanswered.IsZero() || at.Before(l.unanswered) {
			l.unanswered = at
		}
	}
	first := true
	for id, end := range s.lives {
		left := end.Sub(now)
		if left < -time.Minute {
			delete(s.lives, id) // no longer kept alive by its user
			delete(s.sent, id)
			continue
		}
		if first || left < l.remaining {
			l.remaining, first = left, false
		}
	}
	return s.call, l
}

// leaseSet holds the open lease streams of a client.
type leaseSet struct {
	mu      sync.Mutex
	streams map[*leaseStream]struct{}
}

func (l *leaseSet) add(s *leaseStream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams == nil {
		l.streams = make(map[*leaseStream]struct{})
	}
	l.streams[s] = struct{}{}
}

func (l *leaseSet) remove(s *leaseStream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, s)
}

func (l *leaseSet) byCall(now time.Time) map[*picker.Call]leaseInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[*picker.Call]leaseInfo, len(l.streams))
	for s := range l.streams {
		call, info := s.info(now)
		out[call] = info
	}
	return out
}
