package workload

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
)

// Methods of etcd's API that figures name.
const (
	MethodRange     = "/etcdserverpb.KV/Range"
	MethodPut       = "/etcdserverpb.KV/Put"
	MethodWatch     = "/etcdserverpb.Watch/Watch"
	MethodKeepAlive = "/etcdserverpb.Lease/LeaseKeepAlive"
)

// Attempt is one RPC that a client sent to one address.
type Attempt struct {
	Method  string
	Address string
	Began   time.Time // its headers were written
	Ended   time.Time // zero while it is open
	Err     error     // how it ended
	Watch   string    // of a watch stream that was opened under a name (NameWatch): the name
	Values  []string  `json:",omitempty"` // of a mutation whose message went out: what it puts (Carried)
	Again   bool      `json:",omitempty"` // gRPC itself began it, because the one before never went out or a server said that it had not processed it
}

// Stream says whether the attempt is a watch or keepalive stream.
func (a Attempt) Stream() bool { return a.Method == MethodWatch || a.Method == MethodKeepAlive }

// watchHeader names the watch whose stream carries it.
const watchHeader = "e2e-watch"

// Trace records every attempt of etcd's API that a client makes for a user: a
// Load's, those of contexts marked with AsUser, and all streams. Other calls, such
// as a client's own probes, are left out. Its zero value works; give it to the
// client with DialOption.
type Trace struct {
	mu       sync.Mutex
	attempts []*Attempt
}

// DialOption makes a client record into the trace.
func (t *Trace) DialOption() grpc.DialOption { return grpc.WithStatsHandler(tracer{t}) }

// TraceOf is a trace of attempts that were recorded elsewhere.
func TraceOf(attempts []Attempt) *Trace {
	t := &Trace{attempts: make([]*Attempt, len(attempts))}
	for i := range attempts {
		a := attempts[i]
		t.attempts[i] = &a
	}
	return t
}

// Attempts is a copy of all attempts that match, in order of their begin.
func (t *Trace) Attempts(match func(Attempt) bool) []Attempt {
	t.mu.Lock()
	defer t.mu.Unlock()
	var as []Attempt
	for _, a := range t.attempts {
		if match(*a) {
			as = append(as, *a)
		}
	}
	return as
}

// Open lists the addresses of the open attempts of a method, one for each attempt.
func (t *Trace) Open(method string) []string {
	var addrs []string
	for _, a := range t.Attempts(func(a Attempt) bool { return a.Method == method && a.Ended.IsZero() }) {
		addrs = append(addrs, a.Address)
	}
	slices.Sort(addrs)
	return addrs
}

// Unended counts the attempts of all methods that are open.
func (t *Trace) Unended() int {
	return len(t.Attempts(func(a Attempt) bool { return a.Ended.IsZero() }))
}

func (t *Trace) begin(method, address string, again bool, md metadata.MD) *Attempt {
	a := &Attempt{Method: method, Address: address, Began: time.Now(), Again: again, Watch: strings.Join(md.Get(watchHeader), " ")}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attempts = append(t.attempts, a)
	return a
}

func (t *Trace) end(a *Attempt, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.Ended, a.Err = time.Now(), err
}

func (t *Trace) carries(a *Attempt, values []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.Values = values
}

// tracer is the stats handler of a trace.
type tracer struct{ trace *Trace }

// tag travels with one attempt. gRPC calls HandleRPC for one attempt from several
// goroutines.
type tag struct {
	method string
	mu     sync.Mutex
	again  bool     // gRPC's own second attempt
	filed  *Attempt // nil until the headers went out
}

type tagKey struct{}

// userKey marks the context of a call as the application's. A client that proves a
// member by calls of its own must not have those counted as calls on it. Streams
// need no mark: probes open none of etcd's.
type userKey struct{}

// AsUser marks the calls of a context as the application's own, so that a trace
// records them.
func AsUser(ctx context.Context) context.Context { return context.WithValue(ctx, userKey{}, true) }

// NameWatch gives watches of the context a stream of their own and puts the name
// into the trace. Watches of the same name share the stream.
func NameWatch(ctx context.Context, name string) context.Context {
	// clientv3 opens a stream for each distinct metadata.
	return metadata.AppendToOutgoingContext(ctx, watchHeader, name)
}

// TagRPC implements stats.Handler.
func (h tracer) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if !strings.HasPrefix(info.FullMethodName, "/etcdserverpb.") {
		return ctx
	}
	stream := info.FullMethodName == MethodWatch || info.FullMethodName == MethodKeepAlive
	if !stream && ctx.Value(userKey{}) == nil {
		return ctx // a probe of the client's own
	}
	return context.WithValue(ctx, tagKey{}, &tag{method: info.FullMethodName})
}

// HandleRPC implements stats.Handler.
func (h tracer) HandleRPC(ctx context.Context, s stats.RPCStats) {
	t, ok := ctx.Value(tagKey{}).(*tag)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch s := s.(type) {
	case *stats.Begin:
		t.again = s.IsTransparentRetryAttempt
	case *stats.OutPayload:
		if t.filed != nil {
			h.trace.carries(t.filed, Carried(s.Payload))
		}
	case *stats.OutHeader:
		t.filed = h.trace.begin(t.method, address(s.RemoteAddr), t.again, s.Header)
	case *stats.End:
		if t.filed != nil {
			h.trace.end(t.filed, s.Error)
		}
	}
}

// TagConn implements stats.Handler.
func (h tracer) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (h tracer) HandleConn(context.Context, stats.ConnStats) {}

func address(addr net.Addr) string {
	if addr == nil {
		return ""
	}
	return addr.String()
}
