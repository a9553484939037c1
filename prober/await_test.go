package prober

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// The answer of a report that is asked once more says the same as before. It has the judge rule
// all the same: the wait for it ends with it.
func TestAnswerThatChangesNothingEndsTheWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, true, "a", "b", "c")
		p := ms.prober(t, Config{})
		within(t, p, time.Second, "healthy healthy healthy")
		time.Sleep(777 * time.Millisecond)
		ms.all[0].say(false, healthsvc.ReasonNoQuorum)
		within(t, p, 10*time.Millisecond, "suspect healthy healthy")
		if took := within(t, p, 450*time.Millisecond, "unhealthy healthy healthy"); took > 305*time.Millisecond {
			t.Errorf("unhealthy after %v, want 300ms: the report answered at once when it was asked", took)
		}
	})
}
