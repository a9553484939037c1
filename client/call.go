package client

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/picker"
)

// unary is the interceptor of unary calls. It runs inside clientv3's own retry
// interceptor, so each of that one's attempts is a call here.
func (a *Attachment) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	class := unaryClass(method, req)
	if class == picker.ClassOther {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	if grant, ok := req.(*pb.LeaseGrantRequest); ok {
		a.ttls.look(grant.GetTTL(), a.cfg.KeepaliveOverdue)
	}
	var repeated repeats
	for {
		callCtx, call := a.hub.Begin(ctx, class, method)
		a.started()
		err := invoke(callCtx, method, req, reply, cc, opts...)
		call.Finish()
		a.learnMain(cc, call)
		if err == nil {
			return nil
		}
		cause := moved(call)
		if cause == nil || ctx.Err() != nil || !endedByUs(err) {
			err = awaitDeadline(ctx, bare(err))
			if err = a.explain(ctx, cc, call, err); repeated.again(ctx, class, method, err) {
				continue
			}
			return err
		}
		// A read is safe to repeat, and what never left is not a repetition.
		if class == picker.ClassMutation && call.Sent() {
			cause.Sent = true
			return cause
		}
	}
}

// bare is what the member said last, without the words that gRPC puts before it when it has
// retried in vain: etcd's errors are recognised by their text.
func bare(err error) error {
	var said interface{ GRPCStatus() *status.Status }
	if _, itself := err.(interface{ GRPCStatus() *status.Status }); itself || !errors.As(err, &said) {
		return err
	}
	if err, ok := said.(error); ok {
		return err
	}
	return said.GRPCStatus().Err()
}

// endedByUs tells a call that our cancellation ended from one whose own answer
// was quicker.
func endedByUs(err error) bool {
	return clientv3.IsConnCanceled(err) || errors.Is(err, context.Canceled)
}

// explain adds what is known of the member to an error that says nothing of it,
// and takes note of what the error says.
func (a *Attachment) explain(ctx context.Context, cc *grpc.ClientConn, call *picker.Call, err error) error {
	address := call.Address()
	if address != "" && isNoLeader(err) {
		a.avoid(address) // the next attempt goes elsewhere
		return err
	}
	now := time.Now()
	if !pastDeadline(ctx, err, now) {
		return a.endedElsewhere(ctx, cc, call, err)
	}
	if address == "" {
		deadline, _ := ctx.Deadline()
		main := a.main.Load()
		if waited := deadline.After(call.Began()); waited && !call.Sent() && (main == nil || main == cc) {
			return &CallError{Method: call.Method(), Sent: repeatedUnseen[call.Method()], Others: a.Health().why(now), Err: context.DeadlineExceeded}
		}
		return err
	}
	v, ok := a.prober.Snapshot().Verdict(address)
	if !ok || !avoided(v.Grade) {
		return err
	}
	return &CallError{
		Method: call.Method(), Endpoint: address, Member: v.Member, Grade: v.Grade.String(), Reason: v.Reason,
		Since: v.Since, After: now.Sub(v.Since), Sent: call.Sent() || repeatedUnseen[call.Method()], Err: context.DeadlineExceeded,
	}
}

// endedElsewhere makes a mutation's end one that clientv3 passes on. What ends with the code of
// a context while the caller's is alive it makes again, up to a hundred times, and the member
// may have done each one. One that etcd ended itself, since there was no leader to propose it to
// for its request timeout, certainly did nothing: clientv3 is right to make it again.
func (a *Attachment) endedElsewhere(ctx context.Context, cc *grpc.ClientConn, call *picker.Call, err error) error {
	if ctx.Err() != nil || call.Class() != picker.ClassMutation || !call.Sent() || a.neverProposed(call, err) {
		return err
	}
	ended := &CallError{Method: call.Method(), Endpoint: call.Address(), Sent: true, Said: err.Error()}
	switch status.Code(err) {
	case codes.Canceled:
		ended.Err = context.Canceled
	case codes.DeadlineExceeded:
		ended.Err = context.DeadlineExceeded
	default:
		return err
	}
	if ended.Endpoint == "" {
		ended.Endpoint = cc.Target() // a connection of its own
	}
	if v, ok := a.prober.Snapshot().Verdict(ended.Endpoint); ok {
		ended.Member, ended.Grade, ended.Reason, ended.Since, ended.After = v.Member, v.Grade.String(), v.Reason, v.Since, time.Since(v.Since)
	}
	return ended
}

