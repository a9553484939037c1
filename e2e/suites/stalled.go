//go:build linux

package suites

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// contestedTTL is the time to live of the lease that a stalled leader is asked to keep: short,
// for the next leader gives it an election more than that before it ends it.
const contestedTTL = 3 * time.Second

// stalledLeader stalls two members, because one is no trap any more: since etcd 3.5.13 a leader
// that has not ticked lately asks for a proof that it still leads before it answers a client's
// keepalive, and the proof does not come. What another member passes on to it, it acknowledges
// without asking; and a follower whose raft loop stands as well passes on to it, whoever leads.
func stalledLeader() Scenario {
	return Scenario{
		Name: "stalled-leader-keeps-acknowledging", Field: []string{"F8"}, Members: 5, Target: Leader, Second: true, Control: Stuck, Budget: noQuorum, Cluster: logsOnDisks,
		Does: "of five members the leader and a follower have logs whose disks hang: keepalives of leases that the next leader ends are acknowledged there; ours move in time",
		Steps: []Step{
			{Text: "stop the disks under the logs of a follower and the leader", Mark: Inflicted, Takes: 8 * time.Second, Wait: 5 * time.Second, Do: stallWhileKept},
			mend(8 * time.Second),
		},
		Judge: brokenClaims, Timing: keepalivesLeft,
	}
}

// stallWhileKept wants to see that a stalled member acknowledges keepalives of a lease after another
// member leads, and after that one has ended the lease: else it is no trap for anybody.
func stallWhileKept(ctx context.Context, st *Stage) (err error) {
	well, err := st.Cluster.Client(st.Others(st.Target, st.Second)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, well.Close()) }()
	granted, err := well.Grant(ctx, int64(contestedTTL/time.Second))
	if err != nil {
		return err
	}
	var held []*keepalives
	defer func() {
		for _, k := range held {
			err = errors.Join(err, k.close())
		}
	}()
	for _, m := range []*realetcd.Member{st.Target, st.Second} {
		k, err := hold(ctx, st, m, granted.ID)
		if err != nil {
			return err
		}
		held = append(held, k)
	}
	if err := stallBoth(ctx, st); err != nil {
		return err
	}
	lease := st.awaitEnd(ctx, well, granted.ID)
	for _, k := range held {
		acknowledged := k.acknowledged()
		st.Note("%s acknowledged %d keepalives after another member led", k.member, count(acknowledged, lease.led))
		lease.acknowledged = append(lease.acknowledged, acknowledged...)
	}
	missing := lease.missing()
	st.premise(missing == "", "%s: this does not show that what a stalled leader acknowledges is worth nothing", missing)
	return context.Cause(ctx)
}

// stallBoth stops the follower first: when its leader falls silent it must have come to stand,
// or it would learn of that.
func stallBoth(ctx context.Context, st *Stage) error {
	const written = 200 * time.Millisecond // something was, by then, and it waits for that
	if err := on(second, "disk-hang")(ctx, st); err != nil {
		return err
	}
	if err := sleep(ctx, written); err != nil {
		return err
	}
	return on(first, "disk-hang")(ctx, st)
}

// contested is what became of a lease whose keepalives went to stalled members only.
type contested struct {
	acknowledged []time.Time // when keepalives were sent that were answered with a time to live
	led          time.Time   // another member was known to lead; zero: none was
	ended        time.Time   // that one was known to have ended the lease; zero: it had not
}

// missing is what was not seen of a lease that one leader acknowledges and the next one ends;
// "" all was.
func (k contested) missing() string {
	switch {
	case k.led.IsZero():
		return "no other member led"
	case count(k.acknowledged, k.led) == 0:
		return "no keepalive was acknowledged by a stalled member after another one led"
	case k.ended.IsZero():
		return "the next leader did not end the lease"
	case count(k.acknowledged, k.ended) == 0:
		return "no keepalive was acknowledged by a stalled member after the next leader had ended the lease"
	}
	return ""
}

// count is how many moments are after one; none are where there is none.
func count(moments []time.Time, after time.Time) (n int) {
	for _, m := range moments {
		if !after.IsZero() && m.After(after) {
			n++
		}
	}
	return n
}

