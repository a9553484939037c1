package client

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/picker"
)

// scriptedStream is the stream below a lease stream, played by the test.
type scriptedStream struct {
	ctx     context.Context
	sent    []int64
	closed  bool
	broken  error         // of sending
	room    chan struct{} // what is sent needs some, if set
	answers chan *pb.LeaseKeepAliveResponse
	fails   chan error
}

func (s *scriptedStream) Header() (metadata.MD, error) { return nil, nil }
func (s *scriptedStream) Trailer() metadata.MD         { return nil }
func (s *scriptedStream) Context() context.Context     { return s.ctx }
func (s *scriptedStream) CloseSend() error             { s.closed = true; return nil }

func (s *scriptedStream) SendMsg(m any) error {
	if s.broken != nil || s.ctx.Err() != nil {
		return fmt.Errorf("broken: %w", s.broken)
	}
	if s.room != nil {
		select {
		case s.room <- struct{}{}:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
	s.sent = append(s.sent, m.(*pb.LeaseKeepAliveRequest).ID)
	return nil
}

func (s *scriptedStream) RecvMsg(m any) error {
	select {
	case r := <-s.answers:
		resp := m.(*pb.LeaseKeepAliveResponse)
		resp.ID, resp.TTL = r.ID, r.TTL
		return nil
	case err := <-s.fails:
		return err
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

// leaseScene is a lease stream over scripted ones, with a reader.
type leaseScene struct {
	t      *testing.T
	a      *Attachment
	s      *leaseStream
	below  []*scriptedStream
	cancel context.CancelFunc
	room   chan struct{} // of the next stream below
	ended  error         // what the reader got
}

func inLeaseScene(t *testing.T, test func(*leaseScene)) {
	synctest.Test(t, func(t *testing.T) {
		l := &leaseScene{t: t, a: &Attachment{hub: picker.NewHub(), wake: make(chan struct{}, 1)}}
		defer l.a.hub.Close()
		ctx, cancel := context.WithCancel(t.Context())
		l.cancel = cancel
		open := func(ctx context.Context, _ ...grpc.CallOption) (grpc.ClientStream, error) {
			l.below = append(l.below, &scriptedStream{ctx: ctx, room: l.room, answers: make(chan *pb.LeaseKeepAliveResponse), fails: make(chan error)})
			return l.below[len(l.below)-1], nil
		}
		s, err := l.a.openLeaseStream(ctx, open, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.s = s.(*leaseStream)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for l.ended == nil {
				l.ended = s.RecvMsg(&pb.LeaseKeepAliveResponse{})
			}
		}()
		test(l)
		cancel()
		<-done
		synctest.Wait()
		if n := len(l.a.leases.streams); n != 0 {
			t.Errorf("%d streams are remembered after the end, want none", n)
		}
	})
}

func (l *leaseScene) send(ids ...int64) {
	l.t.Helper()
	for _, id := range ids {
		if err := l.s.SendMsg(&pb.LeaseKeepAliveRequest{ID: id}); err != nil {
			l.t.Errorf("SendMsg(%d): %v, want none: clientv3 would stop sending for good", id, err)
		}
	}
}

func (l *leaseScene) answer(id, ttl int64) {
	l.below[len(l.below)-1].answers <- &pb.LeaseKeepAliveResponse{ID: id, TTL: ttl}
	synctest.Wait()
}

// move ends the stream below as the loop does.
func (l *leaseScene) move() {
	_, call := l.s.current()
	l.a.end(call, &MovedError{Endpoint: "a", Reason: "test", Method: methodKeepAlive})
}

func (l *leaseScene) info() leaseInfo {
	_, info := l.s.info(time.Now())
	return info
}

func TestMovedLeaseStreamSendsAgainWhatHasNoAnswerShortestLifeFirst(t *testing.T) {
	inLeaseScene(t, func(l *leaseScene) {
		l.send(1, 2, 3)
		l.answer(1, 30)
		l.answer(2, 5)
		l.answer(3, 10)
		time.Sleep(time.Second)
		l.send(1, 2, 3)
		l.answer(3, 10) // and no answer for 1 and 2
		time.Sleep(time.Second)
		l.move()
		l.send(4) // it goes out with the next stream, or on it if the reader was quicker
		synctest.Wait()
		if len(l.below) != 2 || l.ended != nil {
			t.Fatalf("%d streams, reader ended with %v; want a second stream, unnoticed", len(l.below), l.ended)
		}
		if got := l.below[1].sent; !slices.Equal(got, []int64{4, 2, 1}) && !slices.Equal(got, []int64{2, 1, 4}) {
			t.Errorf("sent again: %v, want 2 before 1, its life is shorter; 4 before both (a life not known is the shortest) or after; and not 3, which was answered", got)
		}
		if at := l.info().unanswered; time.Since(at) != 0 {
			t.Errorf("the keepalives count as unanswered for %v, want from now on: else the new stream goes at once", time.Since(at))
		}
		for _, id := range []int64{1, 2, 4} {
			l.answer(id, 10)
		}
		if at := l.info().unanswered; !at.IsZero() {
			t.Errorf("everything is answered, yet one waits for %v", time.Since(at))
		}
	})
}

// Thousands of keepalives fill the windows of a stream in both directions if nobody reads.
func TestAnswersAreReadWhileKeepalivesAreSentAgain(t *testing.T) {
	inLeaseScene(t, func(l *leaseScene) {
		l.send(1, 2, 3)
		l.room = make(chan struct{})
		l.move()
		synctest.Wait()
		<-l.room
		synctest.Wait()
		select {
		case l.below[1].answers <- &pb.LeaseKeepAliveResponse{ID: 1, TTL: 10}:
		case <-time.After(time.Second):
			t.Fatal("nobody reads the answer to the first keepalive while the second waits for room")
		}
		<-l.room
		<-l.room
		synctest.Wait()
		if got := l.below[1].sent; !slices.Equal(got, []int64{1, 2, 3}) {
			t.Errorf("sent again: %v, want all three", got)
		}
	})
}

func TestOldestUnansweredKeepaliveAndShortestLifeCount(t *testing.T) {
	inLeaseScene(t, func(l *leaseScene) {
		l.send(1, 2)
		l.answer(1, 30)
		l.answer(2, 5)
		if left := l.info().remaining; left != 5*time.Second {
			t.Errorf("shortest life left is %v, want 5s", left)
		}
		l.send(1)
		time.Sleep(500 * time.Millisecond)
		l.send(1, 2) // clientv3 sends again what is not answered
		if age := time.Since(l.info().unanswered); age != 500*time.Millisecond {
			t.Errorf("oldest unanswered keepalive is %v old, want 500ms", age)
		}
		l.answer(1, 0) // expired
		l.answer(2, 5)
		if i := l.info(); !i.unanswered.IsZero() || i.remaining != 5*time.Second {
			t.Errorf("after the answers: %+v, want the one lease that is left", i)
		}
		time.Sleep(5*time.Second + time.Minute + 1)
		if l.info(); len(l.s.lives)+len(l.s.sent) != 0 {
			t.Errorf("%d lives, %d sent are kept of leases that nobody keeps alive", len(l.s.lives), len(l.s.sent))
		}
	})
}

func TestLeaseStreamGrowsPatientUntilItIsAnswered(t *testing.T) {
	inLeaseScene(t, func(l *leaseScene) {
		l.send(1)
		for range 10 {
			_, call := l.s.current()
			l.a.end(call, &MovedError{Endpoint: "a", Reason: ReasonKeepalive, Method: methodKeepAlive})
			synctest.Wait()
		}
		if i := l.info(); i.tries != maxTries {
			t.Errorf("%d tries are counted after ten, want the most, %d", i.tries, maxTries)
		}
		time.Sleep(2 * time.Second)
		l.answer(1, 10)
		if i := l.info(); i.tries != 0 || i.slow != 2*time.Second {
			t.Errorf("after an answer in 2s: %d tries, slowest answer %v; want 0 and 2s", i.tries, i.slow)
		}
		l.move() // for a verdict, or to drift: that says nothing about answers
		synctest.Wait()
		if i := l.info(); i.tries != 0 {
			t.Errorf("%d tries are counted for a move that no keepalive was the reason of", i.tries)
		}
		l.send(1)
		l.answer(1, 10)
		if i := l.info(); i.tries != 0 || i.slow != time.Second {
			t.Errorf("after an answer at once: %d tries, slowest answer %v; want 0 and half of before", i.tries, i.slow)
		}
	})
}

func TestClosedLeaseStreamStaysClosedWhenItMoves(t *testing.T) {
	inLeaseScene(t, func(l *leaseScene) {
		l.send(1)
		if err := l.s.CloseSend(); err != nil {
			t.Fatal(err)
		}
		l.move()
		synctest.Wait()
		if len(l.below) != 2 || !l.below[1].closed || len(l.below[1].sent) != 1 {
			t.Fatalf("%d streams, want a second one that is closed for sending after the one keepalive", len(l.below))
		}
	})
}

// What is no move is clientv3's to handle, as without us. Its reader opens the next stream;
// its sender stops for good at an error, so it hears of none that the reader may never see.
func TestLeaseStreamThatFailsByItselfTellsItsReaderThenItsSender(t *testing.T) {
	inLeaseScene(t, func(l *leaseScene) {
		l.below[0].broken = io.EOF
		l.send(1)
		want := status.Error(codes.Unavailable, "gone")
		l.below[0].fails <- want
		synctest.Wait()
		if l.ended != want || len(l.below) != 1 {
			t.Errorf("the reader got %v after %d streams, want %v after one", l.ended, len(l.below), want)
		}
		if err := l.s.SendMsg(&pb.LeaseKeepAliveRequest{ID: 1}); err == nil {
			t.Error("SendMsg on a stream whose reader was told of its end reports nothing")
		}
		if n := len(l.a.leases.streams); n != 0 {
			t.Errorf("%d streams are remembered after the end although the context goes on", n)
		}
		if l.s.stop() {
			t.Error("the context still holds on to the stream that has ended")
		}
	})
}

// The sender may see the end of a stream before its reader, who then moves it.
func TestSenderThatSeesTheEndOfALeaseStreamBeforeItMovesGoesOn(t *testing.T) {
	inLeaseScene(t, func(l *leaseScene) {
		l.below[0].broken = io.EOF
		l.send(1)
		l.move()
		synctest.Wait()
		if len(l.below) != 2 || l.ended != nil {
			t.Fatalf("%d streams, reader ended with %v; want a second stream, unnoticed", len(l.below), l.ended)
		}
		if got := l.below[1].sent; !slices.Equal(got, []int64{1}) {
			t.Errorf("sent again: %v, want what the first stream did not take", got)
		}
	})
}

func TestLeaseStreamWhoseContextIsOverTakesNothingMore(t *testing.T) {
	inLeaseScene(t, func(l *leaseScene) {
		l.cancel()
		if err := l.s.SendMsg(&pb.LeaseKeepAliveRequest{ID: 1}); err == nil {
			t.Error("SendMsg after the end of the context reports nothing")
		}
	})
}

// KeepAliveOnce reads one answer and goes: nobody reads the end.
func TestLeaseStreamThatNobodyReadsIsForgottenWithItsContext(t *testing.T) {
	a := &Attachment{hub: picker.NewHub(), wake: make(chan struct{}, 1)}
	defer a.hub.Close()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := a.openLeaseStream(ctx, func(ctx context.Context, _ ...grpc.CallOption) (grpc.ClientStream, error) {
			return &scriptedStream{ctx: ctx}, nil
		}, nil); err != nil || len(a.leases.streams) != 1 {
			t.Fatalf("open: %v, %d streams known, want one", err, len(a.leases.streams))
		}
		cancel()
		synctest.Wait()
		if n := len(a.leases.streams); n != 0 {
			t.Errorf("%d streams are remembered after the end of their context", n)
		}
	})
}

func TestOddTTLsDoNoHarm(t *testing.T) {
	inLeaseScene(t, func(l *leaseScene) {
		for i, ttl := range []int64{math.MaxInt64, math.MinInt64, -1, math.MaxInt64 / int64(time.Second)} {
			l.send(int64(i))
			l.answer(int64(i), ttl)
		}
		if i := l.info(); !i.unanswered.IsZero() || i.remaining < 0 {
			t.Errorf("after odd answers: %+v, want nothing unanswered, no life in the past", i)
		}
	})
}
