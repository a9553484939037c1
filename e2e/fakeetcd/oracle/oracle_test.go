package oracle

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// seed is fixed, so that a change is judged by what it changed. Other requests find what is still
// unknown.
var seed = flag.Uint64("seed", 1, "of the random requests; 0: by chance")

// rounds is how many random requests are compared; a disk commit each makes most of the time.
const rounds = 1500

// startReal starts a real server, and returns a connection to it.
func startReal(t *testing.T) *grpc.ClientConn {
	t.Helper()
	loopback := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.UnsafeNoFsync = t.TempDir(), "fatal", true
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = loopback, loopback
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = loopback, loopback
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.TickMs, cfg.ElectionMs = 10, 100
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatalf("the real server does not start: %v", err)
	}
	t.Cleanup(etcd.Close)
	<-etcd.Server.ReadyNotify()
	return connect(t, etcd.Clients[0].Addr().String())
}

// startFake starts a fake cluster, and returns a connection to its second member: a follower.
func startFake(t *testing.T) *grpc.ClientConn {
	t.Helper()
	c := fakeetcd.New(3, fakeetcd.Options{})
	t.Cleanup(c.Close)
	return connect(t, c.Member(1).Address, c.DialOptions()...)
}

func connect(t *testing.T, address string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient("passthrough:///"+address, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ask sends a request, and returns the answer and the error as text.
func ask(ctx context.Context, conn *grpc.ClientConn, request proto.Message) (proto.Message, string) {
	var resp proto.Message
	var err error
	switch r := request.(type) {
	case *pb.PutRequest:
		resp, err = pb.NewKVClient(conn).Put(ctx, r)
	case *pb.RangeRequest:
		resp, err = pb.NewKVClient(conn).Range(ctx, r)
	case *pb.DeleteRangeRequest:
		resp, err = pb.NewKVClient(conn).DeleteRange(ctx, r)
	case *pb.TxnRequest:
		resp, err = pb.NewKVClient(conn).Txn(ctx, r)
	case *pb.CompactionRequest:
		resp, err = pb.NewKVClient(conn).Compact(ctx, r)
	case *pb.LeaseGrantRequest:
		resp, err = pb.NewLeaseClient(conn).LeaseGrant(ctx, r)
	case *pb.LeaseRevokeRequest:
		resp, err = pb.NewLeaseClient(conn).LeaseRevoke(ctx, r)
	case *pb.LeaseTimeToLiveRequest:
		resp, err = pb.NewLeaseClient(conn).LeaseTimeToLive(ctx, r)
	default:
		err = fmt.Errorf("no such request %T", request)
	}
	if err != nil {
		return nil, fmt.Sprint(status.Code(err), ": ", status.Convert(err).Message())
	}
	return resp, ""
}

// alike compares answers except for who gave them and for the life that a lease has left.
func alike(fake, real proto.Message) string {
	return cmp.Diff(real, fake, protocmp.Transform(),
		protocmp.IgnoreFields(&pb.ResponseHeader{}, "cluster_id", "member_id", "raft_term"),
		protocmp.IgnoreFields(&pb.LeaseTimeToLiveResponse{}, "TTL"),
		protocmp.SortRepeatedFields(&pb.LeaseTimeToLiveResponse{}, "keys"))
}

func TestFakeAnswersAsARealServerDoes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", *seed)
	real, fake := startReal(t), startFake(t)
	random := &requests{rand.New(rand.NewPCG(*seed, 1))}
	start := int64(1) // of what has not been compacted
	for i := range rounds {
		request := random.next()
		wantResp, wantErr := ask(ctx, real, request)
		gotResp, gotErr := ask(ctx, fake, request)
		if gotErr != wantErr {
			t.Fatalf("request %d, %T %v:\n got error %q\nwant error %q", i, request, request, gotErr, wantErr)
		}
		if gotErr != "" {
			continue
		}
		if r, ok := request.(*pb.CompactionRequest); ok {
			start = r.Revision + 1
		}
		if diff := alike(gotResp, wantResp); diff != "" {
			t.Fatalf("request %d, %T %v (-real +fake):\n%s", i, request, request, diff)
		}
	}
	compareHistories(ctx, t, fake, real, start)
}

// compareHistories compares what a watch of everything, with previous values, delivers.
func compareHistories(ctx context.Context, t *testing.T, fake, real *grpc.ClientConn, start int64) {
	t.Helper()
	head, err := pb.NewKVClient(real).Range(ctx, &pb.RangeRequest{Key: []byte("nothing")})
	if err != nil {
		t.Fatal(err)
	}
	want := history(ctx, t, real, start, head.Header.Revision)
	got := history(ctx, t, fake, start, head.Header.Revision)
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("watch from revision %d (-real +fake):\n%s", start, diff)
	}
}

