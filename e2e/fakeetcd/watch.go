package fakeetcd

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// everyWatch is the id of an answer that is meant for all watches of a stream, or for none.
const everyWatch = -1

type watchServer struct {
	pb.UnimplementedWatchServer
	m *Member
}

// watcher is one watch of a stream.
type watcher struct {
	request *pb.WatchCreateRequest
	next    int64     // revision of the first event still to be sent
	quiet   time.Time // since when nothing has been sent
}

// watchStream is the state of one stream; its handler's goroutine owns it.
type watchStream struct {
	m        *Member
	stream   pb.Watch_WatchServer
	watchers map[int64]*watcher
	lastID   int64
}

// Watch serves one stream. Requests are read in a goroutine of their own, which ends with the call.
func (s *watchServer) Watch(stream pb.Watch_WatchServer) error {
	requests, broken := make(chan *pb.WatchRequest), make(chan error, 1)
	go receive(stream.Context(), stream.Recv, requests, broken)
	ws := &watchStream{m: s.m, stream: stream, watchers: make(map[int64]*watcher), lastID: -1}
	for {
		changed, err := ws.deliver()
		if err != nil {
			return err
		}
		timer := time.NewTimer(ws.nextProgress())
		select {
		case r := <-requests:
			err = ws.handle(r)
		case <-changed:
		case <-timer.C:
			err = ws.progress()
		case err = <-broken:
			timer.Stop()
			return err
		case <-stream.Context().Done():
			err = watchError(stream.Context())
		}
		timer.Stop()
		if err != nil {
			return err
		}
	}
}

// receive hands on what arrives on a stream until it breaks; a nil error says that the client has
// nothing more to send.
func receive[T any](ctx context.Context, recv func() (T, error), to chan<- T, broken chan<- error) {
	for {
		r, err := recv()
		if err != nil {
			broken <- ended(err)
			return
		}
		select {
		case to <- r:
		case <-ctx.Done():
			return
		}
	}
}

// watchError returns why a watch stream ended.
func watchError(ctx context.Context) error {
	if err := contextError(ctx); status.Code(err) != codes.Canceled {
		return err
	}
	return rpctypes.ErrGRPCWatchCanceled
}

func (ws *watchStream) handle(r *pb.WatchRequest) error {
	switch u := r.RequestUnion.(type) {
	case *pb.WatchRequest_CreateRequest:
		ws.m.record("/etcdserverpb.Watch/Watch", u.CreateRequest)
		return ws.create(u.CreateRequest)
	case *pb.WatchRequest_CancelRequest:
		if _, ok := ws.watchers[u.CancelRequest.WatchId]; !ok {
			return nil
		}
		delete(ws.watchers, u.CancelRequest.WatchId)
		return ws.send(&pb.WatchResponse{WatchId: u.CancelRequest.WatchId, Canceled: true})
	case *pb.WatchRequest_ProgressRequest:
		if len(ws.watchers) == 0 {
			return nil
		}
		return ws.send(&pb.WatchResponse{WatchId: everyWatch})
	}
	return nil
}

func (ws *watchStream) create(r *pb.WatchCreateRequest) error {
	if err := ws.m.authorize(ws.stream.Context()); err != nil {
		return ws.send(&pb.WatchResponse{
			WatchId: everyWatch, Created: true, Canceled: true, CancelReason: err.Error(),
		})
	}
	if refusal := ws.refusal(); refusal != nil {
		if err := ws.send(&pb.WatchResponse{
			WatchId: everyWatch, Created: true, Canceled: true, CancelReason: refusal.Message(),
		}); err != nil {
			return err
		}
		return refusal.Err()
	}
	if len(r.Key) == 0 {
		r.Key = []byte{0}
	}
	applied := ws.applied()
	w := &watcher{request: r, next: r.StartRevision, quiet: time.Now()}
	if w.next <= 0 {
		w.next = applied + 1
	}
	ws.lastID++
	ws.watchers[ws.lastID] = w
	return ws.send(&pb.WatchResponse{WatchId: ws.lastID, Created: true})
}

