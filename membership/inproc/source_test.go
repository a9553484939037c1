package inproc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorumwise/quorumwise/e2e/leak"
	"github.com/quorumwise/quorumwise/membership"
)

func TestMain(m *testing.M) { leak.VerifyTestMain(m, leak.Product) }

// etcd is a real member, with both kinds of source on it.
type etcd struct {
	*embed.Etcd
	conn   *grpc.ClientConn
	remote *membership.Remote
	inproc *Source
}

// start runs a member on loopback ports. cluster is empty for the first one.
func start(t *testing.T, name, cluster string, peer url.URL) *etcd {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.LogLevel = name, t.TempDir(), "panic"
	cfg.UnsafeNoFsync = true
	cfg.TickMs, cfg.ElectionMs = 10, 100
	client := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = name + "=" + peer.String()
	if cluster != "" {
		cfg.InitialCluster += "," + cluster
		cfg.ClusterState = embed.ClusterStateFlagExisting
	}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatalf("start etcd %s: %v", name, err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-soon(t).Done():
		t.Fatalf("etcd %s is not ready within %v", name, patience)
	}
	return connect(t, e)
}

func connect(t *testing.T, e *embed.Etcd) *etcd {
	t.Helper()
	conn, err := grpc.NewClient(e.Clients[0].Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &etcd{e, conn, membership.NewRemote(conn), NewSource(e.Server)}
}

// peerURL is of a port that was free a moment ago, on a loopback address that only this
// process uses, so that nobody else takes it meanwhile.
func peerURL(t *testing.T) url.URL {
	t.Helper()
	pid := os.Getpid()
	lis, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 64+pid>>16&63, pid>>8&255, pid&255))
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	return url.URL{Scheme: "http", Host: lis.Addr().String()}
}

// patience is far more than anything here takes, also beside other tests on two processors.
const patience = 30 * time.Second

// soon is a context that no call on a healthy loopback member outlives.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for something that etcd does in its own time.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

type source interface {
	Prove(context.Context) error
	Read(context.Context) error
	Observe(context.Context) (membership.Observation, error)
}

func (e *etcd) sources() map[string]source {
	return map[string]source{"remote": e.remote, "in process": e.inproc}
}

func TestSourcesAgreeOnAHealthyMember(t *testing.T) {
	e := start(t, "a", "", peerURL(t))
	for name, s := range e.sources() {
		if err := errors.Join(s.Prove(soon(t)), s.Read(soon(t))); err != nil {
			t.Errorf("%s: got %v, want a proof and a read", name, err)
		}
	}
	put(t, e)
	raise(t, e, pb.AlarmType_NOSPACE)
	eventually(t, "the indexes of both agree", func() bool {
		far, err := e.remote.Observe(soon(t))
		near, err2 := e.inproc.Observe(soon(t))
		if err != nil || err2 != nil {
			t.Fatalf("got %v, %v, want observations", err, err2)
		}
		near.Revision = far.Revision
		near.At = far.At
		same := near.RaftIndex == far.RaftIndex && near.AppliedIndex == far.AppliedIndex
		near.RaftIndex, near.AppliedIndex = far.RaftIndex, far.AppliedIndex
		if len(near.Alarms) != 1 || len(far.Alarms) != 1 || near.Alarms[0] != membership.AlarmNoSpace || far.Alarms[0] != membership.AlarmNoSpace {
			t.Fatalf("got alarms %v in process, %v remote, want NOSPACE in both", near.Alarms, far.Alarms)
		}
		near.Alarms, far.Alarms = nil, nil
		if n, f := near, far; n.Cluster != f.Cluster || n.Member != f.Member || n.Leader != f.Leader || n.Term != f.Term ||
			n.Voters != f.Voters || n.Version != f.Version || n.Learner || f.Learner || n.Removed || f.Removed || f.Leader != f.Member {
			t.Fatalf("got %+v in process and %+v remote, want the same", near, far)
		}
		return same
	})
}

func put(t *testing.T, e *etcd) {
	t.Helper()
	if _, err := pb.NewKVClient(e.conn).Put(soon(t), &pb.PutRequest{Key: []byte("k")}); err != nil {
		t.Fatalf("put: %v", err)
	}
}

func raise(t *testing.T, e *etcd, alarm pb.AlarmType) {
	t.Helper()
	if _, err := e.Server.Alarm(soon(t), &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE, MemberID: uint64(e.Server.MemberID()), Alarm: alarm,
	}); err != nil {
		t.Fatalf("raise %v: %v", alarm, err)
	}
}