// neverProposed recognises the end of a mutation that waited at a member for a leader until
// that one's own request timeout: etcd then says what gRPC says of any context. A proposal that
// raft took and lost ends otherwise.
func (a *Attachment) neverProposed(call *picker.Call, err error) bool {
	said := status.Code(err) == codes.DeadlineExceeded && status.Convert(err).Message() == context.DeadlineExceeded.Error()
	if !said || !strings.HasPrefix(call.Method(), etcdMethods) || time.Since(call.Picked()) < requestTimeout {
		return false
	}
	v, ok := a.prober.Snapshot().Verdict(call.Address())
	return ok && avoided(v.Grade)
}

// requestTimeout is the least that etcd waits: 5 s and two election timeouts.
const requestTimeout = 5 * time.Second

// awaitDeadline waits for the timer of a context whose deadline the member saw pass first:
// until it fires clientv3 makes another attempt, for which there is no time. Where the timer
// does not fire, the error becomes one that ends the call all the same.
func awaitDeadline(ctx context.Context, err error) error {
	if ctx.Err() != nil || !pastDeadline(ctx, err, time.Now()) {
		return err
	}
	timer := time.NewTimer(timerLate)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return err
	case <-timer.C:
		return context.DeadlineExceeded
	}
}

// timerLate is more than a context's timer may be late; a context of the user's own, or one of a
// clock that was set back, may have none, or a later one.
const timerLate = time.Second

// pastDeadline reports whether a call ended because its own deadline passed. The
// member knows the deadline too, and its word may come before our context's timer.
func pastDeadline(ctx context.Context, err error, now time.Time) bool {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && !now.Before(deadline) && ctx.Err() == nil && status.Code(err) == codes.DeadlineExceeded
}

// avoid has new calls kept off an endpoint that says it has no leader; they are
// when it returns. A member that says so says it to every call and stream on it,
// so that only the first has to wait.
func (a *Attachment) avoid(address string) {
	if v, ok := a.prober.Snapshot().Verdict(address); ok && avoided(v.Grade) {
		return
	}
	a.prober.NoLeader(address)
}

// learnMain notes the main connection: calls on it, and on no other, are filed
// under an endpoint.
func (a *Attachment) learnMain(cc *grpc.ClientConn, call *picker.Call) {
	if a.main.Load() == nil && call.Address() != "" {
		a.main.Store(cc)
	}
}

// isNoLeader recognises etcd's "no leader", which it sends as a text only.
func isNoLeader(err error) bool {
	return errors.Is(rpctypes.Error(err), rpctypes.ErrNoLeader)
}

// stream is the interceptor of streams.
func (a *Attachment) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	switch class := streamClass(method); class {
	case picker.ClassOther:
		return open(ctx, desc, cc, method, opts...)
	case picker.ClassLease:
		return a.openLeaseStream(ctx, func(ctx context.Context, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return open(ctx, desc, cc, method, opts...)
		}, opts)
	default:
		return a.openStream(ctx, class, method, func(ctx context.Context, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return open(ctx, desc, cc, method, opts...)
		}, opts)
	}
}

// opener opens the underlying stream with the method and connection bound.
type opener func(context.Context, ...grpc.CallOption) (grpc.ClientStream, error)

// open opens one stream that can be ended by its Call. It is filed for as long
// as it lives; one that was ended before it was sent is opened again.
func (a *Attachment) open(ctx context.Context, class picker.Class, method string, open opener, opts []grpc.CallOption) (grpc.ClientStream, *picker.Call, error) {
	for {
		callCtx, call := a.hub.Begin(ctx, class, method)
		finish := grpc.OnFinish(func(error) { call.Finish() })
		s, err := open(callCtx, append(slices.Clone(opts), finish)...)
		if err == nil {
			return s, call, nil
		}
		call.Finish()
		if moved(call) == nil || ctx.Err() != nil {
			return nil, call, err
		}
	}
}

