package fakeetcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// connect opens a plain connection to one address.
func connect(t *testing.T, c *Cluster, address string) *grpc.ClientConn {
	t.Helper()
	opts := append(c.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient("passthrough:///"+address, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// only returns the official client of one member.
func only(t *testing.T, c *Cluster, m *Member) *clientv3.Client {
	t.Helper()
	cfg := c.ClientConfig()
	cfg.Endpoints = []string{m.Address}
	cli := dial(t, cfg)
	t.Cleanup(func() { _ = cli.Close() })
	return cli
}

// soon is a deadline for calls that must not wait for anything.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// The control fact of the whole project: this is what the official client makes of a cut member.
func TestOfficialClientBlocksOnACutFollowerAtEveryThirdCall(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		if _, err := cli.Get(within5s(t), "k"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // until it has connected to all
		c.Member(1).CutPeers()
		blocked := 0
		for range 9 {
			began := time.Now()
			_, err := cli.Get(within5s(t), "k")
			switch took := time.Since(began); {
			case took == 5*time.Second && errors.Is(err, context.DeadlineExceeded):
				blocked++
			case took > 0 || err != nil:
				t.Errorf("a Get took %v and ended with %v, want at once, or the whole 5 s", took, err)
			}
		}
		if blocked != 3 {
			t.Errorf("%d of 9 Gets blocked for 5 s, want every third: the fake does not hurt as etcd does", blocked)
		}
		c.Member(1).Heal()
		time.Sleep(time.Second)
		for range 9 {
			if _, err := cli.Get(soon(t), "k"); err != nil {
				t.Errorf("a Get after the heal: %v", err)
			}
		}
	})
}

func TestCutMemberAnswersWhatIsLocal(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		m := c.Member(1)
		cli, conn := only(t, c, m), connect(t, c, m.Address)
		c.Put("k", "before")
		m.CutPeers()
		c.Put("k", "after")
		time.Sleep(200 * time.Millisecond)

		resp, err := cli.Get(soon(t), "k", clientv3.WithSerializable())
		if err != nil || string(resp.Kvs[0].Value) != "before" {
			t.Errorf("serializable Get: %v, %v; want the value before the cut", resp, err)
		}
		if _, err := cli.Get(soon(t), "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("linearizable Get: got %v, want it to hang", err)
		}
		if _, err := cli.Put(soon(t), "k", "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Put: got %v, want it to hang", err)
		}
		health, err := healthpb.NewHealthClient(conn).Check(soon(t), &healthpb.HealthCheckRequest{})
		if err != nil || health.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("etcd's own health: %v, %v; want SERVING: it knows nothing of quorum", health, err)
		}
		st, err := cli.Status(soon(t), m.Address)
		if err != nil || st.Leader != c.Member(0).ID {
			t.Errorf("Status: %v, %v; want the old leader %x for the first 1.5 s", st, err, c.Member(0).ID)
		}
		time.Sleep(1500 * time.Millisecond)
		if st, err = cli.Status(soon(t), m.Address); err != nil || st.Leader != 0 || len(st.Errors) != 1 {
			t.Errorf("Status later: %v, %v; want no leader and that as the one error", st, err)
		}
	})
}

func TestHasLeaderProbeSaysNoLeaderOnlyWhenTheMemberNoticed(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		m := c.Member(2)
		probe := healthpb.NewHealthClient(connect(t, c, m.Address))
		m.CutPeers()
		cut := time.Now()
		for time.Since(cut) < time.Minute {
			_, err := probe.Check(clientv3.WithRequireLeader(soon(t)), &healthpb.HealthCheckRequest{})
			if err != nil {
				if status.Convert(err).Message() != status.Convert(rpctypes.ErrGRPCNoLeader).Message() {
					t.Fatalf("got %v, want %v", err, rpctypes.ErrGRPCNoLeader)
				}
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(cut); took < 1300*time.Millisecond || took > 1800*time.Millisecond {
			t.Errorf("no leader said %v after the cut, want 1.3 to 1.8 s as measured on etcd", took)
		}
	})
}

