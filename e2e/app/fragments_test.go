//go:build linux

package app

import (
	"context"
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/e2e/workload"
)

// delivering is a stream that delivers one message after the other, then ends.
type delivering struct {
	grpc.ClientStream
	fragment []bool
}

func (d *delivering) RecvMsg(m any) error {
	if len(d.fragment) == 0 {
		return errors.New("ended")
	}
	m.(*pb.WatchResponse).Fragment, d.fragment = d.fragment[0], d.fragment[1:]
	return nil
}

func TestPiecesOfResponsesAreCounted(t *testing.T) {
	for method, want := range map[string]int64{workload.MethodWatch: 3, workload.MethodKeepAlive: 0} {
		var f fragments
		s, err := f.stream(t.Context(), nil, nil, method, func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			return &delivering{fragment: []bool{false, true, true, false, true, false}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		resp := new(pb.WatchResponse)
		for s.RecvMsg(resp) == nil {
		}
		resp.Fragment = true
		if err := s.RecvMsg(resp); err == nil {
			t.Error("the end of the stream is lost")
		}
		if got := f.n.Load(); got != want {
			t.Errorf("%s: %d pieces, want %d", method, got, want)
		}
	}
}
