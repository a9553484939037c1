package fakeetcd

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// check asks a shim, and returns the status and the reason.
func check(ctx context.Context, conn *grpc.ClientConn, service string) (healthpb.HealthCheckResponse_ServingStatus, string, error) {
	var header metadata.MD
	resp, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service}, grpc.Header(&header))
	reason := ""
	if values := header.Get(healthsvc.HeaderReason); len(values) > 0 {
		reason = values[0]
	}
	return resp.GetStatus(), reason, err
}

func TestShimFollowsItsMemberAfterItsReactionTime(t *testing.T) {
	for name, kind := range map[string]Shim{"sidecar": ShimSidecar, "in process": ShimInProcess} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{Shim: kind}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
				m := c.Member(1)
				address := m.ShimAddress
				if kind == ShimInProcess {
					address = m.Address
				}
				conn := connect(t, c, address)
				expect := func(when string, want healthpb.HealthCheckResponse_ServingStatus, wantReason healthsvc.Reason) {
					t.Helper()
					got, reason, err := check(soon(t), conn, healthsvc.ServiceServing)
					if err != nil || got != want || reason != string(wantReason) {
						t.Errorf("%s: got %v %q %v, want %v %q", when, got, reason, err, want, wantReason)
					}
				}
				time.Sleep(time.Second)
				expect("healthy", healthpb.HealthCheckResponse_SERVING, "")
				m.CutPeers()
				time.Sleep(249 * time.Millisecond)
				expect("249 ms after the cut", healthpb.HealthCheckResponse_SERVING, "")
				time.Sleep(2 * time.Millisecond)
				expect("251 ms after the cut", healthpb.HealthCheckResponse_NOT_SERVING, healthsvc.ReasonNoQuorum)
				time.Sleep(2 * time.Second)
				expect("2 s after the cut", healthpb.HealthCheckResponse_NOT_SERVING, healthsvc.ReasonNoLeader)
				m.Heal()
				time.Sleep(399 * time.Millisecond) // 100 ms to rejoin, 300 ms to be sure
				expect("just after the heal", healthpb.HealthCheckResponse_NOT_SERVING, healthsvc.ReasonNoLeader)
				time.Sleep(2 * time.Millisecond)
				expect("401 ms after the heal", healthpb.HealthCheckResponse_SERVING, "")
			})
		})
	}
}

func TestSidecarOutlivesEtcd(t *testing.T) {
	inBubble(t, Options{Shim: ShimSidecar}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		m := c.Member(1)
		conn := connect(t, c, m.ShimAddress)
		for name, fault := range map[string]func(){"killed": m.Kill, "frozen": m.FreezeEtcd} {
			fault()
			time.Sleep(time.Second)
			got, reason, err := check(soon(t), conn, "")
			if err != nil || got != healthpb.HealthCheckResponse_NOT_SERVING || reason != string(healthsvc.ReasonUnreachable) {
				t.Errorf("etcd %s: got %v %q %v, want NOT_SERVING, unreachable", name, got, reason, err)
			}
			m.Restart()
			m.Thaw()
			time.Sleep(time.Second)
			if got, reason, err := check(soon(t), conn, ""); err != nil || got != healthpb.HealthCheckResponse_SERVING {
				t.Errorf("etcd back: got %v %q %v, want SERVING", got, reason, err)
			}
		}
	})
}

func TestShimIsKilledLiesAndReturns(t *testing.T) {
	inBubble(t, Options{Shims: map[int]Shim{1: ShimSidecar}}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		if _, err := c.Dial(soon(t), c.Member(0).ShimAddress); err == nil {
			t.Error("a stock member has something on the shim's port")
		}
		m := c.Member(1)
		conn := connect(t, c, m.ShimAddress)
		m.Lie(&healthsvc.Report{Reason: healthsvc.ReasonDraining})
		time.Sleep(time.Millisecond)
		if got, reason, err := check(soon(t), conn, ""); got != healthpb.HealthCheckResponse_NOT_SERVING || reason != "draining" {
			t.Errorf("lying: got %v %q %v, want NOT_SERVING, draining", got, reason, err)
		}
		m.Lie(nil)
		time.Sleep(time.Millisecond)
		if got, reason, err := check(soon(t), conn, ""); got != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("truthful again: got %v %q %v, want SERVING", got, reason, err)
		}
		m.KillShim()
		if _, _, err := check(soon(t), conn, ""); status.Code(err) != codes.Unavailable {
			t.Errorf("killed: got %v, want Unavailable", err)
		}
		m.RestartShim()
		time.Sleep(10 * time.Second)
		if got, reason, err := check(soon(t), conn, ""); got != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("restarted: got %v %q %v, want SERVING", got, reason, err)
		}
	})
}

func TestEverythingClosesInTheMiddleOfFaults(t *testing.T) {
	for name, fault := range map[string]func(*Member){
		"nothing": func(*Member) {}, "peers cut": (*Member).CutPeers, "frozen": (*Member).Freeze,
		"clients cut": (*Member).CutClient, "killed": (*Member).Kill, "stalled": (*Member).StallDisk,
		"shim killed": (*Member).KillShim, "shim frozen": (*Member).FreezeShim,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{Shim: ShimSidecar}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
				cli.Watch(t.Context(), "k")
				keepAlive(t, cli)
				for _, m := range c.Members() {
					fault(m)
				}
				go func() { _, _ = cli.Get(t.Context(), "k") }()
				time.Sleep(100 * time.Millisecond)
			})
		})
	}
}
