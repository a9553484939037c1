package client

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/picker"
)

// repeats are the attempts at one transaction that only reads. gRPC's retry policy goes by
// the method, and may not repeat transactions that write: so those that do not are
// repeated here, as often and as patiently as it repeats every other read.
type repeats struct {
	done int
	wait time.Duration
}

const (
	repeatFirst = 20 * time.Millisecond // as retryInitial
	repeatMost  = 250 * time.Millisecond
)

// again waits before another attempt, and says whether there should be one.
func (r *repeats) again(ctx context.Context, class picker.Class, method string, err error) bool {
	if class != picker.ClassRead || method != methodTxn || status.Code(err) != codes.Unavailable || r.done == retryAttempts-1 {
		return false
	}
	r.done++
	r.wait = min(max(retryMultiplier*r.wait, repeatFirst), repeatMost)
	timer := time.NewTimer(time.Duration((0.8 + 0.4*rand.Float64()) * float64(r.wait)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
