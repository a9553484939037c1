package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/membership"
)

// MovedError ends a call or stream on a member that was given up. It passes
// through clientv3 unchanged: use errors.As.
//
// Its gRPC code is Unavailable, on which clientv3 resumes watches and repeats
// reads, except for a mutation that had been sent: that is Aborted, so that no
// layer repeats it.
type MovedError struct {
	Endpoint string        // address of the endpoint that was left
	Member   membership.ID // 0: not known
	Reason   string        // why it was left, as in [Move]
	Since    time.Time     // since when that held
	After    time.Duration // how long it had held when the call was ended; 0: not measured
	Method   string        // full gRPC method
	Sent     bool          // the request may have reached the member
	Mutation bool          // the call changes the store, membership or users
}

// Error implements error.
func (e *MovedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "quorumwise: %s left endpoint %s", shortMethod(e.Method), e.Endpoint)
	if e.Member != 0 {
		fmt.Fprintf(&b, " (member %s)", e.Member)
	}
	fmt.Fprintf(&b, ": %s for %v", e.Reason, e.After.Round(time.Millisecond))
	if e.outcomeUnknown() {
		b.WriteString("; the request had been sent and may or may not take effect: read before you repeat it")
	}
	return b.String()
}

// GRPCStatus makes the error a gRPC status for the layers above.
func (e *MovedError) GRPCStatus() *status.Status {
	if e.outcomeUnknown() {
		return status.New(codes.Aborted, e.Error())
	}
	return status.New(codes.Unavailable, e.Error())
}

func (e *MovedError) outcomeUnknown() bool { return e.Mutation && e.Sent }

// IsOutcomeUnknown reports whether err says that a mutation was sent to a member that was then
// given up, or was ended while its caller still waited ([CallError] with Said): it may or may
// not have taken effect, and it was not and will not be sent again by this client.
func IsOutcomeUnknown(err error) bool {
	var moved *MovedError
	var call *CallError
	return errors.As(err, &moved) && moved.outcomeUnknown() || errors.As(err, &call) && call.Said != ""
}

// CallError is a call that ran into its own deadline while there was something
// to say about its member, or no member to send it to. Or it is a mutation that was ended, by
// its member or on the way to it, with the code of a context while its caller still waited.
// errors.Is finds Err in it: whether the caller's own context is over, only that one says.
type CallError struct {
	Method   string        // full gRPC method
	Endpoint string        // "": the call found no endpoint to go to
	Member   membership.ID // 0: not known
	Grade    string        // of the endpoint: suspect, unhealthy, parked; with Said any; "" without one
	Reason   string        // of that grade, as in [EndpointHealth]; "" without an endpoint
	Since    time.Time     // when the endpoint got that grade; zero without one
	After    time.Duration // how long it had had it when the call ended
	Sent     bool          // the request may have reached a member
	Others   string        // without an endpoint: every endpoint and why it did not serve
	Said     string        // what the mutation was ended with while its caller still waited; else ""
	Err      error         // context.DeadlineExceeded, or context.Canceled with Said
}

// Error implements error.
func (e *CallError) Error() string {
	switch {
	case e.Endpoint == "":
		return fmt.Sprintf("quorumwise: %s: no endpoint was ready: %s: %v", shortMethod(e.Method), e.Others, e.Err)
	case e.Said != "":
		return fmt.Sprintf("quorumwise: %s on endpoint %s (member %s) was ended while its caller still waited: %s; the request had been sent and may or may not take effect: read before you repeat it",
			shortMethod(e.Method), e.Endpoint, e.Member, e.Said)
	}
	return fmt.Sprintf("quorumwise: %s on endpoint %s (member %s), which is %s: %s for %v: %v",
		shortMethod(e.Method), e.Endpoint, e.Member, e.Grade, e.Reason, e.After.Round(time.Millisecond), e.Err)
}

// Unwrap returns the context's error.
func (e *CallError) Unwrap() error { return e.Err }

// Timeout makes the error a timeout for net.Error, as context.DeadlineExceeded is.
func (e *CallError) Timeout() bool { return errors.Is(e.Err, context.DeadlineExceeded) }

// Temporary completes net.Error: false for a mutation that must not simply be repeated.
func (e *CallError) Temporary() bool { return e.Timeout() && e.Said == "" }

// shortMethod is "KV/Put" of "/etcdserverpb.KV/Put".
func shortMethod(full string) string {
	_, name, ok := strings.Cut(full, ".")
	if !ok {
		return full
	}
	return name
}
