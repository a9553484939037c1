package membership

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

var errHang = errors.New("hang until the caller gives up")

func TestProveTellsWhatIsAProof(t *testing.T) {
	for _, c := range []struct {
		why  string
		err  error
		want error // nil: a proof
	}{
		{"it completed", nil, nil},
		{"no user: refused after consensus", rpctypes.ErrGRPCUserEmpty, nil},
		{"no permission: refused after consensus", rpctypes.ErrGRPCPermissionDenied, nil},
		{"expired token: refused after consensus", rpctypes.ErrGRPCInvalidAuthToken, nil},
		{"token of an older configuration: refused after consensus", rpctypes.ErrGRPCAuthOldRevision, nil},
		{"a learner since 3.6", rpctypes.ErrGRPCNotSupportedForLearner, ErrLearner},
		{"a learner of 3.5", status.Error(codes.Unavailable, "etcdserver: rpc not supported for learner"), ErrLearner},
		{"no leader", rpctypes.ErrGRPCNoLeader, ErrNoLeader},
		{"stopping", rpctypes.ErrGRPCStopped, ErrStopped},
		{"a proxy in between denies", status.Error(codes.PermissionDenied, "RBAC: access denied"), errNoMeaning},
		{"a proxy in between asks for credentials", status.Error(codes.Unauthenticated, "Jwt is missing"), errNoMeaning},
		{"a refusal with the wrong code", status.Error(codes.Unavailable, "etcdserver: permission denied"), errNoMeaning},
		{"leader changed", rpctypes.ErrGRPCLeaderChanged, errNoMeaning},
		{"server timeout", rpctypes.ErrGRPCTimeout, errNoMeaning},
		{"not etcd", status.Error(codes.Unimplemented, "unknown service etcdserverpb.KV"), ErrNotEtcd},
	} {
		t.Run(c.why, func(t *testing.T) {
			f := &fakeEtcd{linearizable: c.err}
			err := NewRemote(serve(t, f)).Prove(t.Context())
			if f.lastRange.GetSerializable() {
				t.Error("got a serializable read: that is answered without any quorum")
			}
			checkMeaning(t, err, c.want)
		})
	}
}

var errNoMeaning = errors.New("an error that is none of the sentinels")

