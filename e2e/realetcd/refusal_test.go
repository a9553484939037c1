//go:build linux

package realetcd

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// streamOf is a server stream of a caller.
type streamOf struct {
	grpc.ServerStream
	ctx context.Context
}

func (s streamOf) Context() context.Context { return s.ctx }

func TestRefusedAreAllButTheHarnessAndHealth(t *testing.T) {
	r := &refusal{harness: "10.0.0.1"}
	from := func(ip string) context.Context {
		return peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 5}})
	}
	tell := func(on string) {
		t.Helper()
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/refuse?on="+on, nil))
		if w.Code != http.StatusOK {
			t.Fatalf("on=%s: %d", on, w.Code)
		}
	}
	check := func(name string, ctx context.Context, method string, want codes.Code) {
		t.Helper()
		_, err := r.unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) { return nil, nil })
		if got := status.Code(err); got != want {
			t.Errorf("%s, call: %v; want %v", name, got, want)
		}
		err = r.stream(nil, streamOf{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: method}, func(any, grpc.ServerStream) error { return nil })
		if got := status.Code(err); got != want {
			t.Errorf("%s, stream: %v; want %v", name, got, want)
		}
	}
	const get, health = "/etcdserverpb.KV/Range", "/grpc.health.v1.Health/Check"
	check("before", from("10.0.0.9"), get, codes.OK)
	tell("true")
	check("an application", from("10.0.0.9"), get, codes.ResourceExhausted)
	check("nobody", t.Context(), get, codes.ResourceExhausted)
	check("the harness", from("10.0.0.1"), get, codes.OK)
	check("health", from("10.0.0.9"), health, codes.OK)
	tell("false")
	check("after", from("10.0.0.9"), get, codes.OK)
}

func TestRefusalIsToldExactly(t *testing.T) {
	for _, tc := range []struct{ method, path string }{
		{http.MethodGet, "/refuse?on=true"}, {http.MethodPost, "/refuse"}, {http.MethodPost, "/refuse?on=maybe"}, {http.MethodPost, "/other?on=true"},
	} {
		r := new(refusal)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(tc.method, tc.path, nil))
		if w.Code != http.StatusBadRequest || r.on.Load() {
			t.Errorf("%s %s: %d, refuses: %v; want it rejected", tc.method, tc.path, w.Code, r.on.Load())
		}
	}
}