// movingStream is a stream that ends with Unavailable when its member is given
// up, so that clientv3 resumes it elsewhere.
type movingStream struct {
	grpc.ClientStream
	a             *Attachment
	ctx           context.Context // the caller's
	call          *picker.Call
	requireLeader bool
}

func (a *Attachment) openStream(ctx context.Context, class picker.Class, method string, open opener, opts []grpc.CallOption) (grpc.ClientStream, error) {
	s, call, err := a.open(ctx, class, method, open, opts)
	if err != nil {
		return nil, a.streamError(ctx, call, err, requiresLeader(ctx))
	}
	moving := &movingStream{ClientStream: s, a: a, ctx: ctx, call: call, requireLeader: requiresLeader(ctx)}
	if class == picker.ClassWatch {
		return &watchStream{movingStream: moving}, nil
	}
	return moving, nil
}

// RecvMsg implements grpc.ClientStream.
func (s *movingStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil {
		return nil
	}
	return s.a.streamError(s.ctx, s.call, err, s.requireLeader)
}

// streamError is what the reader of a stream gets: the cause if it was moved;
// also when its member lost the leader and another one has it, for which
// clientv3 would close a watch that requires a leader.
func (a *Attachment) streamError(ctx context.Context, call *picker.Call, err error, requireLeader bool) error {
	if ctx.Err() != nil {
		return err
	}
	if m := moved(call); m != nil && endedByUs(err) {
		return m
	}
	if requireLeader && a.leaderless(call, err) {
		return a.noLeaderMove(call)
	}
	return err
}

// leaderless reports whether err says that the call's member has no leader
// while a better member is ready; new calls are off the member when it returns.
func (a *Attachment) leaderless(call *picker.Call, err error) bool {
	address := call.Address()
	if address == "" || !isNoLeader(err) {
		return false
	}
	a.avoid(address)
	return a.better(address)
}

func (a *Attachment) noLeaderMove(call *picker.Call) *MovedError {
	m := &MovedError{Endpoint: call.Address(), Reason: "no-leader", Since: time.Now(), Method: call.Method(), Sent: call.Sent()}
	if v, ok := a.prober.Snapshot().Verdict(call.Address()); ok {
		m.Member, m.Since = v.Member, v.Since
	}
	a.note(call, m)
	a.signal() // the loop tells the user
	return m
}

// requiresLeader reports whether the caller asked for clientv3.WithRequireLeader.
func requiresLeader(ctx context.Context) bool {
	md, ok := metadata.FromOutgoingContext(ctx)
	return ok && slices.Contains(md[rpctypes.MetadataRequireLeaderKey], rpctypes.MetadataHasLeader)
}

// lifetime is a lease's TTL in seconds as a duration, for any number that a
// server or a user may give.
func lifetime(ttl int64) time.Duration {
	return time.Duration(min(max(ttl, 0), int64(math.MaxInt64/time.Second))) * time.Second
}

// ttlWarner warns once for each TTL that detection cannot save.
type ttlWarner struct {
	logger *slog.Logger
	login  bool // the user has a password, so that streams need tokens
	mu     sync.Mutex
	warned map[int64]bool
}

// resendEvery is how often clientv3's lease loop looks for leases that are due.
const resendEvery = 500 * time.Millisecond

// look warns about a lease whose TTL may pass before its keepalive has gone
// through another member. clientv3 sends one after a third of the TTL, up to
// 0.5 s late; if the member fails just then, the answer is overdue after
// overdue, and the second one needs a moment too.
func (w *ttlWarner) look(ttl int64, overdue time.Duration) {
	life := lifetime(ttl)
	need := life/3 + resendEvery + overdue + activeTick
	if w.login {
		need += resendEvery // clientv3 waits that long before it logs in again, if the token is too old
	}
	if life > need {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.warned[ttl] || len(w.warned) > 100 {
		return
	}
	if w.warned == nil {
		w.warned = make(map[int64]bool)
	}
	w.warned[ttl] = true
	w.logger.Warn("a lease this short may be lost when its member fails: use a longer TTL",
		slog.Duration("ttl", life), slog.Duration("needed", need),
		slog.Duration("keepalive after", life/3), slog.Duration("overdue after", overdue))
}
