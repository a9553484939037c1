package client

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumwise/quorumwise/picker"
)

// Full names of the methods that are treated by name.
const (
	etcdMethods     = "/etcdserverpb." // begins those of etcd's own services
	methodWatch     = "/etcdserverpb.Watch/Watch"
	methodKeepAlive = "/etcdserverpb.Lease/LeaseKeepAlive"
	methodTxn       = "/etcdserverpb.KV/Txn"
	methodAlarm     = "/etcdserverpb.Maintenance/Alarm"
)

// idempotent are the methods that gRPC may retry by itself and that are sent
// again when their member is given up. Authenticate makes another token when
// repeated, which harms nobody; it is not in the retry policy because a wrong
// password must not be tried five times.
var idempotent = map[string][]string{
	"etcdserverpb.KV":      {"Range"},
	"etcdserverpb.Lease":   {"LeaseTimeToLive", "LeaseLeases"},
	"etcdserverpb.Cluster": {"MemberList"},
	"etcdserverpb.Auth":    {"AuthStatus", "UserGet", "UserList", "RoleGet", "RoleList"},
}

var reads = func() map[string]bool {
	m := map[string]bool{"/etcdserverpb.Auth/Authenticate": true}
	for service, methods := range idempotent {
		for _, method := range methods {
			m["/"+service+"/"+method] = true
		}
	}
	return m
}()

// repeatedUnseen are the mutations that clientv3 makes again after any Unavailable, a broken
// connection among them. Each attempt comes to the interceptor as a call of its own.
var repeatedUnseen = map[string]bool{
	"/etcdserverpb.Lease/LeaseGrant":       true,
	"/etcdserverpb.Lease/LeaseRevoke":      true,
	"/etcdserverpb.Maintenance/MoveLeader": true,
}

// untouched are methods whose caller means one particular member, or that are
// about health itself: they are never moved.
var untouched = map[string]bool{
	"/etcdserverpb.Maintenance/Status":     true,
	"/etcdserverpb.Maintenance/Defragment": true,
	"/etcdserverpb.Maintenance/Hash":       true,
	"/etcdserverpb.Maintenance/HashKV":     true,
	"/etcdserverpb.Maintenance/Snapshot":   true,
	"/grpc.health.v1.Health/Check":         true,
	"/grpc.health.v1.Health/Watch":         true,
	"/grpc.health.v1.Health/List":          true,
}

// unaryClass sorts a unary call. What is not known to be a read is a mutation:
// never sent twice.
func unaryClass(method string, req any) picker.Class {
	switch {
	case reads[method]:
		return picker.ClassRead
	case untouched[method]:
		return picker.ClassOther
	case method == methodTxn:
		if r, ok := req.(*pb.TxnRequest); ok && readOnly(r) {
			return picker.ClassRead
		}
	case method == methodAlarm:
		if r, ok := req.(*pb.AlarmRequest); ok && r.GetAction() == pb.AlarmRequest_GET {
			return picker.ClassRead
		}
	}
	return picker.ClassMutation
}

// streamClass sorts a stream.
func streamClass(method string) picker.Class {
	switch {
	case method == methodWatch:
		return picker.ClassWatch
	case method == methodKeepAlive:
		return picker.ClassLease
	case untouched[method]:
		return picker.ClassOther
	}
	return picker.ClassStream
}

// readOnly reports whether a transaction changes nothing, whichever branch is taken.
func readOnly(r *pb.TxnRequest) bool {
	for _, branch := range [][]*pb.RequestOp{r.GetSuccess(), r.GetFailure()} {
		for _, op := range branch {
			switch {
			case op.GetRequestRange() != nil:
			case op.GetRequestTxn() != nil && readOnly(op.GetRequestTxn()):
			default:
				return false
			}
		}
	}
	return true
}
