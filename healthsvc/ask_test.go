package healthsvc

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

func TestAskTellsWhatOneAnswerSays(t *testing.T) {
	srv := NewServer(ServerOptions{})
	conn, _ := serve(t, srv)
	srv.Publish(Report{Identity: member, Reason: ReasonNoQuorum, Read: true, RoundTrip: time.Millisecond})
	n := Ask(t.Context(), conn, "")
	if n.Status != StatusNotServing || n.Reason != ReasonNoQuorum || n.Identity.Member != member.Member || n.ShimRTT != time.Millisecond || n.Err != nil {
		t.Errorf("Ask = %+v, want not serving, no quorum, with the identity", n)
	}
	if n := Ask(t.Context(), conn, ServiceRead); n.Status != StatusServing {
		t.Errorf("Ask for %s = %+v, want serving", ServiceRead, n)
	}
}

func TestAskTellsAbsentFromSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, _ := serve(t, health.NewServer())
		if n := Ask(context.Background(), conn, ""); n.Status != StatusAbsent || status.Code(n.Err) != codes.NotFound {
			t.Errorf("Ask of a server without the service = %+v, want absent", n)
		}
		refused := errors.New("refused")
		if n := Ask(context.Background(), plain(t, func(context.Context) (net.Conn, error) { return nil, refused }), ""); n.Status != StatusUnknown || n.Missed != 1 || n.Err == nil {
			t.Errorf("Ask of a refusing address = %+v, want unknown and why", n)
		}
		hanging, _ := serve(t, &scripted{check: func(ctx context.Context) (*healthpb.HealthCheckResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if n := Ask(ctx, hanging, ""); n.Status != StatusUnknown || status.Code(n.Err) != codes.DeadlineExceeded {
			t.Errorf("Ask of a hanging server = %+v, want unknown and a deadline", n)
		}
	})
}
