package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// By whichever way of clientv3 a mutation goes, the caller finds the
// MovedError in what comes back, and the servers saw it once. LeaseGrant and
// LeaseRevoke are of the kind that clientv3 repeats by itself when it may.
func TestEveryKindOfMutationIsSentOnceAndItsOutcomeUnknown(t *testing.T) {
	type call struct {
		method string
		do     func(context.Context, *client.Client) error
	}
	calls := []call{
		{"Put", func(ctx context.Context, cli *client.Client) error { _, err := cli.Put(ctx, "k", "put"); return err }},
		{"DeleteRange", func(ctx context.Context, cli *client.Client) error { _, err := cli.Delete(ctx, "d"); return err }},
		{"Compact", func(ctx context.Context, cli *client.Client) error { _, err := cli.Compact(ctx, 1); return err }},
		{"Txn", func(ctx context.Context, cli *client.Client) error {
			_, err := cli.Txn(ctx).Then(clientv3.OpPut("k", "txn")).Commit()
			return err
		}},
		{"Txn", func(ctx context.Context, cli *client.Client) error {
			_, err := concurrency.NewSTM(cli.Client, func(s concurrency.STM) error { s.Put("k", "stm"); return nil }, concurrency.WithAbortContext(ctx))
			return err
		}},
		{"LeaseGrant", func(ctx context.Context, cli *client.Client) error { _, err := cli.Grant(ctx, 77); return err }},
		{"LeaseRevoke", func(ctx context.Context, cli *client.Client) error { _, err := cli.Revoke(ctx, 7); return err }},
		{"UserAdd", func(ctx context.Context, cli *client.Client) error { _, err := cli.UserAdd(ctx, "u", "p"); return err }},
		{"MemberAdd", func(ctx context.Context, cli *client.Client) error {
			_, err := cli.MemberAdd(ctx, []string{"http://x:2380"})
			return err
		}},
	}
	for i, tt := range calls {
		t.Run(tt.method, func(t *testing.T) {
			inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
				for _, m := range c.Members() {
					m.DropAnswer(tt.method)
				}
				before := len(c.Requests(tt.method))
				result := make(chan error, 1)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				go func() { result <- tt.do(ctx, cli) }()
				time.Sleep(50 * time.Millisecond)
				sent := c.Requests(tt.method)
				if len(sent) != before+1 {
					t.Fatalf("%d requests arrived, want the one (call %d)", len(sent)-before, i)
				}
				c.Member(sent[before].Member).CutPeers()
				err := <-result
				var moved *client.MovedError
				if !client.IsOutcomeUnknown(err) || !errors.As(err, &moved) || !strings.HasSuffix(moved.Method, tt.method) {
					t.Errorf("%v, want a MovedError of unknown outcome", err)
				}
				time.Sleep(5 * time.Second)
				if n := len(c.Requests(tt.method)) - before; n != 1 {
					t.Errorf("%d requests arrived, want one: it was sent again", n)
				}
			})
		})
	}
}

// A leader that was lost before the mutation was sent has nothing of it, however long it
// waited for a connection.
func TestMutationThatWaitedForAConnectionIsNotOfTheLostLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
		defer c.Close()
		c.SetLatency(200 * time.Millisecond)
		cfg := c.ClientConfig()
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			if strings.HasSuffix(address, ":2379") {
				select {
				case <-time.After(2800 * time.Millisecond):
				case <-ctx.Done():
				}
			}
			return c.Dial(ctx, address)
		}))
		cli := newClientOf(t, cfg, options{})
		defer closeInTime(t, cli)
		time.AfterFunc(500*time.Millisecond, func() { c.Elect(1, 100*time.Millisecond) })
		began := time.Now()
		_, err := cli.Put(t.Context(), "k", "v")
		if took := time.Since(began); err != nil || took < 2800*time.Millisecond {
			t.Errorf("the Put ended after %v with %v, want it answered once there is a connection", took, err)
		}
		if h := cli.Health(); h.Term != c.Term() || h.Term < 3 {
			t.Errorf("the client knows term %d of %d, want the second leader's: this tests nothing", h.Term, c.Term())
		}
	})
}

