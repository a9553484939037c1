package inproc

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/server/v3/etcdserver"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/quorumwise/quorumwise/membership"
)

// Source asks one etcd server. Make one with [NewSource].
type Source struct {
	server  *etcdserver.EtcdServer
	reading chan struct{} // holds one token while a read is under way
}

// NewSource returns a source on a server that has been started. It does not own
// the server, and goes on to answer, with membership.ErrStopped, after its end.
func NewSource(server *etcdserver.EtcdServer) *Source {
	return &Source{server: server, reading: make(chan struct{}, 1)}
}

// Prove completes one linearizable read: a read-index round, and a read of the
// store after it. The round alone goes on to complete while the storage stalls.
// Unlike membership.Remote it proves on a learner as well, since nothing refuses
// it; Observe tells that it is one.
func (s *Source) Prove(ctx context.Context) error {
	const call = "linearizable read"
	if err := s.server.LinearizableReadNotify(ctx); err != nil {
		return s.explain(call, err)
	}
	return s.read(ctx, call)
}

// Read completes one read of the local store.
func (s *Source) Read(ctx context.Context) error { return s.read(ctx, "serializable read") }

func (s *Source) read(ctx context.Context, call string) error {
	if err := s.stopped(); err != nil {
		return s.explain(call, err)
	}
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return s.explain(call+", behind one that has not come back,", ctx.Err())
	}
	// The store takes locks that no context ends, and a stalled disk may hold them.
	done := make(chan error, 1)
	go func() {
		_, err := s.server.KV().Range(ctx, []byte{0}, nil, mvcc.RangeOptions{CountOnly: true})
		<-s.reading
		done <- err
	}()
	select {
	case err := <-done:
		return s.explain(call, err)
	case <-ctx.Done():
		return s.explain(call, ctx.Err())
	}
}

// stopped guards the store, which is closed when the server has stopped.
func (s *Source) stopped() error {
	select {
	case <-s.server.StoppingNotify():
		return etcderrors.ErrStopped
	case <-s.server.StopNotify():
		return etcderrors.ErrStopped
	default:
		return nil
	}
}

// Observe returns what the server knows of itself. It waits for nothing. A server
// that stops because it was removed goes on to say that it was.
func (s *Source) Observe(ctx context.Context) (membership.Observation, error) {
	if err := ctx.Err(); err != nil {
		return membership.Observation{}, s.explain("status", err)
	}
	o := s.observe()
	if err := s.stopped(); err != nil && !o.Removed {
		return membership.Observation{}, s.explain("status", err)
	}
	return o, nil
}

// observe reads memory only, which stays readable when the server has stopped.
func (s *Source) observe() membership.Observation {
	e := s.server
	o := membership.Observation{
		At:           time.Now(),
		Cluster:      membership.ID(e.Cluster().ID()),
		Member:       membership.ID(e.MemberID()),
		Leader:       membership.ID(e.Leader()),
		Term:         e.Term(),
		RaftIndex:    e.CommittedIndex(),
		AppliedIndex: e.AppliedIndex(),
		Version:      version.Version,
		Removed:      true,
	}
	// From the list, not by IsLearner: that panics on a server that was removed.
	members := e.Cluster().Members()
	for _, m := range members {
		if !m.IsLearner {
			o.Voters++
		}
		if m.ID == e.MemberID() {
			o.Removed, o.Learner = false, m.IsLearner
		}
	}
	if len(members) == 0 {
		o.Removed = false // nothing has been applied yet
	}
	o.Alarms = alarms(e.Alarms())
	return o
}

func alarms(raised []*pb.AlarmMember) []membership.Alarm {
	var noSpace, corrupt bool
	for _, a := range raised {
		noSpace = noSpace || a.GetAlarm() == pb.AlarmType_NOSPACE
		corrupt = corrupt || a.GetAlarm() == pb.AlarmType_CORRUPT
	}
	var out []membership.Alarm
	if noSpace {
		out = append(out, membership.AlarmNoSpace)
	}
	if corrupt {
		out = append(out, membership.AlarmCorrupt)
	}
	return out
}

// explain gives an etcd error its meaning.
func (s *Source) explain(call string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, etcderrors.ErrNoLeader):
		err = fmt.Errorf("%w (%w)", membership.ErrNoLeader, err)
	case errors.Is(err, etcderrors.ErrStopped):
		err = fmt.Errorf("%w (%w)", membership.ErrStopped, err)
	}
	return &membership.CallError{Address: "member " + s.server.MemberID().String() + " in this process", Call: call, Err: err}
}