func (ws *watchStream) refusal() *status.Status {
	ws.m.c.mu.Lock()
	defer ws.m.c.mu.Unlock()
	return ws.m.refusal
}

func (ws *watchStream) applied() int64 {
	ws.m.c.mu.Lock()
	defer ws.m.c.mu.Unlock()
	return ws.m.node().revision
}

// send fills in the header and sends an answer.
func (ws *watchStream) send(resp *pb.WatchResponse) error {
	ws.m.c.mu.Lock()
	resp.Header = ws.m.header(ws.m.node().revision)
	ws.m.c.mu.Unlock()
	return ws.stream.Send(resp)
}

// deliver sends what the member has applied and the watches have not had, and returns the channel
// that is closed when there may be more.
func (ws *watchStream) deliver() (<-chan struct{}, error) {
	ws.m.c.mu.Lock()
	changed := ws.m.c.changed
	var answers []*pb.WatchResponse
	for id, w := range ws.watchers {
		if answer := ws.collect(id, w); answer != nil {
			answers = append(answers, answer)
		}
	}
	ws.m.c.mu.Unlock()
	for _, answer := range answers {
		if err := ws.stream.Send(answer); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

// collect returns the next answer for one watch, nil if there is nothing to say. c.mu is held.
func (ws *watchStream) collect(id int64, w *watcher) *pb.WatchResponse {
	store, applied := ws.m.c.store, ws.m.node().revision
	if w.next < store.compacted {
		delete(ws.watchers, id)
		return &pb.WatchResponse{
			Header: ws.m.header(applied), WatchId: id, Canceled: true, CompactRevision: store.compacted,
		}
	}
	if w.next > applied {
		return nil
	}
	var events []*mvccpb.Event
	for _, e := range store.since(w.next, applied) {
		if w.wants(e) {
			events = append(events, w.dress(store, e))
		}
	}
	w.next = applied + 1
	if len(events) == 0 {
		return nil
	}
	w.quiet = time.Now()
	return &pb.WatchResponse{Header: ws.m.header(applied), WatchId: id, Events: events}
}

func (w *watcher) wants(e *mvccpb.Event) bool {
	if !within(e.Kv.Key, w.request.Key, w.request.RangeEnd) {
		return false
	}
	for _, f := range w.request.Filters {
		if f == pb.WatchCreateRequest_NOPUT && e.Type == mvccpb.Event_PUT ||
			f == pb.WatchCreateRequest_NODELETE && e.Type == mvccpb.Event_DELETE {
			return false
		}
	}
	return true
}

// dress adds the previous value if the watch wants it and it has not been compacted.
func (w *watcher) dress(s *store, e *mvccpb.Event) *mvccpb.Event {
	if !w.request.PrevKv || e.Kv.ModRevision-1 < s.compacted {
		return e
	}
	return &mvccpb.Event{Type: e.Type, Kv: e.Kv, PrevKv: s.get(string(e.Kv.Key), e.Kv.ModRevision-1)}
}

// nextProgress returns how long until a quiet watch that asked for it is told its progress.
func (ws *watchStream) nextProgress() time.Duration {
	wait := ws.m.c.opts.Progress
	for _, w := range ws.watchers {
		if w.request.ProgressNotify {
			wait = min(wait, max(0, time.Until(w.quiet.Add(ws.m.c.opts.Progress))))
		}
	}
	return wait
}

// progress tells the quiet watches that asked for it how far they are.
func (ws *watchStream) progress() error {
	now := time.Now()
	for id, w := range ws.watchers {
		if !w.request.ProgressNotify || now.Before(w.quiet.Add(ws.m.c.opts.Progress)) {
			continue
		}
		w.quiet = now
		if err := ws.send(&pb.WatchResponse{WatchId: id}); err != nil {
			return err
		}
	}
	return nil
}
