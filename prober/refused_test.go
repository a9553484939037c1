package prober

import (
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// A member is restarted, and has too much to do to take any proof. It answers and knows a leader,
// which is no proof, but nothing else will ever bring it back.
func TestMemberThatTurnsAwayAllProofsReturnsAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, false, "a", "b", "c")
		p := ms.prober(t, Config{})
		within(t, p, 2*time.Second, "healthy healthy healthy")
		ms.all[0].link.set(linkCut)
		within(t, p, time.Second, "unhealthy healthy healthy")
		ms.all[0].set(func() { ms.all[0].refusal = rpctypes.ErrGRPCRequestTooManyRequests })
		ms.all[0].link.set(linkUp)
		stays(t, p, 55*time.Second, "unhealthy healthy healthy")
		var before int
		ms.all[0].set(func() { before = ms.all[0].proofs })
		within(t, p, 10*time.Second, "healthy healthy healthy")
		ms.all[0].set(func() {
			if n := ms.all[0].proofs - before; n > 12 {
				t.Errorf("asked for %d proofs in the last 10 s, want one a second: it has too much to do", n)
			}
		})
		stays(t, p, 10*time.Second, "healthy healthy healthy")
	})
}

// The same while its shim serves: it was our own proof that hung.
func TestMemberThatTurnsAwayAllProofsBesideItsShimReturnsAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, true, "a", "b", "c")
		p := ms.prober(t, Config{})
		within(t, p, time.Second, "healthy healthy healthy")
		ms.all[0].stall()
		p.Prove("a:2379")
		within(t, p, 2*time.Second, "unhealthy healthy healthy")
		ms.all[0].set(func() { ms.all[0].refusal = rpctypes.ErrGRPCRequestTooManyRequests })
		ms.all[0].resume()
		stays(t, p, 55*time.Second, "unhealthy healthy healthy")
		within(t, p, 20*time.Second, "healthy healthy healthy")
	})
}