func TestProposalForwardedToALostLeaderHangsForSevenSeconds(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		follower := only(t, c, c.Member(1))
		if _, err := follower.Put(t.Context(), "k", "0"); err != nil {
			t.Fatal(err)
		}
		c.Elect(2, time.Second)
		began := time.Now()
		_, err := follower.Put(t.Context(), "k", "1")
		if took := time.Since(began); took != 7*time.Second || !errors.Is(err, rpctypes.ErrTimeout) {
			t.Errorf("Put ended after %v with %v, want 7 s and %v although the new leader was there after 1 s",
				took, err, rpctypes.ErrTimeout)
		}
		if v, _ := c.Get("k"); v != "0" {
			t.Errorf("value %q, want 0: the lost proposal was applied", v)
		}
		if n := c.Mutations()["put k=1"]; n != 1 {
			t.Errorf("the Put arrived %d times, want once", n)
		}
	})
}

func TestProposalIsCommittedByTheNextLeaderIfItInheritsIt(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		c.InheritProposals(true)
		cli := only(t, c, c.Member(1))
		c.Elect(2, time.Second)
		began := time.Now()
		if _, err := cli.Put(t.Context(), "k", "v"); err != nil || time.Since(began) != time.Second {
			t.Errorf("Put took %v, error %v; want it committed by the new leader after 1 s", time.Since(began), err)
		}
	})
}

func TestOneCutLinkToTheLeaderLeavesOneFollowerLeaderless(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		c.CutLink(0, 1)
		time.Sleep(time.Minute)
		for i, want := range []bool{true, false, true} {
			if got := c.Member(i).Live(); got != want {
				t.Errorf("member %d: live %v, want %v", i, got, want)
			}
		}
		if c.Term() != 2 {
			t.Errorf("term %d, want 2: the others see a leader and do not elect", c.Term())
		}
		c.HealLink(0, 1)
		if !c.Member(1).Live() {
			t.Error("the follower is not live after the link is back")
		}
	})
}

func TestConnectionsAreResetAndComeBack(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		m := c.Member(1)
		wch := only(t, c, m).Watch(t.Context(), "k")
		synctest.Wait()
		if n := m.Connections(); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
		m.ResetConnections()
		time.Sleep(10 * time.Second)
		c.Put("k", "v")
		expect(t, wch, "the watch is resumed on a new connection", "PUT k=v")
	})
}

func TestMemberListNamesWhatIsAdvertised(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		c.Member(2).Advertise("http://0.0.0.0:2379")
		if err := cli.Sync(soon(t)); err != nil {
			t.Fatal(err)
		}
		if got := cli.Endpoints()[2]; got != "http://0.0.0.0:2379" {
			t.Errorf("third endpoint %q, want the address that leads nowhere", got)
		}
	})
}

func TestShortCutLosesNoProposal(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		cli := only(t, c, c.Member(1))
		c.Member(1).CutPeers()
		time.AfterFunc(time.Second, c.Member(1).Heal)
		if _, err := cli.Put(t.Context(), "k", "v"); err != nil {
			t.Errorf("Put over a cut of 1 s: %v, want it to be applied after the heal", err)
		}
	})
}

func TestReadInFlightWaitsForTheNewLeader(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		if _, err := cli.Get(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		c.Elect(1, 1500*time.Millisecond)
		began := time.Now()
		_, err := cli.Get(t.Context(), "k")
		if took := time.Since(began); err != nil || took < 1500*time.Millisecond || took > 1800*time.Millisecond {
			t.Errorf("Get in an election of 1.5 s took %v, error %v; want no error just after it", took, err)
		}
		if c.Leader() != c.Member(1) || c.Term() != 3 {
			t.Errorf("leader %v at term %d, want the second member at term 3", c.Leader().Name, c.Term())
		}
	})
}

