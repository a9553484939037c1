package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var (
	// ErrLearner: the member has no vote and so refuses what was asked of it.
	// It ends when the member is promoted.
	ErrLearner = errors.New("the member is a learner: promote it, or ask a voter")
	// ErrNoLeader: the member knows of no leader. It ends with an election.
	ErrNoLeader = errors.New("the member knows of no leader")
	// ErrStopped: the member is shutting down, or was removed from its cluster.
	ErrStopped = errors.New("the member is stopping")
	// ErrNotEtcd: something answered that does not speak the etcd v3 API.
	ErrNotEtcd = errors.New("not an etcd server: give the address of etcd's client URL")
	// ErrAuth: the member asks for credentials, or does not accept those given. Only
	// Members returns it: to Prove and Read such a refusal is an answer.
	ErrAuth = errors.New("the member asks for other credentials")
)

// CallError tells which call to which address failed. errors.Is sees the
// sentinel that it means, if any, and the gRPC status that the server gave.
type CallError struct {
	Address string // as dialled; empty when the connection does not tell
	Call    string // what was asked for, in words
	Err     error
}

// Error names the call, the address and the cause.
func (e *CallError) Error() string {
	if e.Address == "" {
		return fmt.Sprintf("membership: %s: %v", e.Call, e.Err)
	}
	return fmt.Sprintf("membership: %s at %s: %v", e.Call, e.Address, e.Err)
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// authRefusals are etcd's refusals for want of permission. In Range each comes
// after the read-index round, never before it.
var authRefusals = []error{
	rpctypes.ErrGRPCUserEmpty,
	rpctypes.ErrGRPCPermissionDenied,
	rpctypes.ErrGRPCInvalidAuthToken,
	rpctypes.ErrGRPCAuthOldRevision,
}

// meaning returns the sentinel for what a server answered, nil when it means
// nothing more than its status. This is the one place that reads texts: etcd
// distinguishes these answers by nothing else, and the codes changed between its
// minor versions (a learner refuses with Unavailable in 3.5, FailedPrecondition
// later).
func meaning(err error) error {
	s, ok := status.FromError(err)
	if !ok || s.Code() == codes.OK {
		return nil
	}
	switch text := s.Message(); {
	case sameText(text, rpctypes.ErrGRPCNotSupportedForLearner):
		return ErrLearner
	case sameText(text, rpctypes.ErrGRPCNoLeader):
		return ErrNoLeader
	case sameText(text, rpctypes.ErrGRPCStopped):
		return ErrStopped
	case slices.ContainsFunc(authRefusals, func(r error) bool { return sameText(text, r) && s.Code() == status.Code(r) }):
		return ErrAuth
	case s.Code() == codes.Unimplemented, alienText(text):
		return ErrNotEtcd
	}
	return nil
}

func sameText(text string, known error) bool {
	return text == status.Convert(known).Message()
}

// alienText tells whether gRPC met something that is not gRPC, or whose bytes
// are not the messages asked for.
func alienText(text string) bool {
	for _, sign := range []string{
		"unexpected HTTP status code", // a web server that speaks HTTP/2
		"invalid content-type",        // the same, with status 200
		"HTTP/1.1 header",             // a web server that does not
		"failed to unmarshal",         // other messages, or broken ones
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// explain wraps a failure of a call. The context's own end stays visible as
// context.DeadlineExceeded or context.Canceled, a deadline also where the server,
// which knows it from the caller, told it a moment before the context did.
func explain(ctx context.Context, address, call string, err error) error {
	if sentinel := meaning(err); sentinel != nil {
		err = fmt.Errorf("%w (%w)", sentinel, err)
	} else if cause := ctx.Err(); cause != nil {
		err = fmt.Errorf("%w (%w)", cause, err)
	} else if _, bounded := ctx.Deadline(); bounded && status.Code(err) == codes.DeadlineExceeded {
		err = fmt.Errorf("%w (%w)", context.DeadlineExceeded, err)
	}
	return &CallError{Address: address, Call: call, Err: err}
}
