package sidecar

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/test/bufconn"
)

// etcd is as much of a member as a shim asks, in memory. While it is down its address refuses.
type etcd struct {
	pb.UnimplementedKVServer
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer

	mu  sync.Mutex
	lis *bufconn.Listener // nil while it is down
}

var errRefused = errors.New("connection refused")

func (e *etcd) dial(ctx context.Context, _ string) (net.Conn, error) {
	e.mu.Lock()
	lis := e.lis
	e.mu.Unlock()
	if lis == nil {
		return nil, errRefused
	}
	return lis.DialContext(ctx)
}

// start makes the member answer until the test ends.
func (e *etcd) start(t *testing.T, creds credentials.TransportCredentials) {
	t.Helper()
	var opts []grpc.ServerOption
	if creds != nil {
		opts = append(opts, grpc.Creds(creds))
	}
	g := grpc.NewServer(opts...)
	pb.RegisterKVServer(g, e)
	pb.RegisterClusterServer(g, e)
	pb.RegisterMaintenanceServer(g, e)
	e.mu.Lock()
	e.lis = bufconn.Listen(1 << 16)
	lis := e.lis
	e.mu.Unlock()
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(lis) })
	t.Cleanup(func() { g.Stop(); serving.Wait() })
}

func header() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: 0xc1, MemberId: 0xa1, RaftTerm: 7, Revision: 1}
}

func (e *etcd) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: header()}, nil
}

func (e *etcd) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Header: header(), Members: []*pb.Member{{ID: 0xa1, Name: "a"}}}, nil
}

func (e *etcd) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: header(), Leader: 0xa1, RaftTerm: 7, RaftIndex: 10, RaftAppliedIndex: 10, Version: "3.7.3"}, nil
}