func TestReadInFlightOnACutMemberFailsWhenItHearsOfALeaderAgain(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		m := c.Member(1)
		kv := pb.NewKVClient(connect(t, c, m.Address)) // clientv3 would repeat it unseen
		m.CutPeers()
		time.AfterFunc(3*time.Second, m.Heal)
		_, err := kv.Range(within5s(t), &pb.RangeRequest{Key: []byte("k")})
		if !errors.Is(rpctypes.Error(err), rpctypes.ErrLeaderChanged) {
			t.Errorf("got %v, want %v", err, rpctypes.ErrLeaderChanged)
		}
	})
}

func TestFrozenMemberAcceptsAndNeverAnswers(t *testing.T) {
	inBubble(t, Options{Shim: ShimSidecar}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		m := c.Member(1)
		m.Freeze()
		for _, address := range []string{m.Address, m.ShimAddress} {
			if conn, err := c.Dial(soon(t), address); err != nil {
				t.Errorf("dial %s: %v, want it accepted: the kernel does that", address, err)
			} else {
				_ = conn.Close()
			}
			probe := healthpb.NewHealthClient(connect(t, c, address))
			if _, err := probe.Check(within5s(t), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true)); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("Check on %s: got %v, want silence", address, err)
			}
		}
		m.Thaw()
		probe := healthpb.NewHealthClient(connect(t, c, m.Address))
		if _, err := probe.Check(soon(t), &healthpb.HealthCheckRequest{}); err != nil {
			t.Errorf("Check after the thaw: %v", err)
		}
	})
}

func TestCutClientLosesBytesBothWaysAndDialsHang(t *testing.T) {
	inBubble(t, Options{Shim: ShimSidecar}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		m := c.Member(1)
		cli := only(t, c, m)
		if _, err := cli.Get(soon(t), "k"); err != nil {
			t.Fatal(err)
		}
		m.CutClient()
		if _, err := cli.Get(soon(t), "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get on the old connection: got %v, want it to hang", err)
		}
		for _, address := range []string{m.Address, m.ShimAddress} {
			if conn, err := c.Dial(soon(t), address); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("dial %s: got %v and %v, want it to hang", address, conn, err)
			}
		}
		if !m.Live() {
			t.Error("the member lost its quorum, want only its clients gone")
		}
		m.HealClient()
		if _, err := cli.Get(soon(t), "k"); err != nil {
			t.Errorf("Get on the old connection after the heal: %v, want TCP to have carried on", err)
		}
	})
}

func TestEndOfConnectionDoesNotCrossACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(3, Options{})
		defer c.Close()
		m := c.Member(1)
		conn, err := c.Dial(soon(t), m.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		read := make(chan error, 1)
		go func() {
			buf := make([]byte, 1<<10)
			for {
				if _, err := conn.Read(buf); err != nil {
					read <- err
					return
				}
			}
		}()
		synctest.Wait()
		m.CutClient()
		m.Kill()
		time.Sleep(time.Hour)
		select {
		case err := <-read:
			t.Errorf("the client learned of the end through a cut: %v", err)
		default:
		}
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Errorf("a write into a cut: %v, want it swallowed", err)
		}
		m.HealClient()
		<-read
	})
}

func TestKilledMemberRefusesAndReturns(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		m := c.Member(0) // the leader
		if _, err := cli.Put(soon(t), "k", "v"); err != nil {
			t.Fatal(err)
		}
		m.Kill()
		if _, err := c.Dial(soon(t), m.Address); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial: got %v, want a refusal", err)
		}
		if _, err := cli.Get(within5s(t), "k"); err != nil {
			t.Errorf("Get by way of the others: %v", err)
		}
		if l := c.Leader(); l == nil || l == m {
			t.Errorf("leader %v, want one of the others", l)
		}
		m.Restart()
		time.Sleep(time.Second)
		resp, err := only(t, c, m).Get(soon(t), "k")
		if err != nil || len(resp.Kvs) != 1 {
			t.Errorf("Get by way of the restarted member: %v, %v", resp, err)
		}
	})
}