// lateContext is one on a busy machine: its timer fires a while after its deadline.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// The member's word that the deadline has passed may come before the caller's own timer
// fires. clientv3 takes it for the end of one attempt and makes the next.
func TestCallIsNotMadeAgainWhenItsMemberSeesTheDeadlineFirst(t *testing.T) {
	calls := map[string]func(context.Context, *client.Client) error{
		"Put":   func(ctx context.Context, cli *client.Client) error { _, err := cli.Put(ctx, "k", "v"); return err },
		"Range": func(ctx context.Context, cli *client.Client) error { _, err := cli.Get(ctx, "k"); return err },
	}
	for method, do := range calls {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
				defer c.Close()
				cfg := c.ClientConfig()
				attempts := 0
				cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(func(ctx context.Context, full string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
					if r, ok := req.(interface{ GetKey() []byte }); ok && string(r.GetKey()) == "k" { // the others are proofs
						attempts++
					}
					return invoke(ctx, full, req, reply, cc, opts...)
				}))
				cli := newClientOf(t, cfg, options{})
				defer closeInTime(t, cli)
				time.Sleep(2 * time.Second)
				for _, m := range c.Members() {
					m.DropAnswer(method)
				}
				timer, cancel := context.WithTimeout(t.Context(), 220*time.Millisecond)
				defer cancel()
				began := time.Now()
				err := do(lateContext{timer, began.Add(200 * time.Millisecond)}, cli)
				if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 220*time.Millisecond {
					t.Errorf("%v after %v, want the deadline exceeded when the caller's context says so", err, took)
				}
				if attempts != 1 || len(c.Requests(method)) == 0 {
					t.Errorf("%d attempts, want one, and that it arrived", attempts)
				}
			})
		})
	}
}

// A member, or a proxy before it, that ends a mutation with an end of a context that is not the
// caller's has had it. clientv3 would send it a hundred times.
func TestMutationThatItsMemberCancelsIsNotMadeAgain(t *testing.T) {
	for code, want := range map[codes.Code]error{codes.Canceled: context.Canceled, codes.DeadlineExceeded: context.DeadlineExceeded} {
		t.Run(code.String(), func(t *testing.T) {
			inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
				for _, m := range c.Members() {
					m.Reject(code, "etcdserver: request ended", "Put", "LeaseGrant")
				}
				before := len(c.Requests("Put")) + len(c.Requests("LeaseGrant"))
				_, put := cli.Put(t.Context(), "k", "v")
				_, grant := cli.Grant(t.Context(), 60)
				for _, err := range []error{put, grant} {
					var call *client.CallError
					if !errors.As(err, &call) || !errors.Is(err, want) || !client.IsOutcomeUnknown(err) || !call.Sent || call.Endpoint == "" || call.Grade != "healthy" {
						t.Errorf("%v, want a CallError with %v that says who had it", err, want)
					}
					for _, part := range []string{"fake-", "(member ", "etcdserver: request ended", "may or may not"} {
						if !strings.Contains(err.Error(), part) {
							t.Errorf("%q does not say %q", err, part)
						}
					}
				}
				if n := len(c.Requests("Put")) + len(c.Requests("LeaseGrant")) - before; n != 2 {
					t.Errorf("%d requests arrived, want each once", n)
				}
			})
		})
	}
}

// Whoever calls after his deadline has not waited for an endpoint.
func TestCallAfterItsDeadlineBlamesNoEndpoint(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), -1)
		defer cancel()
		_, err := cli.Put(ctx, "k", "v")
		var call *client.CallError
		if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &call) {
			t.Errorf("%v, want the plain deadline", err)
		}
	})
}

