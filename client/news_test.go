package client

import (
	"testing"

	"github.com/quorumwise/quorumwise/picker"
	"github.com/quorumwise/quorumwise/prober"
)

// The reason why a slow member is out of use changes many times a second, for
// each of a process's clients.
func TestReasonThatChangesWakesNobody(t *testing.T) {
	a := &Attachment{hub: picker.NewHub(), wake: make(chan struct{}, 1), vanished: make(vanished)}
	defer a.hub.Close()
	for _, row := range []struct {
		name  string
		now   prober.Snapshot
		wakes bool
	}{
		{"the first", prober.Snapshot{Term: 1, Leader: 2, Verdicts: []prober.Verdict{{Address: "a", Grade: unhealthy, Reason: prober.ReasonProofFailed}}}, true},
		{"a reason", prober.Snapshot{Term: 1, Leader: 2, Verdicts: []prober.Verdict{{Address: "a", Grade: unhealthy, Reason: prober.ReasonSettling}}}, false},
		{"a grade", prober.Snapshot{Term: 1, Leader: 2, Verdicts: []prober.Verdict{{Address: "a", Grade: healthy}}}, true},
		{"a leader", prober.Snapshot{Term: 1, Leader: 3, Verdicts: []prober.Verdict{{Address: "a", Grade: healthy}}}, true},
		{"a term", prober.Snapshot{Term: 2, Leader: 3, Verdicts: []prober.Verdict{{Address: "a", Grade: healthy}}}, true},
		{"an endpoint", prober.Snapshot{Term: 2, Leader: 3, Verdicts: []prober.Verdict{{Address: "b", Grade: healthy}}}, true},
		{"nothing", prober.Snapshot{Term: 2, Leader: 3, Verdicts: []prober.Verdict{{Address: "b", Grade: healthy}}}, false},
	} {
		a.onVerdicts(&row.now)
		woke := len(a.wake) > 0
		if woke {
			<-a.wake
		}
		if woke != row.wakes {
			t.Errorf("%s changed: the loop was woken: %v, want %v", row.name, woke, row.wakes)
		}
	}
}
