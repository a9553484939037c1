package workload

import (
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func put(value string) *pb.PutRequest { return &pb.PutRequest{Key: []byte("k"), Value: []byte(value)} }

func putOp(value string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put(value)}}
}

func txnOp(ops ...*pb.RequestOp) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Success: ops}}}
}

func TestIdentitiesOfARequestAreTheValuesThatItPuts(t *testing.T) {
	for name, tc := range map[string]struct {
		request any
		want    []string
	}{
		"a put":                       {put("a"), []string{"a"}},
		"a put of nothing":            {put(""), nil},
		"ballast":                     {put(strings.Repeat("x", longestIdentity+1)), nil},
		"a read":                      {&pb.RangeRequest{}, nil},
		"no request":                  {(*pb.PutRequest)(nil), nil},
		"one value under two keys":    {&pb.TxnRequest{Success: []*pb.RequestOp{putOp("a"), putOp("a"), putOp("b")}}, []string{"a", "b"}},
		"either branch":               {&pb.TxnRequest{Success: []*pb.RequestOp{putOp("a")}, Failure: []*pb.RequestOp{putOp("b"), {}, nil}}, []string{"a", "b"}},
		"a transaction inside of one": {&pb.TxnRequest{Success: []*pb.RequestOp{txnOp(putOp("a"), txnOp(putOp("b")))}}, []string{"a", "b"}},
	} {
		if got := Carried(tc.request); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q; want %q", name, got, tc.want)
		}
	}
}