// Where members have no leader for longer than their own request timeout, they end mutations
// that waited for one, and did nothing; clientv3 makes them again.
func TestMutationOutlastsMembersThatHaveNoLeader(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		c.Member(0).CutPeers()
		c.Member(1).CutPeers()
		time.Sleep(3 * time.Second)
		time.AfterFunc(12*time.Second, func() { c.Member(0).Heal(); c.Member(1).Heal() })
		began, before := time.Now(), len(c.Requests("Put"))
		if _, err := cli.Put(t.Context(), "k", "v"); err != nil || time.Since(began) < 12*time.Second {
			t.Errorf("%v after %v, want it done when there is a leader", err, time.Since(began))
		}
		if n := len(c.Requests("Put")) - before; n < 2 {
			t.Errorf("%d requests: no member ended one, this tests nothing", n)
		}
	})
}

// Whoever gives up waiting for a lock while there is no leader takes his key away when there is
// one: the recipe drops the error of that, so it must not have one.
func TestLockThatWasGivenUpIsNotLeftBehind(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		var locks []*concurrency.Mutex
		for range 2 {
			s, err := concurrency.NewSession(cli.Client, concurrency.WithTTL(60))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			locks = append(locks, concurrency.NewMutex(s, "lock"))
		}
		if err := locks[0].Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { c.Member(0).CutPeers(); c.Member(1).CutPeers() })
		time.AfterFunc(16*time.Second, func() { c.Member(0).Heal(); c.Member(1).Heal() })
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		if err := locks[1].Lock(ctx); err == nil {
			t.Fatal("a lock that another one has was given")
		}
		time.Sleep(30 * time.Second)
		if resp, err := cli.Get(t.Context(), "lock/", clientv3.WithPrefix()); err != nil || len(resp.Kvs) != 1 {
			t.Errorf("%v, %v, want the key of the one who has the lock", resp, err)
		}
	})
}

// clientv3 makes a Grant again when its connection breaks. The last attempt may find no
// endpoint, but an earlier one was sent.
func TestGrantWhoseConnectionBrokeMayHaveReachedAMember(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		for _, m := range c.Members() {
			m.DropAnswer("LeaseGrant")
		}
		time.AfterFunc(100*time.Millisecond, func() {
			for _, m := range c.Members() {
				m.Kill()
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := cli.Grant(ctx, 60)
		var call *client.CallError
		if !errors.As(err, &call) || !call.Sent {
			t.Errorf("%v (%+v), want that it may have been sent", err, call)
		}
	})
}

// A deadline that has passed ends a call also where the context has no timer, or a later one.
func TestCallEndsAfterItsDeadlineWithoutATimer(t *testing.T) {
	inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
		for _, m := range c.Members() {
			m.DropAnswer("Put", "Range")
		}
		for _, do := range []func(context.Context) error{
			func(ctx context.Context) error { _, err := cli.Put(ctx, "k", "v"); return err },
			func(ctx context.Context) error { _, err := cli.Get(ctx, "k"); return err },
		} {
			began := time.Now()
			err := do(lateContext{t.Context(), began.Add(200 * time.Millisecond)})
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 2*time.Second {
				t.Errorf("%v after %v, want the deadline exceeded soon", err, took)
			}
		}
	})
}

// The words in which etcd ends what it never proposed are gRPC's for any deadline: they count
// only where the member has waited for a leader as long as etcd does.
func TestMutationThatEndsSoonIsNotTakenForOneThatWaitedForALeader(t *testing.T) {
	for _, leaderless := range []bool{false, true} {
		inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
			if leaderless {
				c.Member(0).CutPeers()
				c.Member(1).CutPeers()
				time.Sleep(3 * time.Second)
			}
			for _, m := range c.Members() {
				m.Reject(codes.DeadlineExceeded, context.DeadlineExceeded.Error(), "Put")
			}
			before := len(c.Requests("Put"))
			_, err := cli.Put(t.Context(), "k", "v")
			if n := len(c.Requests("Put")) - before; !client.IsOutcomeUnknown(err) || n != 1 {
				t.Errorf("leaderless %v: %v after %d requests, want one, of unknown outcome", leaderless, err, n)
			}
		})
	}
}
