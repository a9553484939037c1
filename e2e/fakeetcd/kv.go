package fakeetcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

type kvServer struct {
	pb.UnimplementedKVServer
	m *Member
}

func (s *kvServer) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if !r.Serializable {
		if err := s.m.prove(ctx); err != nil {
			return nil, err
		}
	}
	// As in etcd the token is looked at after consensus: an auth refusal is a proof of quorum.
	if err := s.m.authorize(ctx); err != nil {
		return nil, err
	}
	s.m.c.mu.Lock()
	defer s.m.c.mu.Unlock()
	if s.m.alarmed(pb.AlarmType_CORRUPT) {
		return nil, rpctypes.ErrGRPCCorrupt
	}
	resp, err := s.m.c.store.read(r, s.m.node().revision)
	if err != nil {
		return nil, err
	}
	resp.Header = s.m.header(resp.Header.Revision)
	return resp, nil
}

func (s *kvServer) RangeStream(r *pb.RangeRequest, stream pb.KV_RangeStreamServer) error {
	resp, err := s.Range(stream.Context(), r)
	if err != nil {
		return err
	}
	return stream.Send(&pb.RangeStreamResponse{RangeResponse: resp})
}

// write proposes a change of the store; do gets the entry, and the header that belongs to it.
func (s *kvServer) write(ctx context.Context, grows bool, do func(*write) error) (*pb.ResponseHeader, error) {
	if err := s.m.authorize(ctx); err != nil {
		return nil, err
	}
	var header *pb.ResponseHeader
	err := s.m.propose(ctx, func() error {
		switch {
		case s.m.alarmed(pb.AlarmType_CORRUPT):
			return rpctypes.ErrGRPCCorrupt
		case grows && s.m.alarmed(pb.AlarmType_NOSPACE):
			return rpctypes.ErrGRPCNoSpace
		}
		w := s.m.c.store.begin()
		if err := do(w); err != nil {
			w.undo()
			return err
		}
		header = s.m.header(w.end())
		return nil
	})
	return header, err
}

func (s *kvServer) Put(ctx context.Context, r *pb.PutRequest) (resp *pb.PutResponse, err error) {
	header, err := s.write(ctx, true, func(w *write) error {
		resp, err = w.applyPut(r, s.m.c.lessor.exists)
		return err
	})
	if err != nil {
		return nil, err
	}
	resp.Header = header
	return resp, nil
}

func (s *kvServer) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest) (resp *pb.DeleteRangeResponse, err error) {
	header, err := s.write(ctx, false, func(w *write) error {
		resp, err = w.applyDelete(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	resp.Header = header
	return resp, nil
}

func (s *kvServer) Txn(ctx context.Context, r *pb.TxnRequest) (resp *pb.TxnResponse, err error) {
	if !writes(r) {
		return s.readOnly(ctx, r)
	}
	header, err := s.write(ctx, true, func(w *write) error {
		resp, err = w.applyTxn(r, s.m.c.lessor.exists)
		return err
	})
	if err != nil {
		return nil, err
	}
	resp.Header = header
	return resp, nil
}

// readOnly answers a transaction that changes nothing, from what the member has applied.
func (s *kvServer) readOnly(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if !serializable(r) {
		if err := s.m.prove(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.m.authorize(ctx); err != nil {
		return nil, err
	}
	s.m.c.mu.Lock()
	defer s.m.c.mu.Unlock()
	applied := s.m.node().revision
	resp, err := s.m.c.store.at(applied).applyTxn(r, s.m.c.lessor.exists)
	if err != nil {
		return nil, err
	}
	resp.Header = s.m.header(applied)
	return resp, nil
}

func (s *kvServer) Compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	resp := &pb.CompactionResponse{}
	if err := s.m.authorize(ctx); err != nil {
		return nil, err
	}
	err := s.m.propose(ctx, func() error {
		resp.Header = s.m.header(s.m.c.store.revision)
		return s.m.c.store.compact(r.Revision)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}
