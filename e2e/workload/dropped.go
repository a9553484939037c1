package workload

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// droppedText is raft's error for a proposal that the asked member's own raft
// refused: it was handing its leadership over, had been removed, or had too much that
// is not committed. In every such case the refusal comes before the entry is appended
// to the member's log or sent to the leader; where it is forwarded, no answer of the
// leader's refusal ever comes back and the call runs into its deadline. etcd passes
// the error on as a status of code Unknown.
var droppedText = status.Error(codes.Unknown, "raft proposal dropped").Error()

// ProposalDropped says of an error's text that the asked member's raft refused a
// proposal. Members do so where the leader is about to hand over: what is sent to
// another member then is forwarded to the same leader, and dropped without a word.
// It goes by the text because etcd gives this refusal no error of its own, and
// histories keep no more.
func ProposalDropped(text string) bool { return text == droppedText }
