//go:build linux

package realetcd

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// askTimeout is how long a member in good health may take to answer the harness. It is the least
// window of a shim too: what takes longer counts as no answer for both.
const askTimeout = 250 * time.Millisecond

// proofKey is what linearizable reads of the harness look for. It does not exist.
const proofKey = "\x00quorumwise/harness"

// reconnect makes the harness notice a member that is back at once, whatever it had met before.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond},
	MinConnectTimeout: time.Second,
}

func dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(reconnect), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(), grpc.WithIdleTimeout(0))
}

// Client is an official client of these members, of all present ones by default, from the harness:
// no fault of the network touches its way. The caller closes it.
func (c *Cluster) Client(members ...*Member) (*clientv3.Client, error) {
	if len(members) == 0 {
		members = c.Members()
	}
	var endpoints []string
	for _, m := range members {
		endpoints = append(endpoints, m.Endpoint())
	}
	cli, err := clientv3.New(clientv3.Config{
		Endpoints:   endpoints,
		Logger:      zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(reconnect), grpc.WithNoProxy()},
	})
	if err != nil {
		return nil, fmt.Errorf("realetcd: client of %v: %w", endpoints, err)
	}
	return cli, nil
}

// claim is what one member says of itself.
type claim struct {
	member, leader, term uint64
	learner              bool
}

// ask has the member describe itself; it needs no quorum for that.
func (m *Member) ask(ctx context.Context) (claim, error) {
	s, err := pb.NewMaintenanceClient(m.conn).Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return claim{}, err
	}
	return claim{s.GetHeader().GetMemberId(), s.GetLeader(), s.GetRaftTerm(), s.GetIsLearner()}, nil
}

// prove completes a linearizable read through the member, and returns the term of that moment.
func (m *Member) prove(ctx context.Context) (term uint64, err error) {
	r, err := pb.NewKVClient(m.conn).Range(ctx, &pb.RangeRequest{Key: []byte(proofKey), KeysOnly: true})
	return r.GetHeader().GetRaftTerm(), err
}

// poll calls done every so often until it returns true or ctx ends; the error then says what was
// waited for and what done met last.
func poll(ctx context.Context, every time.Duration, what string, done func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if err == nil {
				return fmt.Errorf("realetcd: waiting for %s: %w", what, context.Cause(ctx))
			}
			return fmt.Errorf("realetcd: waiting for %s: %w: %w", what, context.Cause(ctx), err)
		}
	}
}
