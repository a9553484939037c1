package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// fillConnection freezes a member and sends it more than its connection holds. The calls are
// open until the function that it returns has ended them.
func fillConnection(t *testing.T, cli *clientv3.Client, m *fakeetcd.Member) (end func()) {
	t.Helper()
	m.Freeze()
	ctx, cancel := context.WithCancel(t.Context())
	for range 4000 {
		go func() { _, _ = cli.Put(ctx, "k", strings.Repeat("x", 200)) }()
	}
	time.Sleep(100 * time.Millisecond)
	return func() {
		cancel()
		time.Sleep(10 * time.Millisecond)
	}
}

// gRPC waits 5 s for its farewell to go out, which it never does where the send buffer is
// full. What the connection is secured with must not matter, nor who says so.
func TestCloseTakesNoLongerWhereAMemberReadsNothing(t *testing.T) {
	plain := func(*clientv3.Config, *authority) {}
	for name, tt := range map[string]struct {
		secure bool
		set    func(*clientv3.Config, *authority)
	}{
		"insecure": {false, plain},
		"TLS":      {true, func(cfg *clientv3.Config, ca *authority) { cfg.TLS = ca.client() }},
		"the user's own credentials": {true, func(cfg *clientv3.Config, ca *authority) {
			cfg.DialOptions = append(cfg.DialOptions, grpc.WithTransportCredentials(credentials.NewTLS(ca.client())))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opts fakeetcd.Options
				ca := newAuthority(t)
				if tt.secure {
					opts.Credentials = func(index int) credentials.TransportCredentials { return ca.server(fmt.Sprintf("fake-%d", index+1)) }
				}
				c := fakeetcd.New(3, opts)
				defer c.Close()
				cfg := c.ClientConfig()
				tt.set(&cfg, ca)
				cli := newClientOf(t, cfg, options{})
				settle(t, cli)
				fillConnection(t, cli.Client, c.Member(1))()
				closeInTime(t, cli)
			})
		})
	}
}

// gRPC says farewell to a removed endpoint before it does anything else for the client.
func TestEndpointThatReadsNothingIsRemovedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{})
		defer c.Close()
		cli := newClient(t, c, options{})
		settle(t, cli)
		fillConnection(t, cli.Client, c.Member(1))()
		removed := make(chan time.Duration, 1)
		go func() {
			began := time.Now()
			cli.SetEndpoints(c.Endpoints()[0], c.Endpoints()[2])
			removed <- time.Since(began)
		}()
		time.Sleep(50 * time.Millisecond)
		closeInTime(t, cli)
		if took := <-removed; took > time.Second {
			t.Errorf("SetEndpoints took %v, want at most 1s", took)
		}
	})
}

// counted is a connection that says when it is closed.
type counted struct {
	net.Conn
	once sync.Once
	open *atomic.Int32
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// What it could not send keeps such a connection for good, though its calls have ended.
func TestConnectionOfARemovedEndpointThatReadsNothingEndsWithTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{})
		defer c.Close()
		var open atomic.Int32
		cfg := c.ClientConfig()
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			raw, err := c.Dial(ctx, address)
			if err != nil {
				return nil, err
			}
			open.Add(1)
			return &counted{Conn: raw, open: &open}, nil
		}))
		cli := newClientOf(t, cfg, options{})
		settle(t, cli)
		end := fillConnection(t, cli.Client, c.Member(1))
		cli.SetEndpoints(c.Endpoints()[0], c.Endpoints()[2])
		end()
		closeInTime(t, cli)
		time.Sleep(time.Second)
		if n := open.Load(); n != 0 {
			t.Errorf("%d connections are open 1s after Close, want none", n)
		}
	})
}

// Attach is for those who close the official client themselves.
func TestCloseOfTheOfficialClientTakesNoLongerWhereAMemberReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
		defer c.Close()
		cfg := c.ClientConfig()
		att, err := client.Attach(&cfg, options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer att.Close()
		cli, err := clientv3.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cli.Get(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		fillConnection(t, cli, c.Member(1))()
		began := time.Now()
		cli.Close()
		if took := time.Since(began); took > time.Second {
			t.Errorf("Close took %v, want at most 1s", took)
		}
	})
}

// Connections that the user made are the user's to close.
func TestConnectionThatTheUserDialledOutlivesTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
		defer c.Close()
		cli := newClient(t, c, options{})
		settle(t, cli)
		conn, err := cli.Dial(c.Endpoints()[0])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		stream, err := pb.NewWatchClient(conn).Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		create := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte("k")}}}
		if err := stream.Send(create); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		closeInTime(t, cli)
		time.Sleep(10 * time.Second)
		c.Put("k", "v")
		if got, err := stream.Recv(); err != nil || len(got.GetEvents()) != 1 {
			t.Errorf("after the client's Close the watch on the connection brings %v, %v; want the one event", got, err)
		}
	})
}

// Whether an endpoint is secure is its own scheme's to say, also beside a secure main connection.
func TestDialGoesByTheSchemeOfItsEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		c := fakeetcd.New(3, fakeetcd.Options{Credentials: func(index int) credentials.TransportCredentials {
			if index > 0 {
				return nil
			}
			return ca.server("fake-1")
		}})
		defer c.Close()
		cfg := c.ClientConfig()
		cfg.Endpoints, cfg.TLS = []string{"https://" + c.Endpoints()[0]}, ca.client()
		cli := newClientOf(t, cfg, options{})
		defer closeInTime(t, cli)
		if _, err := cli.Get(t.Context(), "k"); err != nil {
			t.Errorf("Get over TLS: %v", err)
		}
		for i, scheme := range []string{"https://", "http://", "http://"} {
			if _, err := cli.Status(t.Context(), scheme+c.Endpoints()[i]); err != nil {
				t.Errorf("Status of %s%s: %v", scheme, c.Endpoints()[i], err)
			}
		}
	})
}
