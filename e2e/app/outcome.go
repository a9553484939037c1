//go:build linux

package app

import (
	"errors"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

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
	case unsent(err) || workload.ProposalDropped(err.Error()):
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
