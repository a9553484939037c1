package client

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quorumwise/quorumwise/picker"
)

// slowKV answers a Put after a while, and counts them.
type slowKV struct {
	pb.UnimplementedKVServer
	puts chan string
	wait time.Duration
}

func (s *slowKV) Put(ctx context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	s.puts <- string(r.Value)
	select {
	case <-time.After(s.wait):
	case <-ctx.Done():
	}
	return &pb.PutResponse{}, ctx.Err()
}

// narrow are two servers, the first of which takes one call at a time, and a
// connection to both by way of the interceptor.
func narrow(t *testing.T, a *Attachment, inner ...grpc.UnaryClientInterceptor) (*grpc.ClientConn, [2]*slowKV) {
	var servers [2]*slowKV
	var listeners [2]*bufconn.Listener
	for i := range servers {
		servers[i] = &slowKV{puts: make(chan string, 10), wait: time.Duration(1-i) * time.Minute}
		listeners[i] = bufconn.Listen(1 << 16)
		srv := grpc.NewServer(grpc.MaxConcurrentStreams(1))
		pb.RegisterKVServer(srv, servers[i])
		go srv.Serve(listeners[i])
		t.Cleanup(srv.Stop)
	}
	service, err := serviceConfig(a.hub)
	if err != nil {
		t.Fatal(err)
	}
	r := manual.NewBuilderWithScheme("narrow")
	r.InitialState(resolver.State{Endpoints: []resolver.Endpoint{
		{Addresses: []resolver.Address{{Addr: "0"}}}, {Addresses: []resolver.Address{{Addr: "1"}}},
	}})
	conn, err := grpc.NewClient("narrow:///x", grpc.WithResolvers(r), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDisableServiceConfig(), grpc.WithDefaultServiceConfig(service), grpc.WithChainUnaryInterceptor(append([]grpc.UnaryClientInterceptor{a.unary}, inner...)...),
		grpc.WithChainStreamInterceptor(a.stream),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return listeners[addr[0]-'0'].DialContext(ctx)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.Connect()
	return conn, servers
}

// A mutation that was given to a member but never left (here for want of a
// stream) is sent, once, to another; the one that had left is of unknown outcome.
func TestOnlyAMutationThatNeverLeftIsSentElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Attachment{hub: picker.NewHub(), wake: make(chan struct{}, 1)}
		defer a.hub.Close()
		conn, servers := narrow(t, a)
		kv := pb.NewKVClient(conn)
		synctest.Wait()
		a.hub.SetGrades(map[string]picker.Grade{"0": picker.Healthy})
		results := make(chan error, 2)
		put := func(value string) {
			_, err := kv.Put(t.Context(), &pb.PutRequest{Key: []byte("k"), Value: []byte(value)})
			results <- err
		}
		go put("first")
		synctest.Wait()
		go put("second")
		synctest.Wait()
		calls := a.hub.Calls("0")
		if len(calls) != 2 || len(servers[0].puts) != 1 {
			t.Fatalf("%d calls in flight, %d arrived at the server that takes one at a time; want 2 and 1", len(calls), len(servers[0].puts))
		}
		a.hub.SetGrades(map[string]picker.Grade{"0": picker.Unhealthy, "1": picker.Healthy})
		// The one that waits goes first: the end of the other makes room, and then it
		// may leave before it learns that it was ended.
		for _, c := range []*picker.Call{calls[1], calls[0]} {
			a.end(c, &MovedError{Endpoint: "0", Reason: "test", Method: c.Method(), Mutation: true})
			synctest.Wait()
		}
		unknown, done := 0, 0
		for range 2 {
			var moved *MovedError
			switch err := <-results; {
			case err == nil:
				done++
			case errors.As(err, &moved) && IsOutcomeUnknown(err):
				unknown++
			default:
				t.Errorf("Put: %v", err)
			}
		}
		if unknown != 1 || done != 1 {
			t.Errorf("%d of unknown outcome, %d done; want one each", unknown, done)
		}
		if len(servers[0].puts) != 1 || len(servers[1].puts) != 1 || <-servers[0].puts != "first" || <-servers[1].puts != "second" {
			t.Error("a Put arrived twice, or at the wrong server; want the first at 0 and the second at 1")
		}
	})
}

