package healthsvc

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// answer is what one poll brought.
type answer struct {
	poll    int // which poll, as the follower numbered it
	at      time.Time
	status  healthpb.HealthCheckResponse_ServingStatus
	headers headers
	err     error
}

// push is one message of a Watch stream.
type push struct {
	at      time.Time
	status  healthpb.HealthCheckResponse_ServingStatus
	headers *headers // of the stream's first message; nil on all others
}

// listener makes the calls that the follower asks for.
type listener struct {
	client  healthpb.HealthClient
	service string
	answers chan answer
	pushes  chan push // capacity 1 and one writer at a time: holds the newest unread push
	ended   chan error
}

func newListener(conn grpc.ClientConnInterface, service string) *listener {
	return &listener{
		client:  healthpb.NewHealthClient(conn),
		service: service,
		answers: make(chan answer),
		pushes:  make(chan push, 1),
		ended:   make(chan error),
	}
}

// poll makes one call and delivers its answer unless ctx, the poll's own, ends first. It has no
// deadline: whether a poll is late is decided by who knows whether it was late itself.
func (l *listener) poll(ctx context.Context, number int) {
	a := l.ask(ctx)
	a.poll = number
	select {
	case l.answers <- a:
	case <-ctx.Done():
	}
}

func (l *listener) ask(ctx context.Context) answer {
	var md metadata.MD
	resp, err := l.client.Check(ctx, &healthpb.HealthCheckRequest{Service: l.service},
		grpc.Header(&md), grpc.WaitForReady(false))
	return answer{at: time.Now(), status: resp.GetStatus(), headers: parseHeaders(md), err: err}
}

// watch reads one Watch stream to its end. It always reads on, so that a server that floods us
// fills no buffer, and keeps only the newest message.
func (l *listener) watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := l.read(ctx)
	select {
	case l.ended <- err:
	case <-ctx.Done():
	}
}

func (l *listener) read(ctx context.Context) error {
	stream, err := l.client.Watch(ctx, &healthpb.HealthCheckRequest{Service: l.service}, grpc.WaitForReady(false))
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		resp, err := stream.Recv()
		if err != nil {
			return err
		}
		p := push{at: time.Now(), status: resp.GetStatus()}
		if first {
			// Header does not block after a message.
			md, _ := stream.Header()
			h := parseHeaders(md)
			p.headers = &h
		}
		select {
		case <-l.pushes:
		default:
		}
		l.pushes <- p
	}
}

// absence says what an error of a poll proves.
type absence int

const (
	// absenceNone: nothing answered, as far as one can tell.
	absenceNone absence = iota
	// absencePossible: something answered that does not know what we want or does not want us. It
	// may be a broken stream too; only several in a row count.
	absencePossible
	// absenceCertain: a gRPC server answered that it has no such service.
	absenceCertain
)

// classify decides by code alone. A server that speaks only HTTP/1 looks like a broken connection,
// Unavailable, and stays one for us; gRPC gives what an HTTP/2 server without gRPC says as
// Unimplemented, Unknown, Internal or a refusal.
func classify(err error) absence {
	switch status.Code(err) {
	case codes.Unimplemented, codes.NotFound:
		return absenceCertain
	case codes.OK, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.ResourceExhausted, codes.Aborted:
		return absenceNone
	default:
		return absencePossible
	}
}
