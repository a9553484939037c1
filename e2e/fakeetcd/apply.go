package fakeetcd

import (
	"bytes"
	"cmp"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// read answers a range request from what had been applied up to a revision.
func (s *store) read(r *pb.RangeRequest, applied int64) (*pb.RangeResponse, error) {
	at := r.Revision
	switch {
	case len(r.Key) == 0:
		return nil, rpctypes.ErrGRPCEmptyKey
	case at <= 0:
		at = applied
	case at > applied:
		return nil, rpctypes.ErrGRPCFutureRev
	case at < s.compacted:
		return nil, rpctypes.ErrGRPCCompacted
	}
	kvs := s.span(r.Key, r.RangeEnd, at)
	resp := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: applied}, Count: int64(len(kvs))}
	if r.CountOnly {
		return resp, nil
	}
	if limit := r.Limit + 1; cutsBeforeSorting(r) && int64(len(kvs)) > limit {
		kvs = kvs[:limit]
	}
	kvs = slices.DeleteFunc(kvs, func(kv *mvccpb.KeyValue) bool { return !inBounds(kv, r) })
	sortRange(kvs, r)
	if r.Limit > 0 && int64(len(kvs)) > r.Limit {
		kvs, resp.More = kvs[:r.Limit], true
	}
	if r.KeysOnly {
		kvs = withoutValues(kvs, r.SortTarget == pb.RangeRequest_VALUE)
	}
	resp.Kvs = kvs
	return resp, nil
}

// cutsBeforeSorting reports whether etcd applies the limit in order of key, before it sorts: it
// does where no order is named, although it then sorts in ascending order.
func cutsBeforeSorting(r *pb.RangeRequest) bool {
	filtered := r.MinModRevision != 0 || r.MaxModRevision != 0 || r.MinCreateRevision != 0 || r.MaxCreateRevision != 0
	return r.Limit > 0 && r.SortOrder == pb.RangeRequest_NONE && !filtered
}

// withoutValues returns what etcd gives of keys alone. Where it need not look at the values it
// answers from its index of keys, which does not have the leases.
func withoutValues(kvs []*mvccpb.KeyValue, lease bool) []*mvccpb.KeyValue {
	bare := make([]*mvccpb.KeyValue, len(kvs))
	for i, kv := range kvs {
		bare[i] = &mvccpb.KeyValue{
			Key: kv.Key, Version: kv.Version, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision,
		}
		if lease {
			bare[i].Lease = kv.Lease
		}
	}
	return bare
}

func inBounds(kv *mvccpb.KeyValue, r *pb.RangeRequest) bool {
	above := kv.ModRevision >= r.MinModRevision && kv.CreateRevision >= r.MinCreateRevision
	below := (r.MaxModRevision == 0 || kv.ModRevision <= r.MaxModRevision) &&
		(r.MaxCreateRevision == 0 || kv.CreateRevision <= r.MaxCreateRevision)
	return above && below
}

func sortRange(kvs []*mvccpb.KeyValue, r *pb.RangeRequest) {
	order := map[pb.RangeRequest_SortTarget]func(a, b *mvccpb.KeyValue) int{
		pb.RangeRequest_KEY:     func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Key, b.Key) },
		pb.RangeRequest_VALUE:   func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Value, b.Value) },
		pb.RangeRequest_VERSION: func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.Version, b.Version) },
		pb.RangeRequest_MOD:     func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.ModRevision, b.ModRevision) },
		pb.RangeRequest_CREATE:  func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) },
	}[r.SortTarget]
	descending := r.SortOrder == pb.RangeRequest_DESCEND
	if order == nil || r.SortOrder == pb.RangeRequest_NONE && r.SortTarget == pb.RangeRequest_KEY {
		return
	}
	slices.SortStableFunc(kvs, func(a, b *mvccpb.KeyValue) int {
		if descending {
			return order(b, a)
		}
		return order(a, b)
	})
}

// applyPut applies a put as part of an entry. exists says which leases there are.
func (w *write) applyPut(r *pb.PutRequest, exists func(lease int64) bool) (*pb.PutResponse, error) {
	prev := w.s.get(string(r.Key), w.revision)
	value, lease := r.Value, r.Lease
	switch {
	case len(r.Key) == 0:
		return nil, rpctypes.ErrGRPCEmptyKey
	case lease != 0 && !exists(lease):
		return nil, rpctypes.ErrGRPCLeaseNotFound
	case (r.IgnoreValue || r.IgnoreLease) && prev == nil:
		return nil, rpctypes.ErrGRPCKeyNotFound
	}
	if r.IgnoreValue {
		value = prev.Value
	}
	if r.IgnoreLease {
		lease = prev.Lease
	}
	w.put(string(r.Key), value, lease)
	resp := &pb.PutResponse{Header: &pb.ResponseHeader{Revision: w.revision}}
	if r.PrevKv {
		resp.PrevKv = prev
	}
	return resp, nil
}