func checkMeaning(t *testing.T, err, want error) {
	t.Helper()
	if want == nil {
		if err != nil {
			t.Errorf("got %v, want a proof", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("got a proof, want %v", want)
	}
	for _, s := range []error{ErrLearner, ErrNoLeader, ErrStopped, ErrNotEtcd, ErrAuth} {
		if errors.Is(err, s) != (s == want) {
			t.Errorf("got %v, is %q: %v, want %v", err, s, errors.Is(err, s), want)
		}
	}
	var call *CallError
	if !errors.As(err, &call) || !strings.Contains(err.Error(), "member-b:2379") {
		t.Errorf("got %v, want a CallError that names the address", err)
	}
	if status.Code(err) == codes.Unknown && want != ErrNotEtcd {
		t.Errorf("got %v, want the gRPC status to stay visible", err)
	}
}

func TestProveEndsWithItsContext(t *testing.T) {
	r := NewRemote(serve(t, &fakeEtcd{linearizable: errHang}))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := r.Prove(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want it to be context.DeadlineExceeded", err)
	}
}

// The server counts the same deadline, and may be the first to say that it passed.
func TestProveEndsWithItsContextThoughTheServerTellsFirst(t *testing.T) {
	r := NewRemote(serve(t, &fakeEtcd{linearizable: status.Error(codes.DeadlineExceeded, "context deadline exceeded")}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.Prove(ctx); !errors.Is(err, context.DeadlineExceeded) || status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v, want it to be context.DeadlineExceeded", err)
	}
}

func TestReadAsksTheMemberOnly(t *testing.T) {
	f := &fakeEtcd{linearizable: errHang}
	r := NewRemote(serve(t, f))
	if err := r.Read(t.Context()); err != nil {
		t.Errorf("got %v, want an answer though there is no quorum", err)
	}
	if !f.lastRange.GetSerializable() {
		t.Error("got a linearizable read, want a serializable one")
	}
}

// Whatever listens there: an error that says so, no panic, no proof.
func TestProveKnowsWhatIsNotEtcd(t *testing.T) {
	t.Run("gRPC without etcd's services", func(t *testing.T) {
		gs := grpc.NewServer()
		checkMeaning(t, NewRemote(serveOn(t, bufconn.Listen(1<<16), gs.Serve, gs.Stop)).Prove(t.Context()), ErrNotEtcd)
	})
	t.Run("an answer without a header", func(t *testing.T) {
		checkMeaning(t, NewRemote(serve(t, &fakeEtcd{noHeader: true})).Prove(t.Context()), ErrNotEtcd)
	})
	t.Run("bytes that are no message", func(t *testing.T) {
		gs := grpc.NewServer(grpc.ForceServerCodecV2(rubbish{}), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
			return s.SendMsg(nil)
		}))
		checkMeaning(t, NewRemote(serveOn(t, bufconn.Listen(1<<16), gs.Serve, gs.Stop)).Prove(t.Context()), ErrNotEtcd)
	})
	web := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
	t.Run("a web server with HTTP/2", func(t *testing.T) {
		hs := &http.Server{Handler: web, Protocols: new(http.Protocols)}
		hs.Protocols.SetUnencryptedHTTP2(true)
		checkMeaning(t, NewRemote(serveOn(t, bufconn.Listen(1<<16), hs.Serve, func() { _ = hs.Close() })).Prove(t.Context()), ErrNotEtcd)
	})
	t.Run("a web server with HTTP/1.1", func(t *testing.T) {
		serveText := func(lis net.Listener) error {
			for {
				c, err := lis.Accept()
				if err != nil {
					return err
				}
				go func() {
					// As web servers do, it reads before it answers and lets the
					// client close: otherwise the client may fail in writing first.
					_, _ = io.ReadFull(c, make([]byte, len("PRI * HTTP/2.0")))
					_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
					_, _ = io.Copy(io.Discard, c)
					_ = c.Close()
				}()
			}
		}
		checkMeaning(t, NewRemote(serveOn(t, bufconn.Listen(1<<16), serveText, func() {})).Prove(t.Context()), ErrNotEtcd)
	})
}

func TestObserveTellsWhatTheMemberSays(t *testing.T) {
	o, err := NewRemote(serve(t, &fakeEtcd{})).Observe(t.Context())
	if err != nil {
		t.Fatalf("Observe: %v", err)
	}
	want := Observation{
		Cluster: 1, Member: 2, Leader: 3, Term: 5, RaftIndex: 12, AppliedIndex: 11, Revision: 77,
		Voters: 2, Version: "3.7.3", Alarms: []Alarm{AlarmNoSpace},
	}
	checkObservation(t, o, want)
	if o.At.IsZero() {
		t.Error("got no time, want when it began")
	}
}

func checkObservation(t *testing.T, got, want Observation) {
	t.Helper()
	if !slices.Equal(got.Alarms, want.Alarms) {
		t.Errorf("got alarms %v, want %v", got.Alarms, want.Alarms)
	}
	if got.Cluster != want.Cluster || got.Member != want.Member || got.Leader != want.Leader || got.Term != want.Term ||
		got.RaftIndex != want.RaftIndex || got.AppliedIndex != want.AppliedIndex || got.Revision != want.Revision ||
		got.Voters != want.Voters || got.Learner != want.Learner || got.Removed != want.Removed || got.Version != want.Version {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestObserveOfALearnerNeedsNoList(t *testing.T) {
	f := &fakeEtcd{list: rpctypes.ErrGRPCNotSupportedForLearner, change: func(r *pb.StatusResponse) { r.IsLearner = true }}
	o, err := NewRemote(serve(t, f)).Observe(t.Context())
	if err != nil || !o.Learner || o.Leader != 3 {
		t.Errorf("got %+v, %v, want a learner that names its leader", o, err)
	}
}

// A server that was just removed panics when it is asked for its status.
func TestObserveOfARemovedMemberAsksForNoStatus(t *testing.T) {
	f := &fakeEtcd{members: []*pb.Member{{ID: 3}, {ID: 5}}}
	o, err := NewRemote(serve(t, f)).Observe(t.Context())
	if err != nil || !o.Removed || o.Member != 2 {
		t.Errorf("got %+v, %v, want member 2 removed", o, err)
	}
	if f.statuses != 0 {
		t.Errorf("got %d status calls, want none: they would end the process of the member", f.statuses)
	}
}

// So does one that has stopped but still listens, as an embedded one may.
func TestObserveOfAStoppedServerAsksForNoStatus(t *testing.T) {
	f := &fakeEtcd{linearizable: rpctypes.ErrGRPCStopped}
	r := NewRemote(serve(t, f))
	checkMeaning(t, r.Prove(t.Context()), ErrStopped)
	if _, err := r.Observe(t.Context()); !errors.Is(err, ErrStopped) || f.statuses != 0 {
		t.Errorf("got %v after %d status calls, want ErrStopped after none", err, f.statuses)
	}
	f.linearizable = nil // started again
	if err := r.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o, err := r.Observe(t.Context()); err != nil || o.Leader != 3 {
		t.Errorf("got %+v, %v once it proves again, want an observation", o, err)
	}
}

func TestObserveWithoutCredentialsIsNoError(t *testing.T) {
	t.Run("the identity comes from a refused watch", func(t *testing.T) {
		o, err := NewRemote(serve(t, &fakeEtcd{token: "t1"})).Observe(t.Context())
		if err != nil {
			t.Fatalf("got %v, want none: the member is well, it only does not talk to us", err)
		}
		checkObservation(t, o, Observation{Cluster: 1, Member: 2, Term: 5, Revision: 77})
	})
	for why, watch := range map[string]error{"refused as well": rpctypes.ErrGRPCPermissionDenied, "hanging": errHang} {
		t.Run("the watch is "+why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				o, err := NewRemote(serve(t, &fakeEtcd{token: "t1", watch: watch})).Observe(ctx)
				if err != nil || o.At.IsZero() {
					t.Errorf("got %+v, %v, want an observation that holds nothing but its time", o, err)
				}
				checkObservation(t, o, Observation{})
			})
		})
	}
	t.Run("a learner stays one", func(t *testing.T) {
		f := &fakeEtcd{list: rpctypes.ErrGRPCNotSupportedForLearner, token: "t1", watch: rpctypes.ErrGRPCNotSupportedForLearner}
		o, err := NewRemote(serve(t, f)).Observe(t.Context())
		if err != nil || !o.Learner {
			t.Errorf("got %+v, %v, want a learner", o, err)
		}
	})
}

