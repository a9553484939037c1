package workload

import (
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestDroppedProposalIsKnownByItsWholeText(t *testing.T) {
	for _, row := range []struct {
		err  error
		want bool
	}{
		{status.Error(codes.Unknown, "raft proposal dropped"), true},
		{rpctypes.Error(status.Error(codes.Unknown, "raft proposal dropped")), true}, // as clientv3 returns it
		{status.Error(codes.Unavailable, "raft proposal dropped"), false},
		{status.Error(codes.Unknown, "raft: stopped"), false},
		{errors.New("raft proposal dropped"), false},
		{rpctypes.ErrNoLeader, false},
	} {
		if got := ProposalDropped(row.err.Error()); got != row.want {
			t.Errorf("ProposalDropped(%q) = %v, want %v", row.err, got, row.want)
		}
	}
}