func history(ctx context.Context, t *testing.T, conn *grpc.ClientConn, first, last int64) []*mvccpb.Event {
	t.Helper()
	stream, err := pb.NewWatchClient(conn).Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	create := &pb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0}, StartRevision: first, PrevKv: true}
	if err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
		t.Fatal(err)
	}
	var events []*mvccpb.Event
	for first <= last && (len(events) == 0 || events[len(events)-1].Kv.ModRevision < last) {
		resp, err := stream.Recv()
		if err != nil || resp.Canceled {
			t.Fatalf("watch from %d: %v, %v", first, resp, err)
		}
		events = append(events, resp.Events...)
	}
	return events
}

// requests makes random requests over few keys, so that they meet.
type requests struct{ *rand.Rand }

func (r *requests) next() proto.Message {
	switch n := r.IntN(100); {
	case n < 35:
		return r.put()
	case n < 60:
		return r.read()
	case n < 70:
		return r.remove()
	case n < 90:
		return r.txn(0)
	case n < 92:
		return &pb.CompactionRequest{Revision: int64(r.IntN(400))}
	case n < 95:
		return &pb.LeaseGrantRequest{ID: r.lease() + 1, TTL: 1000}
	case n < 97:
		return &pb.LeaseRevokeRequest{ID: r.lease() + 1}
	default:
		return &pb.LeaseTimeToLiveRequest{ID: r.lease() + 1, Keys: true}
	}
}

func (r *requests) key() []byte { return []byte(fmt.Sprintf("k%d", r.IntN(8))) }

// end returns the end of a range: mostly none, else some key, or everything.
func (r *requests) end() []byte {
	switch r.IntN(4) {
	case 0:
		return r.key()
	case 1:
		return []byte{0}
	default:
		return nil
	}
}

func (r *requests) lease() int64 { return int64(r.IntN(4)) }

func (r *requests) put() *pb.PutRequest {
	p := &pb.PutRequest{Key: r.key(), Value: fmt.Appendf(nil, "v%d", r.IntN(100)), PrevKv: r.IntN(2) == 0}
	switch r.IntN(8) {
	case 0, 1:
		p.Lease = r.lease()
	case 2:
		p.IgnoreValue, p.Value = true, nil
	case 3:
		p.IgnoreLease = true
	}
	return p
}

func (r *requests) read() *pb.RangeRequest {
	q := &pb.RangeRequest{
		Key: r.key(), RangeEnd: r.end(), Serializable: r.IntN(2) == 0,
		KeysOnly: r.IntN(5) == 0, CountOnly: r.IntN(5) == 0, Limit: int64(max(0, r.IntN(6)-2)),
		SortOrder:  pb.RangeRequest_SortOrder(r.IntN(3)),
		SortTarget: pb.RangeRequest_SortTarget(r.IntN(5)),
	}
	if r.IntN(4) == 0 {
		q.Revision = int64(r.IntN(1200))
	}
	if r.IntN(4) == 0 {
		q.MinModRevision, q.MaxModRevision = int64(r.IntN(300)), int64(r.IntN(1000))
		q.MinCreateRevision, q.MaxCreateRevision = int64(r.IntN(300)), int64(r.IntN(1000))
	}
	return q
}

func (r *requests) remove() *pb.DeleteRangeRequest {
	return &pb.DeleteRangeRequest{Key: r.key(), RangeEnd: r.end(), PrevKv: r.IntN(2) == 0}
}

func (r *requests) txn(depth int) *pb.TxnRequest {
	tx := &pb.TxnRequest{}
	for range r.IntN(3) {
		tx.Compare = append(tx.Compare, r.compare())
	}
	tx.Success, tx.Failure = r.ops(depth), r.ops(depth)
	return tx
}

// ops returns the operations of one branch. No key is put twice: that is refused before anything
// is applied, and the fake does not check it.
func (r *requests) ops(depth int) []*pb.RequestOp {
	ops := []*pb.RequestOp{}
	for i := range r.IntN(4) {
		switch n := r.IntN(10); {
		case n < 4:
			put := r.put()
			put.Key = fmt.Appendf(nil, "k%d", i+4*depth) // of its own
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}})
		case n < 8:
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r.read()}})
		case n < 9 && i+depth == 0:
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: r.txn(depth + 1)}})
		}
	}
	return ops
}

func (r *requests) compare() *pb.Compare {
	c := &pb.Compare{Key: r.key(), Result: pb.Compare_CompareResult(r.IntN(4)), Target: pb.Compare_CompareTarget(r.IntN(5))}
	if r.IntN(4) == 0 {
		c.RangeEnd = r.end()
	}
	switch c.Target {
	case pb.Compare_VERSION:
		c.TargetUnion = &pb.Compare_Version{Version: int64(r.IntN(4))}
	case pb.Compare_CREATE:
		c.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: int64(r.IntN(600))}
	case pb.Compare_MOD:
		c.TargetUnion = &pb.Compare_ModRevision{ModRevision: int64(r.IntN(600))}
	case pb.Compare_VALUE:
		c.TargetUnion = &pb.Compare_Value{Value: fmt.Appendf(nil, "v%d", r.IntN(100))}
	case pb.Compare_LEASE:
		c.TargetUnion = &pb.Compare_Lease{Lease: r.lease()}
	}
	return c
}
