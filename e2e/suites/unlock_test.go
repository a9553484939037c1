//go:build linux

package suites

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/client"
)

func TestUnlockFindsWhatIsPlanted(t *testing.T) {
	moved := &client.MovedError{Mutation: true, Sent: true, Reason: "no-quorum"}
	const ms = time.Millisecond
	ends := func(err error) func(*unlocking) { return func(u *unlocking) { u.outcome = err } }
	for _, c := range []struct {
		name  string
		plant func(*unlocking)
		want  string
	}{
		{"done", func(*unlocking) {}, ""},
		{"its outcome is unknown", ends(moved), ""},
		{"its outcome is unknown, wrapped", ends(fmt.Errorf("unlock: %w", moved)), ""},
		{"late", func(u *unlocking) { u.took = time.Second }, lateClaim + "unlock took 1s"},
		{"a plain error", ends(errors.New("it broke")), brokenClaim + "unlock ended with it broke"},
		{"a bare deadline", ends(context.DeadlineExceeded), brokenClaim + "unlock ended with context deadline exceeded"},
		{"a lost connection", ends(status.Error(codes.Unavailable, "transport is closing")), brokenClaim + "unlock ended with "},
		{"the server's timeout", ends(rpctypes.Error(rpctypes.ErrGRPCTimeout)), brokenClaim + "unlock ended with etcdserver: request timed out"},
		{"never sent", ends(&client.MovedError{Mutation: true}), brokenClaim + "unlock ended with "},
		{"refused", ends(rpctypes.Error(rpctypes.ErrGRPCRequestTooManyRequests)), brokenClaim + "unlock ended with etcdserver: too many requests"},
		{"the lock is free as the lease ends", func(u *unlocking) { u.free = lockedTTL + 1900*ms }, ""},
		{"the lock is free too late", func(u *unlocking) { u.free = lockedTTL + 2*time.Second }, lateClaim + "a second client got the lock after 7s"},
		{"the lock is not got", func(u *unlocking) { u.next = context.DeadlineExceeded }, lateClaim + "a second client got the lock after 400ms (error context deadline exceeded)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := unlocking{took: 300 * ms, free: 400 * ms}
			c.plant(&u)
			found(t, remarks(func(st *Stage) { st.judgeUnlock(u) }), c.want)
		})
	}
}
