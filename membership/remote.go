package membership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// Remote asks one member over the etcd API. Make one with [NewRemote].
type Remote struct {
	address string
	kv      pb.KVClient
	cluster pb.ClusterClient
	status  pb.MaintenanceClient
	watch   pb.WatchClient
	auth    pb.AuthClient
	user    user
	stopped atomic.Bool // the newest proof was refused by a server that has stopped

	mu     sync.Mutex
	token  string // newest that the member gave for user; empty: none yet
	logins pacing
}

type user struct{ name, password string }

// RemoteOption changes what [NewRemote] makes.
type RemoteOption func(*Remote)

// WithUser gives a user of etcd's own authentication. Default: none, which is
// enough for proofs, for local reads and for the member's identity; only who
// leads, indexes, alarms and the member list stay unknown then. No role is
// needed. A client certificate whose common name is a user does the same, without
// this option.
func WithUser(name, password string) RemoteOption {
	return func(r *Remote) { r.user = user{name, password} }
}

// NewRemote returns a source on a connection, which must lead to one member only
// and stays the caller's.
func NewRemote(conn grpc.ClientConnInterface, opts ...RemoteOption) *Remote {
	r := &Remote{
		kv:      pb.NewKVClient(conn),
		cluster: pb.NewClusterClient(conn),
		status:  pb.NewMaintenanceClient(conn),
		watch:   pb.NewWatchClient(conn),
		auth:    pb.NewAuthClient(conn),
	}
	if t, ok := conn.(interface{ Target() string }); ok {
		r.address = t.Target()
	}
	for _, opt := range opts {
		opt(r)
	}
	return r
}

// probeKey is read by proofs. etcd allows it and no tool writes it; whether it
// exists does not matter.
var probeKey = []byte{0}

// Prove completes one linearizable read through the member, and so shows that it
// reached a majority after the call began. A refusal for want of permission is a
// proof as well: etcd looks at permission only after consensus.
//
// Its error is a *[CallError], in which errors.Is finds [ErrLearner],
// [ErrNoLeader], [ErrStopped] or [ErrNotEtcd] where it is one of those, and
// never [ErrAuth]. It has no timeout of its own, and a member without quorum may
// take many seconds to answer: give ctx a deadline.
func (r *Remote) Prove(ctx context.Context) error {
	err := r.read(ctx, "linearizable read", false)
	r.stopped.Store(errors.Is(err, ErrStopped))
	return err
}

// Read completes one serializable read, which the member answers by itself. A
// refusal for want of permission counts as an answer. Errors are as in Prove;
// learners do answer. It has no timeout of its own.
func (r *Remote) Read(ctx context.Context) error {
	return r.read(ctx, "serializable read", true)
}

func (r *Remote) read(ctx context.Context, call string, serializable bool) error {
	resp, err := r.kv.Range(r.withToken(ctx), &pb.RangeRequest{
		Key: probeKey, Limit: 1, CountOnly: true, Serializable: serializable,
	})
	switch {
	case err == nil && !sane(resp.GetHeader()):
		return &CallError{r.address, call, fmt.Errorf("%w (the answer names no cluster and member)", ErrNotEtcd)}
	case err == nil, meaning(err) == ErrAuth:
		return nil
	}
	return explain(ctx, r.address, call, err)
}

// sane tells whether a header is one that an etcd member writes.
func sane(h *pb.ResponseHeader) bool {
	return h.GetClusterId() != 0 && h.GetMemberId() != 0
}

// Observe asks the member for what it knows of itself. It never waits for other
// members, except to log a user in.
//
// Without accepted credentials the answer holds no more than Cluster, Member,
// Term and Revision, or nothing but At; that is no error. Errors are as in Prove,
// but a learner answers. It has no timeout of its own.
func (r *Remote) Observe(ctx context.Context) (Observation, error) {
	var o Observation
	err := r.asUser(ctx, func() (err error) {
		o, err = r.observe(ctx)
		return err
	})
	if errors.Is(err, ErrAuth) {
		return r.identity(ctx, o), nil
	}
	return o, err
}

