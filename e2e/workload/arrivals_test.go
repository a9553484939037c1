package workload

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestArrivalsCountPutsByValue(t *testing.T) {
	a := new(Arrivals)
	if a.Counts() == nil {
		t.Error("counts before the first request are nil; want an empty map: nil says that nobody counted")
	}
	for range 2 {
		a.Add(&pb.PutRequest{Value: []byte("x")})
	}
	a.Add(&pb.RangeRequest{})
	if got := a.Counts(); len(got) != 1 || got["x"] != 2 {
		t.Errorf("counts %v; want x twice and nothing else", got)
	}
}