func TestObserveLogsItsUserIn(t *testing.T) {
	f := &fakeEtcd{token: "t1"}
	r := NewRemote(serve(t, f), WithUser("root", "secret"))
	for range 3 {
		if o, err := r.Observe(t.Context()); err != nil || o.Leader != 3 || o.Voters != 2 {
			t.Fatalf("got %+v, %v, want all that a user may see", o, err)
		}
	}
	if f.logins != 1 {
		t.Errorf("got %d logins for three observations, want one", f.logins)
	}
	f.token = "t2" // the old one has expired
	if o, err := r.Observe(t.Context()); err != nil || o.Leader != 3 || f.logins != 2 {
		t.Errorf("got %+v, %v after %d logins, want a second login", o, err, f.logins)
	}
	if _, members, err := r.Members(t.Context(), true); err != nil || len(members) != 3 {
		t.Errorf("Members: got %v, %v, want three", members, err)
	}

	wrong := NewRemote(serve(t, &fakeEtcd{token: "t1"}), WithUser("root", "wrong"))
	o, err := wrong.Observe(t.Context())
	if err != nil {
		t.Errorf("got %v with a wrong password, want what is told without one", err)
	}
	checkObservation(t, o, Observation{Cluster: 1, Member: 2, Term: 5, Revision: 77})
}

func TestObserveLogsInEverMoreRarelyWhileThatDoesNotHelp(t *testing.T) {
	for _, c := range []struct {
		why      string
		password string
		change   func(*fakeEtcd)
		min, max int // logins in ten minutes of two observations a second
	}{
		{"a wrong password", "wrong", func(*fakeEtcd) {}, 10, 20},
		{"a user who may not ask", "secret", func(f *fakeEtcd) { f.status = rpctypes.ErrGRPCPermissionDenied }, 10, 20},
		{"no consensus", "secret", func(f *fakeEtcd) { f.login = rpctypes.ErrGRPCTimeout }, 500, 700},
	} {
		t.Run(c.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeEtcd{token: "t1"}
				c.change(f)
				r := NewRemote(serve(t, f), WithUser("root", c.password))
				for range 1200 {
					if _, err := r.Observe(t.Context()); err != nil {
						t.Fatalf("got %v, want what is told without a user", err)
					}
					time.Sleep(time.Second / 2)
				}
				if f.logins < c.min || f.logins > c.max {
					t.Errorf("got %d logins in ten minutes, want %d to %d: each costs the member a check of the password", f.logins, c.min, c.max)
				}
			})
		})
	}
}

func TestMembersNamesClusterAndMembers(t *testing.T) {
	cluster, members, err := NewRemote(serve(t, &fakeEtcd{})).Members(t.Context(), false)
	if err != nil || cluster != 1 || len(members) != 3 {
		t.Fatalf("got cluster %v, %v, %v, want three members of cluster 1", cluster, members, err)
	}
	if m := members[1]; m.ID != 3 || m.Name != "c" || !slices.Equal(m.ClientURLs, []string{"http://c:2379"}) || !members[2].Learner {
		t.Errorf("got %+v, want what the list says", members)
	}
	_, _, err = NewRemote(serve(t, &fakeEtcd{token: "t1"})).Members(t.Context(), false)
	checkMeaning(t, err, ErrAuth)
}