// observe asks for the member list before the status, and for no status of a
// server that is no longer in its own list, or that has said to a proof that it
// stopped: both panic when they are asked for it (3.7.3), which ends the process
// of a program that embeds one. A learner refuses the list.
func (r *Remote) observe(ctx context.Context) (Observation, error) {
	o := Observation{At: time.Now()}
	list, err := r.list(ctx, false)
	switch {
	case errors.Is(err, ErrLearner):
		o.Learner = true
	case err != nil:
		return o, err
	default:
		o.fill(list.GetHeader())
		if o.countVoters(list.GetMembers()); o.Removed {
			return o, nil
		}
	}
	if r.stopped.Load() {
		return o, &CallError{r.address, "status", fmt.Errorf("%w (it said so to a proof)", ErrStopped)}
	}
	st, err := r.status.Status(r.withToken(ctx), &pb.StatusRequest{})
	if err != nil {
		return o, explain(ctx, r.address, "status", err)
	}
	if !sane(st.GetHeader()) {
		return o, &CallError{r.address, "status", fmt.Errorf("%w (the answer names no cluster and member)", ErrNotEtcd)}
	}
	o.fill(st.GetHeader())
	o.Leader = ID(st.GetLeader())
	o.Term = st.GetRaftTerm()
	o.RaftIndex = st.GetRaftIndex()
	o.AppliedIndex = st.GetRaftAppliedIndex()
	o.Learner = o.Learner || st.GetIsLearner()
	o.Alarms = parseAlarms(st.GetErrors())
	o.Version = st.GetVersion()
	return o, nil
}

func (o *Observation) fill(h *pb.ResponseHeader) {
	o.Cluster, o.Member = ID(h.GetClusterId()), ID(h.GetMemberId())
	o.Term, o.Revision = h.GetRaftTerm(), h.GetRevision()
}

func (o *Observation) countVoters(members []*pb.Member) {
	o.Removed = len(members) > 0
	for _, m := range members {
		if !m.GetIsLearner() {
			o.Voters++
		}
		if ID(m.GetID()) == o.Member {
			o.Removed = false
			o.Learner = m.GetIsLearner()
		}
	}
}

// identity learns what a member tells anybody: it answers a watch that it does
// not permit with a header, and sends nothing after it. Failures are no news.
func (r *Remote) identity(ctx context.Context, o Observation) Observation {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := r.watch.Watch(ctx)
	if err != nil {
		return o
	}
	if err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
		CreateRequest: &pb.WatchCreateRequest{Key: probeKey},
	}}); err != nil {
		return o
	}
	if resp, err := stream.Recv(); err == nil && sane(resp.GetHeader()) {
		o.fill(resp.GetHeader())
	}
	return o
}

// Members asks for the member list and the cluster that it is of. A linearizable
// list is the cluster's, a serializable one the member's own. With authentication
// enabled it needs credentials ([ErrAuth]). A learner refuses ([ErrLearner]).
// Errors are otherwise as in Prove. It has no timeout of its own, and a
// linearizable list waits for a quorum.
func (r *Remote) Members(ctx context.Context, linearizable bool) (ID, []Member, error) {
	var list *pb.MemberListResponse
	err := r.asUser(ctx, func() (err error) {
		list, err = r.list(ctx, linearizable)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	members := make([]Member, 0, len(list.GetMembers()))
	for _, m := range list.GetMembers() {
		members = append(members, Member{
			ID: ID(m.GetID()), Name: m.GetName(), Learner: m.GetIsLearner(),
			PeerURLs: m.GetPeerURLs(), ClientURLs: m.GetClientURLs(),
		})
	}
	return ID(list.GetHeader().GetClusterId()), members, nil
}

func (r *Remote) list(ctx context.Context, linearizable bool) (*pb.MemberListResponse, error) {
	const call = "member list"
	list, err := r.cluster.MemberList(r.withToken(ctx), &pb.MemberListRequest{Linearizable: linearizable})
	if err != nil {
		return nil, explain(ctx, r.address, call, err)
	}
	if !sane(list.GetHeader()) {
		return nil, &CallError{r.address, call, fmt.Errorf("%w (the answer names no cluster and member)", ErrNotEtcd)}
	}
	return list, nil
}
