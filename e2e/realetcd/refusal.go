//go:build linux

package realetcd

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// refusal refuses new calls and streams on request, as an overloaded server does. The harness's own
// calls pass, and so do those of the health service, which an overloaded server still answers.
type refusal struct {
	harness string // IP address
	on      atomic.Bool
}

// ServeHTTP takes POST /refuse?on=true or on=false.
func (r *refusal) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	on, err := strconv.ParseBool(req.FormValue("on"))
	if req.Method != http.MethodPost || req.URL.Path != "/refuse" || err != nil {
		http.Error(w, "want POST /refuse?on=true or on=false", http.StatusBadRequest)
		return
	}
	r.on.Store(on)
}

func (r *refusal) err(ctx context.Context, method string) error {
	if !r.on.Load() || strings.HasPrefix(method, "/grpc.health.v1.Health/") {
		return nil
	}
	if p, ok := peer.FromContext(ctx); ok {
		if host, _, err := net.SplitHostPort(p.Addr.String()); err == nil && host == r.harness {
			return nil
		}
	}
	return status.Error(codes.ResourceExhausted, "etcdserver: too many requests")
}

func (r *refusal) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := r.err(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

func (r *refusal) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := r.err(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	return handler(srv, stream)
}
