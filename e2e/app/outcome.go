//go:build linux

package app

import (
	"errors"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/history"
)

// dropped is the text of raft's error for a proposal that the asked member's own
// raft refused: it had no leader, was handing its leadership over, or had too much
// that is not committed. In every such case the refusal comes before the entry is
// appended to the member's log or sent to the leader; where it is forwarded, no
// answer of the leader's refusal ever comes back and the call runs into its
// deadline. etcd passes the error on as a status of code Unknown.
const dropped = "raft proposal dropped"

// ProposalDropped says of an error's text that the asked member's raft refused a
// proposal. Members do so where the leader is about to hand over: what is sent to
// another member then is forwarded to the same leader, and dropped without a word.
// It goes by the text because etcd gives this refusal no error of its own, and
// histories keep no more.
func ProposalDropped(text string) bool { return text == droppedText }

var droppedText = status.Error(codes.Unknown, dropped).Error()

// refusals are what etcd's servers answer before they propose anything.
//
// "No space" is not among them: besides being refused up front, a request that is
// applied where the quota is just exceeded takes effect and is answered with it.
var refusals = []error{
	rpctypes.ErrTooManyRequests,
	rpctypes.ErrRequestTooLarge,
	rpctypes.ErrTooManyOps,
	rpctypes.ErrEmptyKey,
	rpctypes.ErrDuplicateKey,
	rpctypes.ErrInvalidAuthToken,
}

// OutcomeOf says what the error of a mutation means for the store. Refused is only
// what certainly was not applied and never will be; anything that does not say so
// is Unknown.
func OutcomeOf(err error) history.Outcome {
	switch {
	case err == nil:
		return history.Done
	case unsent(err) || rpctypes.ErrorDesc(err) == dropped:
		return history.Refused
	case slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(rpctypes.Error(err), r) }):
		return history.Refused
	default:
		return history.Unknown
	}
}

// unsent says that quorumwise's client vouches that the request never left.
func unsent(err error) bool {
	var moved *client.MovedError
	if errors.As(err, &moved) {
		return !moved.Sent
	}
	var explained *client.CallError
	return errors.As(err, &explained) && !explained.Sent
}

// OutcomeUnknown reports whether the error of a mutation, fresh or crossed, leaves
// its outcome open. It fits workload.Measure.
func OutcomeUnknown(err error) bool {
	var crossed *Error
	if errors.As(err, &crossed) {
		return crossed.Unknown
	}
	return OutcomeOf(err) == history.Unknown
}