// With authentication on, etcd 3.7 tells a stranger nothing but a refusal. It
// must still be seen to have a quorum, and who it is.
func TestSourcesNeedNoCredentials(t *testing.T) {
	e := start(t, "a", "", peerURL(t))
	auth := pb.NewAuthClient(e.conn)
	if _, err := auth.UserAdd(soon(t), &pb.AuthUserAddRequest{Name: "root", Password: "secret"}); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.UserGrantRole(soon(t), &pb.AuthUserGrantRoleRequest{User: "root", Role: "root"}); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.AuthEnable(soon(t), &pb.AuthEnableRequest{}); err != nil {
		t.Fatal(err)
	}
	for name, s := range e.sources() {
		if err := errors.Join(s.Prove(soon(t)), s.Read(soon(t))); err != nil {
			t.Errorf("%s: got %v, want a proof and a read: the refusal comes after consensus", name, err)
		}
		o, err := s.Observe(soon(t))
		if err != nil || o.Member != membership.ID(e.Server.MemberID()) || o.Cluster == 0 || o.Term == 0 {
			t.Errorf("%s: got %+v, %v, want the member's identity", name, o, err)
		}
	}
	if _, _, err := e.remote.Members(soon(t), false); !errors.Is(err, membership.ErrAuth) {
		t.Errorf("Members of a stranger: got %v, want ErrAuth", err)
	}
	known := membership.NewRemote(e.conn, membership.WithUser("root", "secret"))
	if o, err := known.Observe(soon(t)); err != nil || o.Leader != o.Member || o.RaftIndex == 0 || o.Voters != 1 {
		t.Errorf("as a user: got %+v, %v, want all of it", o, err)
	}
}

func TestSourcesKnowALearnerAndARemovedMember(t *testing.T) {
	first := start(t, "a", "", peerURL(t))
	peer := peerURL(t)
	members := pb.NewClusterClient(first.conn)
	eventually(t, "a learner is added", func() bool { // refused until the first member is steady
		_, err := members.MemberAdd(soon(t), &pb.MemberAddRequest{PeerURLs: []string{peer.String()}, IsLearner: true})
		return err == nil
	})
	second := start(t, "b", "a="+first.Config().ListenPeerUrls[0].String(), peer)
	id := membership.ID(second.Server.MemberID())
	// Not only when it has been told, but when it answers clients.
	if err := second.remote.Read(soon(t)); err != nil {
		t.Errorf("Read of a learner: got %v, want an answer", err)
	}
	if err := second.remote.Prove(soon(t)); !errors.Is(err, membership.ErrLearner) {
		t.Errorf("Prove of a learner: got %v, want ErrLearner", err)
	}
	for name, s := range second.sources() {
		if o, err := s.Observe(soon(t)); err != nil || !o.Learner || o.Removed || o.Member != id {
			t.Errorf("%s: got %+v, %v, want a learner", name, o, err)
		}
	}
	if _, err := members.MemberRemove(soon(t), &pb.MemberRemoveRequest{ID: uint64(id)}); err != nil {
		t.Fatal(err)
	}
	// etcd stops by itself within about a second.
	eventually(t, "it stops", func() bool { return errors.Is(second.inproc.Prove(soon(t)), membership.ErrStopped) })
	o, err := second.inproc.Observe(soon(t))
	switch {
	case errors.Is(err, membership.ErrStopped):
		// It was turned away by the first before it had applied its removal.
	case err != nil || !o.Removed || o.Learner || o.Member != id:
		t.Errorf("in process: got %+v, %v, want removed", o, err)
	default:
		if o, err := second.remote.Observe(soon(t)); err != nil || !o.Removed || o.Member != id {
			t.Errorf("remote: got %+v, %v, want removed", o, err)
		}
	}
	if err := second.inproc.Read(soon(t)); !errors.Is(err, membership.ErrStopped) {
		t.Errorf("Read after the end: got %v, want ErrStopped", err)
	}
}

func TestSourceOfAStoppedServerSaysSo(t *testing.T) {
	e := start(t, "a", "", peerURL(t))
	e.Server.Stop()
	_, err := e.inproc.Observe(soon(t))
	for what, err := range map[string]error{"Prove": e.inproc.Prove(soon(t)), "Read": e.inproc.Read(soon(t)), "Observe": err} {
		if !errors.Is(err, membership.ErrStopped) {
			t.Errorf("%s: got %v, want ErrStopped", what, err)
		}
	}
}

func TestSourcesProveNothingWhileTheStorageStalls(t *testing.T) {
	e := start(t, "a", "", peerURL(t))
	if err := errors.Join(e.remote.Prove(soon(t)), e.inproc.Prove(soon(t))); err != nil {
		t.Fatalf("got %v before the stall, want proofs", err)
	}
	// A commit that waits for a reader keeps all further readers waiting, as a defragmentation does.
	backend := e.Server.Backend()
	backend.ReadTx().RLock()
	committed := make(chan struct{})
	go func() { backend.ForceCommit(); close(committed) }()
	eventually(t, "reads stall", func() bool { // not only take their time
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return e.remote.Read(ctx) != nil
	})
	for name, s := range e.sources() {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := s.Prove(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want the deadline: a linearizable read would not complete either", name, err)
		}
		cancel()
	}
	backend.ReadTx().RUnlock()
	<-committed
	for name, s := range e.sources() {
		if err := s.Prove(soon(t)); err != nil {
			t.Errorf("%s: got %v after the stall, want a proof", name, err)
		}
	}
}

func TestSourceEndsWithItsContext(t *testing.T) {
	e := start(t, "a", "", peerURL(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range map[string]error{
		"Prove": e.inproc.Prove(ctx),
		"Read":  e.inproc.Read(ctx),
	} {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want nil or context.Canceled", what, err)
		}
	}
	// A read that does not come back lets none behind it through, and hangs none.
	e.inproc.reading <- struct{}{}
	if err := e.inproc.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Read behind one that hangs: got %v, want context.Canceled", err)
	}
	<-e.inproc.reading
	if _, err := e.inproc.Observe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Observe: got %v, want context.Canceled", err)
	}
}
