package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/picker"
)

func readingOp() *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte("k")}}}
}

func writingOp() *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("k")}}}
}

// A member that is stopped, or an election, ends whatever is in flight with Unavailable.
// gRPC sends reads again then, but cannot tell a transaction that only reads.
func TestOnlyTransactionsThatReadAreRepeatedOnUnavailable(t *testing.T) {
	lost := status.Error(codes.Unavailable, "etcdserver: leader changed")
	reading := &pb.TxnRequest{Success: []*pb.RequestOp{readingOp(), readingOp()}}
	writing := &pb.TxnRequest{Success: []*pb.RequestOp{readingOp(), writingOp()}}
	for _, row := range []struct {
		name     string
		req      *pb.TxnRequest
		answers  []error // the last one for ever
		patience time.Duration
		calls    int
		want     codes.Code
	}{
		{"it works", reading, []error{nil}, time.Minute, 1, codes.OK},
		{"it works the third time", reading, []error{lost, lost, nil}, time.Minute, 3, codes.OK},
		{"it never works", reading, []error{lost}, time.Minute, retryAttempts, codes.Unavailable},
		{"another error", reading, []error{status.Error(codes.PermissionDenied, "no")}, time.Minute, 1, codes.PermissionDenied},
		{"no time is left", reading, []error{lost}, 10 * time.Millisecond, 1, codes.Unavailable},
		{"it writes", writing, []error{lost, nil}, time.Minute, 1, codes.Unavailable},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &Attachment{hub: picker.NewHub(), wake: make(chan struct{}, 1)}
				defer a.hub.Close()
				ctx, cancel := context.WithTimeout(t.Context(), row.patience)
				defer cancel()
				calls := 0
				err := a.unary(ctx, methodTxn, row.req, new(pb.TxnResponse), nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					calls++
					return row.answers[min(calls, len(row.answers))-1]
				})
				if status.Code(err) != row.want || calls != row.calls {
					t.Errorf("sent %d times, ended with %v; want %d times and %v", calls, err, row.calls, row.want)
				}
			})
		})
	}
}
