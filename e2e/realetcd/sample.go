//go:build linux

package realetcd

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// State is what a member was at a moment.
type State string

// The states, from what excludes all others on.
const (
	Stopped  State = "stopped"   // no process
	Frozen   State = "frozen"    // its process was stopped by SIGSTOP
	Mute     State = "mute"      // it does not even answer a question about itself
	Learner  State = "learner"   // it says that it has no vote
	NoLeader State = "no-leader" // it says that it knows no leader
	NoQuorum State = "no-quorum" // it names a leader, but no linearizable read completes
	Quorum   State = "quorum"    // a linearizable read completed
	Leader   State = "leader"    // likewise, and it leads
)

// Words of a shim. A not serving one is NotServing and its reason in parentheses.
const (
	ShimServing    = "serving"
	ShimNotServing = "not-serving"
	ShimSilent     = "silent" // there is one, and it does not answer
	ShimAbsent     = "none"   // there is none, or its process is not running
)

// Sample is what one member was at one moment.
type Sample struct {
	At           time.Time
	Member       string
	State        State
	Leader, Term uint64 // as the member itself says; 0: it did not
	Shim         string // serving, not-serving (reason), silent, none
}

var errNotAsked = errors.New("not asked")

// judge is the state of a running member by what it said, or why it did not, and by
// what became of a linearizable read.
func judge(said claim, mute, proof error) State {
	switch {
	case mute != nil:
		return Mute
	case said.learner:
		return Learner
	case said.leader == 0:
		return NoLeader
	case proof != nil:
		return NoQuorum
	case said.leader == said.member:
		return Leader
	default:
		return Quorum
	}
}

// shimWord is what a follower's news say.
func shimWord(n healthsvc.News) string {
	switch n.Status {
	case healthsvc.StatusServing:
		return ShimServing
	case healthsvc.StatusNotServing:
		return fmt.Sprintf("%s (%s)", ShimNotServing, n.Reason)
	case healthsvc.StatusAbsent:
		return ShimAbsent
	case healthsvc.StatusUnknown:
		return ShimSilent
	default:
		return ShimSilent
	}
}
