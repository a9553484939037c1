package picker

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/balancer"
)

// Call is one call of the user's, from [Hub.Begin] to [Call.Finish]. Its methods
// may be used by any goroutine at any time, also after the call is over.
type Call struct {
	// Fixed by Begin.
	hub    *Hub
	class  Class
	method string
	began  time.Time
	cancel context.CancelCauseFunc

	// mu is taken before ledger.mu, never after.
	mu    sync.Mutex
	state callState
	cause error   // of End
	filed *ledger // nil: under none
	// address and moment of the newest pick; kept when that attempt is over.
	address string
	picked  time.Time
	// attempt numbers the picks. gRPC picks again for a retry, and when the
	// connection was lost between pick and use; what the end of an older attempt
	// has to say about filing does not count any more.
	attempt uint32
	// open is the number of picks that gRPC has not given back yet.
	open int
	// sent: an attempt that is over, or that we cannot follow, put bytes on a
	// connection.
	sent bool

	// Guarded by filed.mu.
	prev, next *Call
}

// callState is where a call stands. It only ever moves forward.
type callState uint8

const (
	// callRunning: from Begin on. Picks file the call.
	callRunning callState = iota
	// callEnded: by the first End. The context is cancelled with its cause, picks
	// are refused; the caller still has to Finish.
	callEnded
	// callFinished: by Finish. Nothing happens any more.
	callFinished
)

// callContext is the context that carries a call. One object instead of a chain
// of two, since every call pays for it.
type callContext struct {
	context.Context // cancelled by End and Finish
	call            Call
}

// callKey is the key under which a callContext answers with its call.
type callKey struct{}

// Value returns the call for callKey, and what the parent says for the rest.
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return &c.call
	}
	return c.Context.Value(key)
}

func callFrom(ctx context.Context) *Call {
	if ctx == nil {
		return nil
	}
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

func begin(ctx context.Context, h *Hub, class Class, method string) (context.Context, *Call) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &callContext{Context: ctx}
	c.call.hub = h
	c.call.class = class.known()
	c.call.method = method
	c.call.began = time.Now()
	c.call.cancel = cancel
	return c, &c.call
}

// Class returns the class that Begin was given.
func (c *Call) Class() Class { return c.class }

// Method returns the method that Begin was given.
func (c *Call) Method() string { return c.method }

// Began returns when Begin was called.
func (c *Call) Began() time.Time { return c.began }

// Picked returns when the call was last picked for an endpoint, zero while it has not
// been. A call may wait long for that: only from then on can the endpoint be blamed.
func (c *Call) Picked() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.picked
}

// Address returns the endpoint that the call was last picked for, "" while it
// has not been picked. It stays known after the call has ended.
func (c *Call) Address() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.address
}

// Sent reports whether the request may have left the process: it is true while
// the call is filed under an endpoint, and afterwards unless gRPC said of every
// attempt that it put no bytes on a connection. It is never false when bytes
// went out; it may be true when they did not arrive.
//
// Ask once the call has returned to learn the outcome: before, it can still
// turn either way.
func (c *Call) Sent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent || c.open > 0
}

// End gives the call up: its context is cancelled with cause (nil stands for
// [context.Canceled]), it is no longer listed under its endpoint, and it is not
// picked again. The first End wins; End reports whether this one did. After
// Finish it does nothing and reports false.
func (c *Call) End(cause error) bool {
	if cause == nil {
		cause = context.Canceled
	}
	c.mu.Lock()
	if c.state != callRunning {
		c.mu.Unlock()
		return false
	}
	c.state, c.cause = callEnded, cause
	c.unfile()
	c.mu.Unlock()
	c.cancel(cause)
	return true
}

// Cause returns what the call was ended with, nil when nobody ended it.
func (c *Call) Cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// Finish says that the call is over, whatever came of it, and frees what it
// holds. To be called exactly when the call has returned, for a stream when the
// stream is over; more than once does no harm.
func (c *Call) Finish() {
	c.mu.Lock()
	c.state = callFinished
	c.unfile()
	c.mu.Unlock()
	c.cancel(nil)
}

// filing is what came of an attempt to file a call.
type filing uint8

const (
	// filingDone: filed; Done of the pick must be passed on.
	filingDone filing = iota
	// filingOver: the call was ended or finished before; it must not be sent.
	filingOver
	// filingStale: the choice was made on a table that has been replaced; choose
	// again.
	filingStale
)

// file puts the call under the ledger and returns the number of the attempt.
func (c *Call) file(l *ledger, fresh func() bool) (uint32, filing) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != callRunning {
		return 0, filingOver
	}
	c.unfile() // an older attempt that has not been given back
	if !l.add(c, fresh) {
		return 0, filingStale
	}
	c.filed, c.address, c.picked = l, l.address, now
	c.attempt++
	c.open++
	return c.attempt, filingDone
}

// done takes the end of an attempt from gRPC.
func (c *Call) done(attempt uint32, info balancer.DoneInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	c.sent = c.sent || info.BytesSent
	if attempt == c.attempt {
		c.unfile()
	}
}

// passed notes that the call went out on a connection where we do not follow
// it, so that Sent errs on the safe side.
func (c *Call) passed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = true
}

// unfile takes the call off its ledger; mu is held.
func (c *Call) unfile() {
	if c.filed != nil {
		c.filed.remove(c)
		c.filed = nil
	}
}
