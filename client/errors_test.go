package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestMovedErrorSurvivesClientV3AndSaysWhoWhyAndSinceWhen(t *testing.T) {
	m := &MovedError{
		Endpoint: "10.0.0.1:2379", Member: 0x8e9e05c52164694d, Reason: "no-quorum", After: 412 * time.Millisecond,
		Method: "/etcdserverpb.KV/Put", Sent: true, Mutation: true,
	}
	through := clientv3.ContextError(context.Background(), fmt.Errorf("put: %w", m))
	var got *MovedError
	if !errors.As(through, &got) || got != m {
		t.Fatalf("clientv3.ContextError gives %v; want the MovedError still in it", through)
	}
	for _, part := range []string{"KV/Put", "10.0.0.1:2379", "8e9e05c52164694d", "no-quorum", "412ms", "may or may not"} {
		if !strings.Contains(m.Error(), part) {
			t.Errorf("%q does not say %q", m, part)
		}
	}
}

// Unavailable makes clientv3 resume a watch and repeat a read; LeaseGrant and
// LeaseRevoke count as repeatable there, so a sent mutation must not carry it.
func TestOnlyASentMutationIsOfUnknownOutcomeAndNeverUnavailable(t *testing.T) {
	for _, tt := range []struct {
		sent, mutation, unknown bool
		code                    codes.Code
	}{
		{true, true, true, codes.Aborted},
		{false, true, false, codes.Unavailable},
		{true, false, false, codes.Unavailable},
		{false, false, false, codes.Unavailable},
	} {
		m := &MovedError{Sent: tt.sent, Mutation: tt.mutation}
		if got := IsOutcomeUnknown(fmt.Errorf("x: %w", m)); got != tt.unknown {
			t.Errorf("sent %v, mutation %v: IsOutcomeUnknown = %v, want %v", tt.sent, tt.mutation, got, tt.unknown)
		}
		if got := status.Code(m); got != tt.code {
			t.Errorf("sent %v, mutation %v: code %v, want %v", tt.sent, tt.mutation, got, tt.code)
		}
	}
	if IsOutcomeUnknown(nil) || IsOutcomeUnknown(context.DeadlineExceeded) {
		t.Error("IsOutcomeUnknown is true for an error that is not ours")
	}
}

// A deadline says who, what, why and since when, and stays a deadline.
func TestCallErrorIsADeadlineWithAReason(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), -1)
	defer cancel()
	e := &CallError{
		Method: "/etcdserverpb.KV/Range", Endpoint: "10.0.0.1:2379", Member: 1, Grade: "unhealthy", Reason: "unreachable",
		After: 2 * time.Second, Err: ctx.Err(),
	}
	through := clientv3.ContextError(ctx, e)
	var timeout net.Error
	if !errors.Is(through, context.DeadlineExceeded) || !errors.As(through, &timeout) || !timeout.Timeout() {
		t.Errorf("%v is not a deadline to errors.Is and net.Error", through)
	}
	for _, part := range []string{"KV/Range", "10.0.0.1:2379", "member 1", "unhealthy", "unreachable", "2s", "deadline exceeded"} {
		if !strings.Contains(through.Error(), part) {
			t.Errorf("%q does not say %q", through, part)
		}
	}
}

// The member may say that the deadline has passed before our own timer does.
func TestDeadlineThatTheMemberToldFirstIsADeadline(t *testing.T) {
	deadline := time.Unix(1000, 0)
	ctx := fixedDeadline{context.Background(), deadline}
	told := status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	for _, tt := range []struct {
		err  error
		now  time.Time
		want bool
	}{
		{told, deadline, true},
		{told, deadline.Add(-time.Millisecond), false}, // a deadline of the server's own
		{status.Error(codes.Unavailable, ""), deadline, false},
	} {
		if got := pastDeadline(ctx, tt.err, tt.now); got != tt.want {
			t.Errorf("%v at %v before the deadline: %v, want %v", tt.err, deadline.Sub(tt.now), got, tt.want)
		}
	}
}

// fixedDeadline is a context whose timer has not fired yet.
type fixedDeadline struct {
	context.Context
	at time.Time
}

func (f fixedDeadline) Deadline() (time.Time, bool) { return f.at, true }
