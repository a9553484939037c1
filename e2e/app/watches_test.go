//go:build linux

package app

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func TestAWatchThatWasLostBeforeItWasOpenIsTold(t *testing.T) {
	closed := fmt.Errorf("watch a/late-0 was not created: %w", errClosed)
	for _, test := range []struct {
		name   string
		err    error
		over   bool
		waited time.Duration
		want   bool
	}{
		{"it opened", nil, false, time.Second, false},
		{"it was closed while the load ran", closed, false, time.Second, true},
		{"the load ended soon after it was asked for", errors.New("canceled"), true, time.Second, false},
		{"the load ended long after it was asked for", errors.New("canceled"), true, openPatience + time.Second, true},
		{"its revision was compacted", fmt.Errorf("not created: %w", rpctypes.ErrCompacted), false, time.Second, false},
	} {
		if got := lostLate(test.err, test.over, test.waited); got != test.want {
			t.Errorf("%s: lost %t, want %t", test.name, got, test.want)
		}
	}
}
