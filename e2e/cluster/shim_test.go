package cluster

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// mustReport waits until a shim at addr says want of etcd.serving.
func mustReport(t *testing.T, addr string, want healthpb.HealthCheckResponse_ServingStatus) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	var last any
	err = poll(ctx, "a report", func() bool {
		resp, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: healthsvc.ServiceServing}, grpc.WaitForReady(true))
		if err != nil {
			last = err
			return false
		}
		last = resp.Status
		return resp.Status == want
	})
	if err != nil {
		t.Fatalf("shim at %s says %v, want %v", addr, last, want)
	}
}

// lastWord kills the shim beside a member and returns what it said last to who watched it.
func lastWord(t *testing.T, m *Member) (last healthpb.HealthCheckResponse_ServingStatus) {
	t.Helper()
	conn, err := grpc.NewClient(m.ShimAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	watch, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{Service: healthsvc.ServiceServing}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	for first := true; ; first = false {
		resp, err := watch.Recv()
		switch {
		case ctx.Err() != nil:
			t.Fatal("the watch on a killed shim did not end")
		case err != nil && first:
			t.Fatalf("before it was killed the shim said nothing: %v", err)
		case err != nil:
			return last
		}
		last = resp.Status
		if first {
			if err := m.KillShim(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestShimsOfEachKind(t *testing.T) {
	t.Run("a sidecar reports, dies silently and comes back", func(t *testing.T) {
		c := start(t, Config{Members: 1, Shim: ShimSidecar})
		m := c.Members()[0]
		v, err := c.View("app")
		if err != nil {
			t.Fatal(err)
		}
		mustReport(t, v.Shim(v.Endpoint(m)), healthpb.HealthCheckResponse_SERVING)
		// A busy machine may make it say no before it is killed, but not each time.
		for try := 1; ; try++ {
			last := lastWord(t, m)
			if err := m.StartShim(); err != nil {
				t.Fatal(err)
			}
			mustReport(t, m.ShimAddr(), healthpb.HealthCheckResponse_SERVING)
			if last == healthpb.HealthCheckResponse_SERVING {
				break
			}
			if try == 3 {
				t.Fatalf("a killed shim still said %v; want a connection that just ends, as SIGKILL gives", last)
			}
		}
	})
	t.Run("one in process answers on the client port", func(t *testing.T) {
		c := start(t, Config{Members: 1, Shim: ShimInProcess})
		m := c.Members()[0]
		if got := m.ShimAddr(); got != "" {
			t.Errorf("shim address %q; want none of its own", got)
		}
		mustReport(t, m.ClientAddr(), healthpb.HealthCheckResponse_SERVING)
	})
	t.Run("a liar says no of a healthy member", func(t *testing.T) {
		c := start(t, Config{Members: 1, Shim: ShimLying})
		m := c.Members()[0]
		mustReport(t, m.ShimAddr(), healthpb.HealthCheckResponse_NOT_SERVING)
		if err := read(t, dial(t, m.ClientAddr()), soon); err != nil {
			t.Errorf("a read through the member: %v; want none wrong with it", err)
		}
	})
}

func TestArrivalsAreToldBeforeTheyAreHandled(t *testing.T) {
	seen := make(chan Arrival, 100)
	c := start(t, Config{Members: 1, Arrived: func(a Arrival) {
		select {
		case seen <- a:
		default:
		}
	}})
	m := c.Members()[0]
	if err := read(t, dial(t, m.ClientAddr()), soon); err != nil {
		t.Fatal(err)
	}
	for a := range seen {
		if a.Method == "/etcdserverpb.KV/Range" {
			if a.Member != m.Name() || a.Request == nil {
				t.Errorf("arrival %+v; want the member and the request", a)
			}
			return
		}
	}
}