func TestLearnerRefusesEvenHealth(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		m := c.Member(2)
		m.SetLearner(true)
		conn := connect(t, c, m.Address)
		_, err := healthpb.NewHealthClient(conn).Check(soon(t), &healthpb.HealthCheckRequest{})
		if status.Code(err) != codes.FailedPrecondition || status.Convert(err).Message() != "etcdserver: rpc not supported for learner" {
			t.Errorf("Check: got %v, want FailedPrecondition as etcd 3.6 and later say", err)
		}
		cli := only(t, c, m)
		if _, err := cli.Get(soon(t), "k", clientv3.WithSerializable()); err != nil {
			t.Errorf("serializable Get: %v, want learners to answer it", err)
		}
		if st, err := cli.Status(soon(t), m.Address); err != nil || !st.IsLearner {
			t.Errorf("Status: %v, %v; want a learner", st, err)
		}
	})
}

func TestRemovedAndForeignMembersSaySo(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		c.Member(2).Remove()
		c.Member(1).SetCluster(0xbad)
		list, err := only(t, c, c.Member(0)).MemberList(soon(t))
		if err != nil || len(list.Members) != 2 {
			t.Errorf("MemberList: %v, %v; want two members", list, err)
		}
		resp, err := only(t, c, c.Member(1)).Get(soon(t), "k")
		if err != nil || resp.Header.ClusterId != 0xbad || resp.Header.MemberId != c.Member(1).ID {
			t.Errorf("got %v, %v; want cluster bad in the header", resp, err)
		}
		if c.Member(2).Live() {
			t.Error("the removed member has a quorum")
		}
	})
}

func TestRejectionsAndLatencies(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		m := c.Member(1)
		cli := only(t, c, m)
		m.Reject(codes.PermissionDenied, "nope", "Range")
		if _, err := cli.Get(soon(t), "k"); err == nil || status.Code(err) != codes.PermissionDenied {
			t.Errorf("Get: got %v, want PermissionDenied", err)
		}
		if _, err := cli.Put(soon(t), "k", "v"); err != nil {
			t.Errorf("Put: %v, want it untouched", err)
		}
		m.Reject(codes.OK, "")
		c.SetLatency(2 * time.Second)
		began := time.Now()
		if _, err := cli.Get(within5s(t), "k"); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("Get took %v, error %v; want 2 s", time.Since(began), err)
		}
		c.SetLatency(0)
		m.SetDiskLatency(time.Second)
		began = time.Now()
		if _, err := cli.Get(within5s(t), "k", clientv3.WithSerializable()); err != nil || time.Since(began) != 0 {
			t.Errorf("serializable Get took %v, error %v; want at once: it needs no disk", time.Since(began), err)
		}
		if _, err := cli.Put(within5s(t), "k", "v"); err != nil || time.Since(began) != time.Second {
			t.Errorf("Put took %v, error %v; want 1 s", time.Since(began), err)
		}
	})
}

func TestAnswerIsCutOffAfterThePutWasApplied(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		m := c.Member(1)
		cli := only(t, c, m)
		m.DropAnswer("Put")
		if _, err := cli.Put(soon(t), "k", "1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Put: got %v, want no answer", err)
		}
		if v, _ := c.Get("k"); v != "1" {
			t.Errorf("value %q, want 1: it was to be applied", v)
		}
		m.DropAnswer()
		m.BreakAnswer("Put")
		if _, err := cli.Put(within5s(t), "k", "2"); status.Code(err) != codes.Unavailable {
			t.Errorf("Put: got %v, want the connection reset", err)
		}
		if v, _ := c.Get("k"); v != "2" {
			t.Errorf("value %q, want 2: it was to be applied", v)
		}
		if _, err := cli.Put(within5s(t), "k", "3"); err != nil {
			t.Errorf("the Put after it: %v", err)
		}
		for id, n := range c.Mutations() {
			if n != 1 {
				t.Errorf("%s arrived %d times, want once", id, n)
			}
		}
	})
}

