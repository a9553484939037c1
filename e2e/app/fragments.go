//go:build linux

package app

import (
	"context"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/e2e/workload"
)

// fragments counts the pieces of responses that are more than one message. The client
// puts them together again: whoever watches cannot tell that there were any.
type fragments struct{ n atomic.Int64 }

func (f *fragments) dialOption() grpc.DialOption { return grpc.WithChainStreamInterceptor(f.stream) }

func (f *fragments) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, cc, method, opts...)
	if err != nil || method != workload.MethodWatch {
		return s, err
	}
	return &countedStream{s, f}, nil
}

type countedStream struct {
	grpc.ClientStream
	fragments *fragments
}

func (s *countedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if resp, ok := m.(*pb.WatchResponse); ok && err == nil && resp.GetFragment() {
		s.fragments.n.Add(1)
	}
	return err
}
