//go:build linux

package app

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

func TestOutcomeOfAMutationIsRefusedOnlyWhereTheErrorSaysSo(t *testing.T) {
	server := func(err error) error { return rpctypes.Error(err) } // as clientv3 returns it
	tests := []struct {
		name string
		err  error
		want history.Outcome
	}{
		{"no error", nil, history.Done},
		{"dropped by the asked member's own raft", status.Error(codes.Unknown, "raft proposal dropped"), history.Refused},
		{"another error that mentions it", errors.New("etcd: raft proposal dropped, perhaps"), history.Unknown},
		{"too many requests, before proposing", server(rpctypes.ErrGRPCRequestTooManyRequests), history.Refused},
		{"too large, before proposing", server(rpctypes.ErrGRPCRequestTooLarge), history.Refused},
		{"moved before it was sent", &client.MovedError{Mutation: true}, history.Refused},
		{"moved after it was sent", &client.MovedError{Mutation: true, Sent: true}, history.Unknown},
		{"moved after it was sent, wrapped", fmt.Errorf("txn: %w", &client.MovedError{Mutation: true, Sent: true}), history.Unknown},
		{"deadline before it was sent", &client.CallError{Err: context.DeadlineExceeded}, history.Refused},
		{"deadline after it was sent", &client.CallError{Sent: true, Err: context.DeadlineExceeded}, history.Unknown},
		{"a bare deadline", context.DeadlineExceeded, history.Unknown},
		{"cancelled", context.Canceled, history.Unknown},
		{"no space: applied where the quota was just exceeded", server(rpctypes.ErrGRPCNoSpace), history.Unknown},
		{"server's timeout", server(rpctypes.ErrGRPCTimeout), history.Unknown},
		{"leader failed", server(rpctypes.ErrGRPCTimeoutDueToLeaderFail), history.Unknown},
		{"leader changed", server(rpctypes.ErrGRPCLeaderChanged), history.Unknown},
		{"server stopped", server(rpctypes.ErrGRPCStopped), history.Unknown},
		{"connection lost", status.Error(codes.Unavailable, "transport is closing"), history.Unknown},
		{"exhausted, without a word of etcd's", status.Error(codes.ResourceExhausted, "received message larger than max"), history.Unknown},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := OutcomeOf(test.err); got != test.want {
				t.Errorf("OutcomeOf(%v) = %s, want %s", test.err, got, test.want)
			}
			if test.err == nil {
				return
			}
			if got := OutcomeUnknown(Crossing(test.err)); got != (test.want == history.Unknown) {
				t.Errorf("after crossing, OutcomeUnknown(%v) = %v, want %v", test.err, got, !got)
			}
		})
	}
}

func TestACrossedErrorAnswersAsTheOriginalDoes(t *testing.T) {
	moved := &client.MovedError{Endpoint: "10.0.0.1:2379", Reason: "no-quorum", Mutation: true, Sent: true, Method: "/etcdserverpb.KV/Put"}
	originals := []error{
		context.DeadlineExceeded,
		fmt.Errorf("get: %w", context.Canceled),
		rpctypes.Error(rpctypes.ErrGRPCTimeout),
		rpctypes.ErrGRPCNoLeader, // of an attempt: gRPC's own
		status.Error(codes.Unavailable, "transport is closing"),
		&client.CallError{Method: "/etcdserverpb.KV/Put", Endpoint: "10.0.0.1:2379", Grade: "suspect", Sent: true, Err: context.DeadlineExceeded},
		moved,
	}
	targets := []error{
		context.DeadlineExceeded, context.Canceled, rpctypes.ErrTimeout, rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged,
	}
	for _, err := range originals {
		got := cross(t, err)
		if got.Error() != err.Error() {
			t.Errorf("text %q, want %q", got, err)
		}
		if s, ok := status.FromError(err); ok && status.Code(got) != s.Code() {
			t.Errorf("%v: code %v after crossing, want %v", err, status.Code(got), s.Code())
		}
		for _, target := range targets {
			// workload asks this way too, about an attempt's error.
			known := errors.Is(rpctypes.Error(err), target)
			if is, in := errors.Is(got, target), errors.Is(rpctypes.Error(got), target); is != known || in != known {
				t.Errorf("%v: is it %v: %v after crossing, %v as etcd's error, want %v", err, target, is, in, known)
			}
		}
	}
	if e := Crossing(cross(t, moved)); !e.Moved || e.Reason != "no-quorum" || e.Code != codes.Aborted {
		t.Errorf("a moved call crossed as %+v; want it moved for no-quorum, code Aborted", e)
	}
	if Crossing(nil) != nil {
		t.Error("no error became one by crossing")
	}
}

func TestDroppedProposalIsKnownAfterCrossing(t *testing.T) {
	err := status.Error(codes.Unknown, "raft proposal dropped")
	if text := Crossing(err).Error(); !workload.ProposalDropped(text) {
		t.Errorf("%v crossed as %q, which is no dropped proposal any more", err, text)
	}
}
