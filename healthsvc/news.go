package healthsvc

import "time"

// Status is what a follower knows of a service.
type Status int

const (
	// StatusUnknown: nothing heard yet, or nothing for so long that the last word has expired.
	// Left by the next answer.
	StatusUnknown Status = iota
	// StatusServing: the last answer was SERVING.
	StatusServing
	// StatusNotServing: the last answer was NOT_SERVING, or a status this package does not know.
	StatusNotServing
	// StatusAbsent: something answers, but it has no such service: Unimplemented, NotFound,
	// SERVICE_UNKNOWN, or not gRPC at all. It is then looked at rarely; left by the first answer
	// that has the service.
	StatusAbsent
)

// String returns the status in lower case.
func (s Status) String() string {
	switch s {
	case StatusUnknown:
		return "unknown"
	case StatusServing:
		return "serving"
	case StatusNotServing:
		return "not-serving"
	case StatusAbsent:
		return "absent"
	default:
		return "invalid"
	}
}

// News is what a follower tells: everything that is known of the followed service at that moment.
type News struct {
	Status   Status
	Reason   Reason    // with that status; empty: none was given
	Identity Identity  // who answered last; zero fields are not known
	Since    time.Time // when Status last changed
	Heard    time.Time // when the last answer arrived, pushed or polled; zero: none yet
	Began    time.Time // when the call that gave that answer began; of a push, its arrival

	// What the server says beside the status, as of the newest answer that had headers.
	ProofAge time.Duration // age of the member's proof when the answer was made; zero: not said, there is no proof yet; else at least 1 ms
	ShimRTT  time.Duration // round trip of the member's proofs; zero: not said
	Poll     time.Duration // how often it wishes to be polled; zero: as often as FollowConfig.Poll

	Missed int   // polls in a row that got no answer in their deadline; 0 after any answer
	Err    error // the last failure while Missed > 0 or Status is StatusAbsent
}
