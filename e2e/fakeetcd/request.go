package fakeetcd

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Request is one message that reached a member on etcd's port.
type Request struct {
	Member  int    // index of the member
	Method  string // full gRPC method
	At      time.Time
	Message proto.Message // not to be changed; nil where a stream was opened
	// ID names a mutation by what it does ("put k=v"), so that one that was sent twice is seen;
	// empty for everything else. Tests give every mutation a value of its own.
	ID string
}

// mutationID names a mutation by its content, empty if the message is none.
func mutationID(message any) string {
	switch r := message.(type) {
	case *pb.PutRequest:
		return fmt.Sprintf("put %s=%s", r.Key, r.Value)
	case *pb.DeleteRangeRequest:
		return fmt.Sprintf("delete %s..%s", r.Key, r.RangeEnd)
	case *pb.TxnRequest:
		if writes(r) {
			return fmt.Sprintf("txn %v", txnWrites(r))
		}
	case *pb.CompactionRequest:
		return fmt.Sprintf("compact %d", r.Revision)
	case *pb.LeaseGrantRequest:
		return fmt.Sprintf("grant %x", r.ID)
	case *pb.LeaseRevokeRequest:
		return fmt.Sprintf("revoke %x", r.ID)
	}
	return ""
}

func txnWrites(r *pb.TxnRequest) []string {
	var ids []string
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			switch o := op.Request.(type) {
			case *pb.RequestOp_RequestPut:
				ids = append(ids, mutationID(o.RequestPut))
			case *pb.RequestOp_RequestDeleteRange:
				ids = append(ids, mutationID(o.RequestDeleteRange))
			case *pb.RequestOp_RequestTxn:
				ids = append(ids, mutationID(o.RequestTxn))
			}
		}
	}
	return ids
}

// Requests returns what arrived for a method, oldest first. A method without a slash is one of
// etcd's own ("Put", "LeaseKeepAlive", "Watch"); health calls have their full name only. Empty:
// everything.
func (c *Cluster) Requests(method string) []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []Request
	for _, r := range c.requests {
		if method == "" || named(r.Method, method) {
			found = append(found, r)
		}
	}
	return found
}

// named reports whether a full method is the one that a test named.
func named(full, name string) bool {
	return full == name || strings.HasPrefix(full, "/etcdserverpb.") && strings.HasSuffix(full, "/"+name)
}

// Mutations returns how many times each mutation arrived at any member, by its ID.
func (c *Cluster) Mutations() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.arrivals)
}

func (m *Member) record(method string, message any) {
	id := mutationID(message)
	msg, _ := message.(proto.Message)
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.c.requests = append(m.c.requests,
		Request{Member: m.index, Method: method, At: time.Now(), Message: msg, ID: id})
	if id != "" {
		m.c.arrivals[id]++
	}
}
