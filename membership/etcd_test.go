package membership

import (
	"context"
	"net"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeEtcd answers as a test tells it. Zero fields mean a healthy follower.
type fakeEtcd struct {
	pb.UnimplementedKVServer
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedWatchServer
	pb.UnimplementedAuthServer

	linearizable, serializable error
	list, status, login, watch error
	noHeader                   bool
	token                      string // asked for by list and status; "" none
	members                    []*pb.Member
	change                     func(*pb.StatusResponse)
	statuses, logins           int
	lastRange                  *pb.RangeRequest
}

func (f *fakeEtcd) header() *pb.ResponseHeader {
	if f.noHeader {
		return nil
	}
	return &pb.ResponseHeader{ClusterId: 1, MemberId: 2, RaftTerm: 5, Revision: 77}
}

func (f *fakeEtcd) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	f.lastRange = r
	err := f.linearizable
	if r.GetSerializable() {
		err = f.serializable
	}
	if err == errHang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &pb.RangeResponse{Header: f.header()}, err
}

func (f *fakeEtcd) MemberList(ctx context.Context, _ *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	if f.list != nil {
		return nil, f.list
	}
	if err := f.permit(ctx); err != nil {
		return nil, err
	}
	members := f.members
	if members == nil {
		members = []*pb.Member{{ID: 2, Name: "b"}, {ID: 3, Name: "c", ClientURLs: []string{"http://c:2379"}}, {ID: 4, IsLearner: true}}
	}
	return &pb.MemberListResponse{Header: f.header(), Members: members}, nil
}

func (f *fakeEtcd) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	f.statuses++
	if f.status != nil {
		return nil, f.status
	}
	if err := f.permit(ctx); err != nil {
		return nil, err
	}
	r := &pb.StatusResponse{
		Header: f.header(), Version: "3.7.3", Leader: 3, RaftTerm: 5, RaftIndex: 12, RaftAppliedIndex: 11,
		Errors: []string{"memberID:3 alarm:NOSPACE"},
	}
	if f.change != nil {
		f.change(r)
	}
	return r, nil
}

func (f *fakeEtcd) permit(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	got := md.Get(rpctypes.TokenFieldNameGRPC)
	switch {
	case f.token == "" || len(got) == 1 && got[0] == f.token:
		return nil
	case len(got) == 0:
		return rpctypes.ErrGRPCUserEmpty
	}
	return rpctypes.ErrGRPCInvalidAuthToken
}

func (f *fakeEtcd) Authenticate(_ context.Context, r *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	f.logins++
	if f.login != nil {
		return nil, f.login
	}
	if r.GetName() != "root" || r.GetPassword() != "secret" {
		return nil, rpctypes.ErrGRPCAuthFailed
	}
	return &pb.AuthenticateResponse{Header: f.header(), Token: f.token}, nil
}

func (f *fakeEtcd) Watch(stream pb.Watch_WatchServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	if f.watch == errHang {
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	if f.watch != nil {
		return f.watch
	}
	if err := stream.Send(&pb.WatchResponse{Header: f.header(), Created: true, Canceled: true, CancelReason: rpctypes.ErrGRPCUserEmpty.Error()}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// serve runs f and returns a connection to it; both end with the test.
func serve(t *testing.T, f *fakeEtcd) *grpc.ClientConn {
	t.Helper()
	lis := bufconn.Listen(1 << 16)
	gs := grpc.NewServer()
	pb.RegisterKVServer(gs, f)
	pb.RegisterClusterServer(gs, f)
	pb.RegisterMaintenanceServer(gs, f)
	pb.RegisterWatchServer(gs, f)
	pb.RegisterAuthServer(gs, f)
	return serveOn(t, lis, gs.Serve, gs.Stop)
}

func serveOn(t *testing.T, lis *bufconn.Listener, serve func(net.Listener) error, stop func()) *grpc.ClientConn {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- serve(lis) }()
	conn, err := grpc.NewClient("passthrough:///member-b:2379", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		stop()
		_ = lis.Close()
		<-served
	})
	return conn
}