// The member's own answer was quicker than the decision to leave it: it stands.
func TestAnswerThatCameBeforeTheEndStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Attachment{hub: picker.NewHub(), wake: make(chan struct{}, 1)}
		defer a.hub.Close()
		refused := status.Error(codes.ResourceExhausted, "refused")
		endLate := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			go invoke(ctx, method, req, reply, cc, opts...)
			synctest.Wait()
			for _, c := range a.hub.Calls("0") {
				a.end(c, &MovedError{Endpoint: "0", Reason: "test", Method: method, Mutation: true})
			}
			synctest.Wait()
			return refused
		}
		conn, servers := narrow(t, a, endLate)
		kv := pb.NewKVClient(conn)
		synctest.Wait()
		a.hub.SetGrades(map[string]picker.Grade{"0": picker.Healthy})
		_, err := kv.Put(t.Context(), &pb.PutRequest{Key: []byte("k")})
		if !errors.Is(err, refused) || IsOutcomeUnknown(err) || len(servers[0].puts)+len(servers[1].puts) != 1 {
			t.Errorf("Put: %v after %d arrivals, want the member's own refusal after one", err, len(servers[0].puts)+len(servers[1].puts))
		}
		if n := a.moves.all()[MoveKind{"mutation", otherReason}]; n != 1 {
			t.Errorf("the call was ended %d times, want once: this tests nothing else", n)
		}
	})
}

// A stream that was given to a member but could not be opened there before the
// member was given up is opened elsewhere, unnoticed.
func TestStreamThatNeverLeftIsOpenedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Attachment{hub: picker.NewHub(), wake: make(chan struct{}, 1)}
		defer a.hub.Close()
		conn, _ := narrow(t, a)
		synctest.Wait()
		a.hub.SetGrades(map[string]picker.Grade{"0": picker.Healthy})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{}) // takes the one place
		synctest.Wait()
		opened := make(chan error, 1)
		go func() { _, err := pb.NewWatchClient(conn).Watch(ctx); opened <- err }()
		synctest.Wait()
		calls := a.hub.Calls("0")
		if len(calls) != 2 || len(opened) != 0 {
			t.Fatalf("%d calls in flight, %d streams opened; want the Put and the stream that waits for it", len(calls), len(opened))
		}
		a.hub.SetGrades(map[string]picker.Grade{"0": picker.Unhealthy, "1": picker.Healthy})
		a.end(calls[1], &MovedError{Endpoint: "0", Reason: "test", Method: methodWatch})
		if err := <-opened; err != nil {
			t.Errorf("opening the stream: %v, want it opened at the other server", err)
		}
	})
}

// A stream that ends by itself frees what it holds although its caller's context
// goes on.
func TestStreamThatEndedHoldsNothing(t *testing.T) {
	a := &Attachment{hub: picker.NewHub(), wake: make(chan struct{}, 1)}
	defer a.hub.Close()
	var finish func(error)
	var below context.Context
	_, _, err := a.open(t.Context(), picker.ClassWatch, methodWatch, func(ctx context.Context, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		below = ctx
		for _, o := range opts {
			if f, ok := o.(grpc.OnFinishCallOption); ok {
				finish = f.OnFinish
			}
		}
		return nil, nil
	}, nil)
	if err != nil || finish == nil || below.Err() != nil {
		t.Fatalf("open: %v, told of the end: %v, context: %v", err, finish != nil, below.Err())
	}
	finish(nil)
	if below.Err() == nil {
		t.Error("the context of a stream that has ended goes on: each stream leaves one behind")
	}
}