// applyDelete applies a delete as part of an entry.
func (w *write) applyDelete(r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	if len(r.Key) == 0 {
		return nil, rpctypes.ErrGRPCEmptyKey
	}
	gone := w.remove(r.Key, r.RangeEnd)
	resp := &pb.DeleteRangeResponse{Header: &pb.ResponseHeader{}, Deleted: int64(len(gone))}
	if r.PrevKv {
		resp.PrevKvs = gone
	}
	return resp, nil
}

// applyTxn applies a transaction as part of an entry.
func (w *write) applyTxn(r *pb.TxnRequest, exists func(lease int64) bool) (*pb.TxnResponse, error) {
	resp := &pb.TxnResponse{Header: &pb.ResponseHeader{}, Succeeded: true}
	for _, c := range r.Compare {
		resp.Succeeded = resp.Succeeded && w.holds(c)
	}
	ops := r.Failure
	if resp.Succeeded {
		ops = r.Success
	}
	for _, op := range ops {
		answer, err := w.applyOp(op, exists)
		if err != nil {
			return nil, err
		}
		resp.Responses = append(resp.Responses, answer)
	}
	return resp, nil
}

func (w *write) applyOp(op *pb.RequestOp, exists func(int64) bool) (*pb.ResponseOp, error) {
	switch r := op.Request.(type) {
	case *pb.RequestOp_RequestRange:
		resp, err := w.s.read(r.RequestRange, w.sees())
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: resp}}, err
	case *pb.RequestOp_RequestPut:
		resp, err := w.applyPut(r.RequestPut, exists)
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: resp}}, err
	case *pb.RequestOp_RequestDeleteRange:
		resp, err := w.applyDelete(r.RequestDeleteRange)
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: resp}}, err
	case *pb.RequestOp_RequestTxn:
		resp, err := w.applyTxn(r.RequestTxn, exists)
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: resp}}, err
	default:
		return nil, rpctypes.ErrGRPCEmptyKey
	}
}

// sees returns the revision that a read inside the entry reads at: its own changes count.
func (w *write) sees() int64 {
	if w.dirty {
		return w.revision
	}
	return w.seen
}

// holds reports whether a comparison is true for every key that it names.
func (w *write) holds(c *pb.Compare) bool {
	kvs := w.s.span(c.Key, c.RangeEnd, w.sees())
	if len(kvs) == 0 {
		return c.Target != pb.Compare_VALUE && compares(c, &mvccpb.KeyValue{})
	}
	for _, kv := range kvs {
		if !compares(c, kv) {
			return false
		}
	}
	return true
}

func compares(c *pb.Compare, kv *mvccpb.KeyValue) bool {
	var sign int
	switch c.Target {
	case pb.Compare_VALUE:
		sign = bytes.Compare(kv.Value, c.GetValue())
	case pb.Compare_CREATE:
		sign = cmp.Compare(kv.CreateRevision, c.GetCreateRevision())
	case pb.Compare_MOD:
		sign = cmp.Compare(kv.ModRevision, c.GetModRevision())
	case pb.Compare_VERSION:
		sign = cmp.Compare(kv.Version, c.GetVersion())
	case pb.Compare_LEASE:
		sign = cmp.Compare(kv.Lease, c.GetLease())
	}
	switch c.Result {
	case pb.Compare_EQUAL:
		return sign == 0
	case pb.Compare_NOT_EQUAL:
		return sign != 0
	case pb.Compare_GREATER:
		return sign > 0
	case pb.Compare_LESS:
		return sign < 0
	default:
		return false
	}
}

// writes reports whether a transaction can change anything; if not, it is a read.
func writes(r *pb.TxnRequest) bool {
	for _, op := range slices.Concat(r.Success, r.Failure) {
		switch o := op.Request.(type) {
		case *pb.RequestOp_RequestPut, *pb.RequestOp_RequestDeleteRange:
			return true
		case *pb.RequestOp_RequestTxn:
			if writes(o.RequestTxn) {
				return true
			}
		}
	}
	return false
}

// serializable reports whether every read of a read-only transaction may be answered locally.
func serializable(r *pb.TxnRequest) bool {
	for _, op := range slices.Concat(r.Success, r.Failure) {
		if o, ok := op.Request.(*pb.RequestOp_RequestRange); !ok || !o.RequestRange.Serializable {
			return false
		}
	}
	return true
}
