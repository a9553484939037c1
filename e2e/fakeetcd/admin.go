package fakeetcd

import (
	"context"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/api/v3/version"
)

// alarmed reports whether an alarm is in force. c.mu is held.
func (m *Member) alarmed(alarm pb.AlarmType) bool {
	return slices.ContainsFunc(m.c.alarms, func(a *pb.AlarmMember) bool { return a.Alarm == alarm })
}

// seenLeader returns the id of the leader as the member sees it, 0: none. c.mu is held.
func (m *Member) seenLeader() uint64 {
	if leader := m.node().leader; leader != none {
		return m.c.members[leader].ID
	}
	return 0
}

type maintenanceServer struct {
	pb.UnimplementedMaintenanceServer
	m *Member
}

// Status is answered from what the member knows by itself.
func (s *maintenanceServer) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	s.m.c.mu.Lock()
	defer s.m.c.mu.Unlock()
	n := s.m.node()
	resp := &pb.StatusResponse{
		Header: s.m.header(n.revision), Version: version.Version, Leader: s.m.seenLeader(),
		RaftIndex: n.index, RaftAppliedIndex: n.index, RaftTerm: n.term,
		DbSize: 20480, DbSizeInUse: 16384, IsLearner: n.learner,
	}
	if resp.Leader == 0 {
		resp.Errors = append(resp.Errors, "etcdserver: no leader")
	}
	for _, a := range s.m.c.alarms {
		resp.Errors = append(resp.Errors, a.String())
	}
	return resp, nil
}

func (s *maintenanceServer) Alarm(ctx context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	resp := &pb.AlarmResponse{}
	err := s.m.propose(ctx, func() error {
		c := s.m.c
		switch r.Action {
		case pb.AlarmRequest_ACTIVATE:
			c.alarms = append(c.alarms, &pb.AlarmMember{MemberID: r.MemberID, Alarm: r.Alarm})
		case pb.AlarmRequest_DEACTIVATE:
			c.alarms = slices.DeleteFunc(slices.Clone(c.alarms), func(a *pb.AlarmMember) bool {
				return a.MemberID == r.MemberID && a.Alarm == r.Alarm
			})
		}
		resp.Header, resp.Alarms = s.m.header(c.store.revision), c.alarms
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

func (s *maintenanceServer) MoveLeader(_ context.Context, r *pb.MoveLeaderRequest) (*pb.MoveLeaderResponse, error) {
	s.m.c.mu.Lock()
	leads := s.m.c.consensus.leader == s.m.index
	s.m.c.mu.Unlock()
	if !leads {
		return nil, rpctypes.ErrGRPCNotLeader
	}
	for _, m := range s.m.c.members {
		if m.ID == r.TargetID {
			s.m.c.Elect(m.index, 0)
			return &pb.MoveLeaderResponse{}, nil
		}
	}
	return nil, rpctypes.ErrGRPCBadLeaderTransferee
}

func (s *maintenanceServer) Defragment(context.Context, *pb.DefragmentRequest) (*pb.DefragmentResponse, error) {
	return &pb.DefragmentResponse{}, nil
}

type clusterServer struct {
	pb.UnimplementedClusterServer
	m *Member
}

func (s *clusterServer) MemberList(ctx context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	if r.Linearizable {
		if err := s.m.prove(ctx); err != nil {
			return nil, err
		}
	}
	s.m.c.mu.Lock()
	defer s.m.c.mu.Unlock()
	resp := &pb.MemberListResponse{Header: s.m.header(0)}
	for i, m := range s.m.c.members {
		n := &s.m.c.consensus.nodes[i]
		if n.removed {
			continue
		}
		resp.Members = append(resp.Members, &pb.Member{
			ID: m.ID, Name: m.Name, IsLearner: n.learner,
			PeerURLs: []string{"http://" + m.Name + ":2380"}, ClientURLs: m.urls,
		})
	}
	return resp, nil
}

type authServer struct {
	pb.UnimplementedAuthServer
	m *Member
}

// Authenticate hands out a token that every member knows until it restarts.
func (s *authServer) Authenticate(ctx context.Context, r *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	if err := s.m.prove(ctx); err != nil {
		return nil, err
	}
	c := s.m.c
	switch {
	case c.opts.User == "":
		return nil, rpctypes.ErrGRPCAuthNotEnabled
	case r.Name != c.opts.User || r.Password != c.opts.Password:
		return nil, rpctypes.ErrGRPCAuthFailed
	}
	resp := &pb.AuthenticateResponse{}
	err := s.m.propose(ctx, func() error {
		c.tokens++
		resp.Token = fmt.Sprintf("token.%d.%d", c.tokens, time.Now().Unix())
		resp.Header = s.m.header(c.store.revision)
		for i, m := range c.members {
			if !c.consensus.nodes[i].killed {
				m.tokens[resp.Token] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}
