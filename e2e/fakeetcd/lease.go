package fakeetcd

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

type leaseServer struct {
	pb.UnimplementedLeaseServer
	m *Member
}

func (s *leaseServer) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	if err := s.m.authorize(ctx); err != nil {
		return nil, err
	}
	resp := &pb.LeaseGrantResponse{}
	err := s.m.propose(ctx, func() error {
		if s.m.alarmed(pb.AlarmType_NOSPACE) {
			return rpctypes.ErrGRPCNoSpace
		}
		var ok bool
		if resp.ID, resp.TTL, ok = s.m.c.lessor.grant(r.ID, r.TTL, time.Now()); !ok {
			return rpctypes.ErrGRPCLeaseExist
		}
		resp.Header = s.m.header(s.m.c.store.revision)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

func (s *leaseServer) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	if err := s.m.authorize(ctx); err != nil {
		return nil, err
	}
	resp := &pb.LeaseRevokeResponse{}
	err := s.m.propose(ctx, func() error {
		if !s.m.c.lessor.exists(r.ID) {
			return rpctypes.ErrGRPCLeaseNotFound
		}
		delete(s.m.c.lessor.grants, r.ID)
		s.m.c.store.revoke(r.ID)
		resp.Header = s.m.header(s.m.c.store.revision)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// LeaseKeepAlive serves one stream, one keepalive after the other: one that hangs holds back all
// behind it. Keepalives are read in a goroutine of their own, which ends with the call.
func (s *leaseServer) LeaseKeepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	ctx := stream.Context()
	requests, broken := make(chan *pb.LeaseKeepAliveRequest), make(chan error, 1)
	go receive(ctx, stream.Recv, requests, broken)
	for {
		select {
		case r := <-requests:
			resp, err := s.keepAlive(ctx, r)
			if err != nil {
				return err
			}
			if err := stream.Send(resp); err != nil {
				return err
			}
		case err := <-broken:
			return err
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}

func (s *leaseServer) keepAlive(ctx context.Context, r *pb.LeaseKeepAliveRequest) (*pb.LeaseKeepAliveResponse, error) {
	const method = "/etcdserverpb.Lease/LeaseKeepAlive"
	s.m.record(method, r)
	s.m.c.mu.Lock()
	resp := &pb.LeaseKeepAliveResponse{ID: r.ID, Header: s.m.header(s.m.node().revision)}
	latency := s.m.latency + s.m.disk
	s.m.c.mu.Unlock()
	if err := s.m.authorize(ctx); err != nil {
		return nil, err
	}
	if err := pause(ctx, latency); err != nil {
		return nil, err
	}
	err := s.renew(ctx, resp)
	if err == nil {
		err = s.m.spoilAnswer(ctx, method)
	}
	return resp, err
}

// renew renews a lease at the leader. A member that takes itself for the leader acknowledges
// without asking anyone, also when it no longer is one. A follower forwards to the leader
// that it knows, and if that one has been lost, the forwarded request is stuck with it until the
// request timeout; where the leader's process is gone, it is refused and tried again.
func (s *leaseServer) renew(ctx context.Context, resp *pb.LeaseKeepAliveResponse) error {
	target := none // who holds the forwarded request
	return s.m.await(ctx, requestTimeout, rpctypes.ErrGRPCTimeout, func() (bool, error) {
		c, n, now := s.m.c, s.m.node(), time.Now()
		if n.leader == s.m.index {
			resp.TTL = c.lessor.acknowledge(resp.ID, c.consensus.leader == s.m.index, now)
			return true, nil
		}
		if target == none {
			target = n.leader
		}
		if target != none && c.consensus.nodes[target].killed {
			target = none
		}
		if target == none || target != c.consensus.leader || !c.consensus.live(s.m.index, now) {
			return false, nil
		}
		resp.TTL = c.lessor.acknowledge(resp.ID, true, now)
		return true, nil
	})
}

func (s *leaseServer) LeaseTimeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	if err := s.m.authorize(ctx); err != nil {
		return nil, err
	}
	if err := s.m.prove(ctx); err != nil {
		return nil, err
	}
	s.m.c.mu.Lock()
	defer s.m.c.mu.Unlock()
	resp := &pb.LeaseTimeToLiveResponse{Header: s.m.header(s.m.node().revision), ID: r.ID, TTL: -1}
	g := s.m.c.lessor.grants[r.ID]
	if g == nil {
		return resp, nil
	}
	resp.TTL, resp.GrantedTTL = int64(time.Until(g.expiry).Seconds()), g.ttl
	if r.Keys {
		for _, key := range s.m.c.store.attachedTo(r.ID) {
			resp.Keys = append(resp.Keys, []byte(key))
		}
	}
	return resp, nil
}

func (s *leaseServer) LeaseLeases(ctx context.Context, _ *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	if err := s.m.authorize(ctx); err != nil {
		return nil, err
	}
	s.m.c.mu.Lock()
	defer s.m.c.mu.Unlock()
	resp := &pb.LeaseLeasesResponse{Header: s.m.header(s.m.node().revision)}
	for id := range s.m.c.lessor.grants {
		resp.Leases = append(resp.Leases, &pb.LeaseStatus{ID: id})
	}
	slices.SortFunc(resp.Leases, func(a, b *pb.LeaseStatus) int { return int(a.ID - b.ID) })
	return resp, nil
}

// ended returns the error of a stream's end, nil if the client has just nothing more to send.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
