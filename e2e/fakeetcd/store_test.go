package fakeetcd

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// put stores a key as an entry of its own.
func put(s *store, key, value string) int64 {
	w := s.begin()
	w.put(key, []byte(value), 0)
	return w.end()
}

func keysOf(resp *pb.RangeResponse) []string {
	keys := []string{}
	for _, kv := range resp.Kvs {
		keys = append(keys, string(kv.Key)+"="+string(kv.Value))
	}
	return keys
}

func TestStoreReadsThePast(t *testing.T) {
	s := newStore()
	first := put(s, "a", "1")
	put(s, "b", "1")
	w := s.begin()
	w.remove([]byte("a"), []byte("c"))
	w.put("a", []byte("3"), 0)
	last := w.end()
	for name, c := range map[string]struct {
		request *pb.RangeRequest
		want    []string
	}{
		"newest":                   {&pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z")}, []string{"a=3"}},
		"at the first revision":    {&pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), Revision: first}, []string{"a=1"}},
		"before the last revision": {&pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, Revision: last - 1}, []string{"a=1", "b=1"}},
		"one key":                  {&pb.RangeRequest{Key: []byte("b"), Revision: last - 1}, []string{"b=1"}},
		"newest first, limited": {&pb.RangeRequest{
			Key: []byte("a"), RangeEnd: []byte("z"), Revision: last - 1, Limit: 1,
			SortTarget: pb.RangeRequest_CREATE, SortOrder: pb.RangeRequest_DESCEND,
		}, []string{"b=1"}},
		"keys only": {&pb.RangeRequest{Key: []byte("a"), KeysOnly: true}, []string{"a="}},
	} {
		resp, err := s.read(c.request, s.revision)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, keysOf(resp)); diff != "" {
			t.Errorf("%s: a lagging member would answer wrongly (-want +got):\n%s", name, diff)
		}
	}
}

func TestStoreRefusesFutureAndCompactedRevisions(t *testing.T) {
	s := newStore()
	for range 5 {
		put(s, "a", "x")
	}
	if err := s.compact(4); err != nil {
		t.Fatalf("compact(4) at revision %d: %v", s.revision, err)
	}
	for revision, want := range map[int64]error{3: rpctypes.ErrGRPCCompacted, 4: nil, 6: nil, 7: rpctypes.ErrGRPCFutureRev} {
		_, err := s.read(&pb.RangeRequest{Key: []byte("a"), Revision: revision}, s.revision)
		if !errors.Is(err, want) {
			t.Errorf("read at revision %d: got %v, want %v", revision, err, want)
		}
	}
	if err := s.compact(4); !errors.Is(err, rpctypes.ErrGRPCCompacted) {
		t.Errorf("second compact(4): got %v, want %v", err, rpctypes.ErrGRPCCompacted)
	}
}

func TestFailedTransactionLeavesNoTrace(t *testing.T) {
	s := newStore()
	put(s, "a", "1")
	before := len(s.history)
	w := s.begin()
	_, err := w.applyTxn(&pb.TxnRequest{Success: []*pb.RequestOp{
		{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("a")}}},
		{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("b"), Lease: 7}}},
	}}, func(int64) bool { return false })
	if !errors.Is(err, rpctypes.ErrGRPCLeaseNotFound) {
		t.Fatalf("got %v, want %v", err, rpctypes.ErrGRPCLeaseNotFound)
	}
	w.undo()
	revision := w.end()
	resp, err := s.read(&pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}}, s.revision)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a=1"}, keysOf(resp)); diff != "" || revision != 2 || len(s.history) != before {
		t.Errorf("revision %d and %d events, want 2 and %d (-want +got):\n%s", revision, len(s.history), before, diff)
	}
}

func TestTransactionTakesTheBranchThatItsComparisonsChoose(t *testing.T) {
	s := newStore()
	put(s, "a", "1") // revision 2
	for name, c := range map[string]struct {
		compare *pb.Compare
		want    bool
	}{
		"create revision of a missing key is 0": {&pb.Compare{Key: []byte("x"), Target: pb.Compare_CREATE,
			TargetUnion: &pb.Compare_CreateRevision{}}, true},
		"value of a missing key equals nothing": {&pb.Compare{Key: []byte("x"), Target: pb.Compare_VALUE,
			TargetUnion: &pb.Compare_Value{}}, false},
		"mod revision less": {&pb.Compare{Key: []byte("a"), Target: pb.Compare_MOD, Result: pb.Compare_LESS,
			TargetUnion: &pb.Compare_ModRevision{ModRevision: 3}}, true},
		"version greater": {&pb.Compare{Key: []byte("a"), Target: pb.Compare_VERSION, Result: pb.Compare_GREATER,
			TargetUnion: &pb.Compare_Version{Version: 1}}, false},
		"value differs": {&pb.Compare{Key: []byte("a"), Target: pb.Compare_VALUE, Result: pb.Compare_NOT_EQUAL,
			TargetUnion: &pb.Compare_Value{Value: []byte("1")}}, false},
		"every key of a range": {&pb.Compare{Key: []byte("a"), RangeEnd: []byte("b"), Target: pb.Compare_LEASE,
			TargetUnion: &pb.Compare_Lease{}}, true},
	} {
		resp, err := s.at(s.revision).applyTxn(&pb.TxnRequest{Compare: []*pb.Compare{c.compare}}, nil)
		if err != nil || resp.Succeeded != c.want {
			t.Errorf("%s: got %v and error %v, want %v", name, resp.GetSucceeded(), err, c.want)
		}
	}
}

func TestStoreKeepsEventsInOrderByRevision(t *testing.T) {
	s := newStore()
	for range 3 {
		put(s, "a", "x")
	}
	got := []int64{}
	for _, e := range s.since(3, 4) {
		got = append(got, e.Kv.ModRevision)
	}
	if diff := cmp.Diff([]int64{3, 4}, got, protocmp.Transform()); diff != "" {
		t.Errorf("events of revisions 3 to 4 (-want +got):\n%s", diff)
	}
	if more := s.since(5, 9); more != nil {
		t.Errorf("events after the newest revision: got %v, want none", more)
	}
}
