package prober

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/membership"
)

// ask makes one call on a connection and says what became of it.
func ask(ctx context.Context, conn grpc.ClientConnInterface, what do) outcome {
	heard := &hearing{ClientConnInterface: conn}
	switch what {
	case doCheck:
		return check(ctx, heard)
	case doProve:
		err := membership.NewRemote(heard).Prove(ctx)
		return outcome{result: proofResult(ctx, err, heard.answered())}
	case doObserve:
		self, err := membership.NewRemote(heard).Observe(ctx)
		if err != nil {
			return outcome{result: resultNothing}
		}
		return outcome{result: resultAnswered, self: self}
	}
	return outcome{result: resultNothing}
}

// check asks etcd's health service whether it serves and knows a leader. Stock servers
// answer that without asking their peers.
func check(ctx context.Context, heard *hearing) outcome {
	ctx = metadata.AppendToOutgoingContext(ctx, rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader)
	resp, err := healthpb.NewHealthClient(heard).Check(ctx, &healthpb.HealthCheckRequest{})
	switch code := status.Code(err); {
	case err == nil && resp.GetStatus() == healthpb.HealthCheckResponse_SERVING:
		return outcome{result: resultAnswered, answer: answerOK}
	case err == nil:
		return outcome{result: resultAnswered, answer: answerNotServing}
	case says(err, rpctypes.ErrGRPCNoLeader):
		return outcome{result: resultAnswered, answer: answerNoLeader}
	case says(err, rpctypes.ErrGRPCNotSupportedForLearner):
		return outcome{result: resultAnswered, answer: answerLearner}
	case code == codes.Unavailable && heard.answered():
		return outcome{result: resultAnswered, answer: answerNotServing}
	case code == codes.Unavailable:
		return outcome{result: resultBroken}
	case ctx.Err() != nil, code == codes.DeadlineExceeded, code == codes.Canceled:
		return outcome{result: resultSilent}
	default: // no such service, no permission, too many requests: the path and the process live
		return outcome{result: resultAnswered, answer: answerOK}
	}
}

// proofResult weighs the error of a proof.
func proofResult(ctx context.Context, err error, answered bool) result {
	switch code := status.Code(err); {
	case err == nil:
		return resultAnswered
	case errors.Is(err, membership.ErrNoLeader):
		return resultNoLeader
	case errors.Is(err, membership.ErrLearner):
		return resultNothing
	case ctx.Err() != nil:
		return resultSilent
	case code == codes.Unauthenticated, code == codes.PermissionDenied:
		// Not etcd's own words, which count as a proof because they come after consensus; but an
		// endpoint whose every proof is refused must be able to return.
		return resultAnswered
	case code == codes.ResourceExhausted:
		return resultRefused
	case code == codes.Unavailable && !answered:
		return resultNothing // the check tells whether the path is dead
	default:
		return resultFailed
	}
}

// says reports whether a server answered with one of etcd's errors. etcd distinguishes
// them by text alone, and the codes differ between its minor versions.
func says(err, known error) bool {
	return status.Convert(err).Message() == status.Convert(known).Message()
}

// hearing is a connection that notes whether a server answered: gRPC reports a dead
// connection and a server's Unavailable alike.
type hearing struct {
	grpc.ClientConnInterface
	header, trailer metadata.MD
}

// Invoke implements grpc.ClientConnInterface.
func (h *hearing) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	opts = append(opts[:len(opts):len(opts)], grpc.Header(&h.header), grpc.Trailer(&h.trailer))
	return h.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

func (h *hearing) answered() bool { return len(h.header)+len(h.trailer) > 0 }