func TestStreamsEndWithTheErrorThatTheyAreToldTo(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		m := c.Member(1)
		probe, err := healthpb.NewHealthClient(connect(t, c, m.Address)).Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		wch := only(t, c, m).Watch(t.Context(), "k")
		if _, err := probe.Recv(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		m.EndStreams(codes.ResourceExhausted, "too many", "Watch")
		expect(t, wch, "an error that the official client does not survive", "rpc error: code = ResourceExhausted desc = too many", "closed")
		if n := m.Streams("Watch"); n != 0 {
			t.Errorf("%d watch streams are open, want none", n)
		}
		if n := m.Streams("/grpc.health.v1.Health/Watch"); n != 1 {
			t.Errorf("%d health streams are open, want the one that was not meant", n)
		}
		m.EndStreams(codes.Unavailable, "bye")
		if _, err := probe.Recv(); status.Code(err) != codes.Unavailable || status.Convert(err).Message() != "bye" {
			t.Errorf("the health stream ended with %v, want what it was told", err)
		}
	})
}

func TestLeadershipIsTransferred(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		wch := cli.Watch(clientv3.WithRequireLeader(t.Context()), "k")
		for i := range 100 {
			from, to := c.Member(i%3), c.Member((i+1)%3)
			if _, err := only(t, c, from).MoveLeader(soon(t), to.ID); err != nil {
				t.Fatalf("transfer %d: %v", i, err)
			}
		}
		if c.Term() != 102 {
			t.Errorf("term %d after 100 transfers, want 102", c.Term())
		}
		c.Put("k", "v")
		expect(t, wch, "a transfer moves no stream", "PUT k=v")
		if _, err := only(t, c, c.Member(0)).MoveLeader(soon(t), c.Member(2).ID); err == nil {
			t.Error("a follower gave the leadership away")
		}
	})
}

func TestMembersSpeakTLSUnderTheirOwnNames(t *testing.T) {
	hosts := []string{"a.example", "b.example", "c.example"}
	pool, creds := certify(t, hosts)
	opts := Options{
		Host: func(index int) string { return hosts[index] }, Shim: ShimSidecar,
		Credentials: func(index int) credentials.TransportCredentials { return creds[index] },
	}
	synctest.Test(t, func(t *testing.T) {
		c := New(3, opts)
		defer c.Close()
		cfg := c.ClientConfig()
		cfg.TLS = &tls.Config{RootCAs: pool}
		for i := range cfg.Endpoints {
			cfg.Endpoints[i] = "https://" + cfg.Endpoints[i]
		}
		cli := dial(t, cfg)
		defer func() { _ = cli.Close() }()
		for range 3 {
			if _, err := cli.Get(within5s(t), "k"); err != nil {
				t.Errorf("Get: %v", err)
			}
		}
		dialOpts := append(c.DialOptions(), grpc.WithTransportCredentials(credentials.NewTLS(cfg.TLS)))
		conn, err := grpc.NewClient("passthrough:///"+c.Member(1).ShimAddress, dialOpts...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if got, reason, err := check(soon(t), conn, ""); err != nil || got != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("shim over TLS: %v %q %v", got, reason, err)
		}
	})
}

// certify returns certificates that name one host each, and the roots that know them.
func certify(t *testing.T, hosts []string) (*x509.CertPool, []credentials.TransportCredentials) {
	t.Helper()
	pool, creds := x509.NewCertPool(), []credentials.TransportCredentials{}
	for i, host := range hosts {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), DNSNames: []string{host}, IsCA: true, BasicConstraintsValid: true,
			NotAfter: time.Now().Add(24 * time.Hour), // a bubble's clock starts in 2000
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		pool.AddCert(parsed)
		creds = append(creds, credentials.NewServerTLSFromCert(&tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}))
	}
	return pool, creds
}
