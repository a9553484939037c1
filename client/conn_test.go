package client_test

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

func newKVClient(conn *grpc.ClientConn) pb.KVClient { return pb.NewKVClient(conn) }
