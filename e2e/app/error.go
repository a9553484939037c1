//go:build linux

package app

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/history"
)

// Error is an error as it crosses from the process: what can be asked of the
// original, as text and flags.
type Error struct {
	Text     string     // of the whole error
	Code     codes.Code // gRPC's
	Desc     string     // the message of its gRPC status
	Unknown  bool       // of a mutation: it may have been applied (OutcomeOf)
	Deadline bool       // errors.Is finds context.DeadlineExceeded
	Canceled bool       // errors.Is finds context.Canceled
	Moved    bool       // it is a client.MovedError
	Reason   string     // of the MovedError
	Cause    bool       // it is a client.CallError: a deadline with an explanation
}

// Crossing is err as it crosses, nil for nil.
func Crossing(err error) *Error {
	if err == nil {
		return nil
	}
	var already *Error
	if errors.As(err, &already) {
		return already
	}
	s, _ := status.FromError(err) // Unknown where it is none
	e := &Error{
		Text: err.Error(), Code: s.Code(), Desc: rpctypes.ErrorDesc(err),
		Unknown:  OutcomeOf(err) == history.Unknown,
		Deadline: errors.Is(err, context.DeadlineExceeded),
		Canceled: errors.Is(err, context.Canceled),
	}
	var server rpctypes.EtcdError
	if errors.As(err, &server) { // clientv3 makes it of the server's status
		e.Code, e.Desc = server.Code(), server.Error()
	}
	var moved *client.MovedError
	if errors.As(err, &moved) {
		e.Moved, e.Reason = true, moved.Reason
	}
	var explained *client.CallError
	e.Cause = errors.As(err, &explained)
	return e
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// GRPCStatus keeps status.Code and rpctypes.Error working.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.Code, e.Desc) }

// Is finds the context's errors and those of etcd's servers.
func (e *Error) Is(target error) bool {
	switch target {
	case context.DeadlineExceeded:
		return e.Deadline
	case context.Canceled:
		return e.Canceled
	}
	server, ok := target.(rpctypes.EtcdError)
	return ok && server.Code() == e.Code && server.Error() == e.Desc
}