// awaitEnd waits until another member leads and has ended a lease, and then long enough for
// keepalives to be acknowledged all the same. What does not come in time is left zero.
func (st *Stage) awaitEnd(ctx context.Context, well *clientv3.Client, lease clientv3.LeaseID) (k contested) {
	const (
		most = contestedTTL + 9*time.Second // elections, and what the next leader gives and takes beside
		more = 5 * keptEvery
	)
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if _, err := st.Cluster.WaitOtherLeader(waiting, st.Target); err != nil {
		return k
	}
	k.led = time.Now()
	for sleep(waiting, keptEvery) == nil {
		asking, cancel := context.WithTimeout(waiting, time.Second)
		left, err := well.TimeToLive(asking, lease)
		cancel()
		if err == nil && left.GrantedTTL == 0 { // it is not known any more
			k.ended = time.Now()
			_ = sleep(ctx, more) // the caller looks at ctx
			break
		}
	}
	return k
}

// keptEvery is how often a keepalive is sent that was answered.
const keptEvery = 200 * time.Millisecond

// keepalives are those of one lease on a stream to one member, from the harness. The stream
// moves nowhere, as that of a client with this one endpoint.
type keepalives struct {
	member string
	cli    *clientv3.Client
	end    context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	answered []time.Time // when they were sent
}

// hold sends keepalives from now on, and returns when the first one was answered.
func hold(ctx context.Context, st *Stage, m *realetcd.Member, lease clientv3.LeaseID) (*keepalives, error) {
	cli, err := st.Cluster.Client(m)
	if err != nil {
		return nil, err
	}
	holding, end := context.WithCancel(ctx)
	k := &keepalives{member: m.Name(), cli: cli, end: end}
	stream, err := pb.NewLeaseClient(cli.ActiveConnection()).LeaseKeepAlive(holding)
	if err == nil {
		err = k.send(stream, lease)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keepalives through %s: %w", m.Name(), err), k.close())
	}
	k.work.Go(func() {
		for sleep(holding, keptEvery) == nil && k.send(stream, lease) == nil {
		}
	})
	return k, nil
}

// send sends one keepalive and waits for its answer.
func (k *keepalives) send(stream pb.Lease_LeaseKeepAliveClient, lease clientv3.LeaseID) error {
	sent := time.Now()
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(lease)}); err != nil {
		return err
	}
	answer, err := stream.Recv()
	if err != nil || answer.TTL <= 0 {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answered = append(k.answered, sent)
	return nil
}

// acknowledged is when keepalives were sent that have been answered until now.
func (k *keepalives) acknowledged() []time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.answered)
}

func (k *keepalives) close() error {
	k.end()
	k.work.Wait()
	return k.cli.Close()
}

// keepalivesLeft demands that our keepalive streams stood on the stalled members, and left them
// long before a lease could have ended. What was acknowledged there meanwhile counts for nothing.
func keepalivesLeft(e *Evidence) (bad findings) {
	ttl := e.leaseTTL()
	most := ttl/2 + e.election()
	for _, member := range []string{e.Target, e.Second} {
		stood := e.keptOn(member, e.Cut)
		if member != "" && len(stood) == 0 {
			bad.miss("no keepalive stream of ours stood on %s when it stalled: this does not show that any left it", member)
		}
		for _, a := range stood {
			until := a.Ended
			if until.IsZero() {
				until = e.Ended
			}
			if until.Sub(e.Cut) > most {
				bad.add([]when{{e.Cut, e.Cut.Add(most), until}}, "a keepalive stream stayed on %s for longer than %v after it had stalled; its lease lives for %v", member, most, ttl)
			}
		}
	}
	return bad
}

// keptOn are our keepalive streams that stood on a member at a moment.
func (e *Evidence) keptOn(member string, at time.Time) (stood []workload.Attempt) {
	for _, a := range e.Ours.Attempts {
		if a.Method == workload.MethodKeepAlive && a.Address == e.endpoint(member) && !a.Began.After(at) && (a.Ended.IsZero() || !a.Ended.Before(at)) {
			stood = append(stood, a)
		}
	}
	return stood
}
