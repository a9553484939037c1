package client

import (
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"
)

func TestErrorOfEtcdIsRecognisedAfterGRPCHasRetriedInVain(t *testing.T) {
	wrapped := fmt.Errorf("max retries exhausted: failed after 5 attempts: %w", rpctypes.ErrGRPCNoLeader)
	if isNoLeader(wrapped) {
		t.Fatal("a wrapped error is recognised by itself: this shows nothing")
	}
	got := bare(wrapped)
	if !errors.Is(rpctypes.Error(got), rpctypes.ErrNoLeader) || status.Code(got) != status.Code(rpctypes.ErrGRPCNoLeader) {
		t.Errorf("got %v, want what etcd said", got)
	}
	for _, same := range []error{nil, errors.New("dial"), rpctypes.ErrGRPCNoLeader, &MovedError{}} {
		if got := bare(same); got != same {
			t.Errorf("bare(%v) = %v, want it untouched", same, got)
		}
	}
}
