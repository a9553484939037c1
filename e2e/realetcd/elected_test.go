//go:build linux

package realetcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/e2e/workload"
)

// undecided says of the error of a mutation that it has reached a member, and that a change of
// leader met it there: whether it happened is open. Clients do not send it again.
func undecided(err error) bool {
	return err != nil && (workload.ProposalDropped(err.Error()) || slices.ContainsFunc([]error{
		rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost,
	}, func(e error) bool { return errors.Is(err, e) }))
}

// delivered sends a mutation once: it reaches a member, whatever happens there.
func delivered(send, settle func() error) error {
	if err := send(); !undecided(err) {
		return err
	}
	return settle()
}

// done sends a mutation until it has happened.
func done(send, settle func() error) error {
	for {
		err := send()
		if !undecided(err) {
			return err
		}
		if err := settle(); err != nil {
			return err
		}
	}
}

// settles waits for a leader.
func settles(ctx context.Context, c *Cluster) func() error {
	return func() error { return c.Settled(ctx, 200*time.Millisecond) }
}

func TestOnlyAChangeOfLeaderLeavesAMutationUndecided(t *testing.T) {
	for _, row := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{rpctypes.Error(status.Error(codes.Unknown, "raft proposal dropped")), true},
		{rpctypes.ErrTimeout, true},
		{rpctypes.ErrTimeoutDueToLeaderFail, true},
		{fmt.Errorf("put: %w", rpctypes.ErrTimeoutDueToConnectionLost), true},
		{rpctypes.Error(status.Error(codes.Unavailable, "connection refused")), false}, // it may have reached nobody
		{status.Error(codes.DeadlineExceeded, "too late"), false},
		{context.DeadlineExceeded, false},
		{rpctypes.ErrNoSpace, false},
		{rpctypes.ErrStopped, false},
	} {
		sent, settled := 0, 0
		send := func() error {
			if sent++; sent < 3 {
				return row.err
			}
			return nil
		}
		settle := func() error { settled++; return nil }
		if got := undecided(row.err); got != row.want {
			t.Errorf("undecided(%v) = %v, want %v", row.err, got, row.want)
		}
		once, want := delivered(send, settle), row.err
		if row.want {
			want = nil
		}
		if !errors.Is(once, want) || sent != 1 || settled > 0 != row.want {
			t.Errorf("%v: delivered = %v after %d times, waited for a leader %d times; want %v after one, waited: %v", row.err, once, sent, settled, want, row.want)
		}
		sent, settled = 0, 0
		times := 1
		if row.want {
			times = 3
		}
		if got := done(send, settle); !errors.Is(got, want) || sent != times || settled != times-1 {
			t.Errorf("%v: done = %v after %d times, waited for a leader %d times; want %v after %d", row.err, got, sent, settled, want, times)
		}
	}
	gone := errors.New("no leader")
	for name, send := range map[string]func(send, settle func() error) error{"delivered": delivered, "done": done} {
		err := send(func() error { return rpctypes.ErrTimeout }, func() error { return gone })
		if !errors.Is(err, gone) {
			t.Errorf("%s = %v where no leader is found; want %v", name, err, gone)
		}
	}
}
