package picker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/picker"
)

// etcdClient is the official client with the policy passed in the only place
// where it can be: its dial options, which its side connections get as well.
func etcdClient(t *testing.T, f *fleet, hub *picker.Hub, n int) *clientv3.Client {
	t.Helper()
	var urls []string
	for _, a := range addrs(n) {
		urls = append(urls, "http://"+a)
	}
	hub.SetMain(addrs(n))
	cli, err := clientv3.New(clientv3.Config{
		Endpoints: urls,
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(f.dial),
			grpc.WithDisableServiceConfig(),
			grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":` + hub.LoadBalancingConfig() + `}`),
			grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				ctx, call := hub.Begin(ctx, picker.ClassRead, method)
				defer call.Finish()
				return invoke(ctx, method, req, reply, cc, opts...)
			}),
			grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				class := picker.ClassStream
				if method == pb.Watch_Watch_FullMethodName {
					class = picker.ClassWatch
				}
				ctx, call := hub.Begin(ctx, class, method)
				context.AfterFunc(ctx, call.Finish)
				s, err := streamer(ctx, desc, cc, method, opts...)
				return movedStream{s, call}, err
			}),
		},
	})
	if err != nil {
		t.Fatalf("clientv3.New: %v", err)
	}
	t.Cleanup(func() { _ = cli.Close() })
	return cli
}

func TestOfficialClientPicksByGradeWhileItsSideConnectionsDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4)
		hub := picker.NewHub()
		defer hub.Close()
		cli := etcdClient(t, f, hub, 3)
		hub.SetGrades(grades{addr(1): picker.Unhealthy, addr(3): picker.Healthy})
		get := func() uint64 {
			t.Helper()
			resp, err := cli.Get(t.Context(), "k")
			if err != nil {
				t.Fatalf("Get: %v", err)
			}
			return resp.Header.MemberId
		}
		endpoints := func() []string {
			var out []string
			for _, e := range hub.Endpoints() {
				out = append(out, e.Address)
			}
			return out
		}

		// A side connection before the main one has been used.
		st, err := cli.Status(t.Context(), "http://"+addr(1))
		if err != nil || st.Header.MemberId != 1 {
			t.Fatalf("Status of 1: answered by %d, %v", st.Header.MemberId, err)
		}
		if got := endpoints(); got != nil {
			t.Errorf("endpoints %v, want none: that was a side connection", got)
		}
		get() // connects
		synctest.Wait()
		for range 6 {
			if got := get(); got != 3 {
				t.Errorf("Get answered by %d, want 3, the healthy one", got)
			}
		}

		// Side connections go where they are told, and disturb nothing.
		for i := 1; i <= 3; i++ {
			st, err := cli.Status(t.Context(), "http://"+addr(i))
			if err != nil || st.Header.MemberId != uint64(i) {
				t.Errorf("Status of %d: answered by %d, %v", i, st.Header.MemberId, err)
			}
		}
		side, err := cli.Dial("http://" + addr(1))
		if err != nil {
			t.Fatalf("Dial: %v", err)
		}
		defer func() { _ = side.Close() }()
		resp, err := pb.NewKVClient(side).Range(t.Context(), &pb.RangeRequest{Key: []byte("k")})
		if err != nil || resp.Header.MemberId != 1 {
			t.Errorf("over Dial(1): answered by %d, %v", resp.Header.MemberId, err)
		}
		if got := endpoints(); !slices.Equal(got, addrs(3)) {
			t.Errorf("endpoints %v, want %v", got, addrs(3))
		}

		// New endpoints, which no longer equal the configured ones.
		cli.SetEndpoints("http://"+addr(2), "http://"+addr(4))
		hub.SetGrades(grades{addr(4): picker.Healthy})
		synctest.Wait()
		for range 4 {
			if got := get(); got != 4 {
				t.Errorf("after SetEndpoints: answered by %d, want 4", got)
			}
		}
		if got := endpoints(); !slices.Equal(got, []string{addr(2), addr(4)}) {
			t.Errorf("endpoints %v after SetEndpoints, want 2 and 4", got)
		}

		// To a single one, at which a side connection points too.
		cli.SetEndpoints("http://" + addr(1))
		synctest.Wait()
		if got := get(); got != 1 {
			t.Errorf("answered by %d, want 1, the only one left", got)
		}
		if got := endpoints(); !slices.Equal(got, addrs(1)) {
			t.Errorf("endpoints %v, want 1 alone", got)
		}
	})
}

// movedStream is what an interceptor has to make of an ended call: an error that
// the official client resumes a watch after.
type movedStream struct {
	grpc.ClientStream
	call *picker.Call
}

func (s movedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if cause := s.call.Cause(); err != nil && cause != nil {
		return status.Error(codes.Unavailable, cause.Error())
	}
	return err
}

// Not in a bubble: a watch of the official client waits on a channel of its
// package, so that in a bubble time would stand still.
func TestOfficialClientsWatchIsMovedByEndingItsStream(t *testing.T) {
	f := newFleet(t, 2)
	f.members[addr(2)].set(func(m *member) { m.event = true })
	hub := picker.NewHub()
	defer hub.Close()
	ready := make(chan struct{}, 1)
	hub.OnChange(func() {
		for _, e := range hub.Endpoints() {
			if e.State != connectivity.Ready {
				return
			}
		}
		if len(hub.Endpoints()) == 2 {
			select {
			case ready <- struct{}{}:
			default:
			}
		}
	})
	cli := etcdClient(t, f, hub, 2)
	hub.SetGrades(grades{addr(1): picker.Healthy})
	cli.ActiveConnection().Connect()
	<-ready
	ch := cli.Watch(t.Context(), "k", clientv3.WithCreatedNotify())
	if resp := <-ch; !resp.Created || resp.Header.MemberId != 1 {
		t.Fatalf("first on the watch: %+v, want that 1 has created it", resp)
	}
	calls := hub.Calls(addr(1))
	if len(calls) != 1 || calls[0].Class() != picker.ClassWatch {
		t.Fatalf("calls on 1: %v, want the watch stream", calls)
	}
	hub.SetGrades(grades{addr(1): picker.Unhealthy, addr(2): picker.Healthy})
	if !calls[0].End(errors.New("moved")) || len(hub.Calls(addr(1))) != 0 {
		t.Error("not ended, or still listed after End")
	}
	resp, open := <-ch
	if !open || len(resp.Events) != 1 || resp.Header.MemberId != 2 {
		t.Errorf("next on the watch: %+v, open %v; want an event from 2, the channel still open", resp, open)
	}
	if got := hub.Calls(addr(2)); len(got) != 1 {
		t.Errorf("calls on 2: %v, want the watch stream", got)
	}
}
