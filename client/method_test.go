package client

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/picker"
)

func get() *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{}}}
}

func put() *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{}}}
}

func nested(r *pb.TxnRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: r}}
}

func TestOnlyWhatChangesNothingIsARead(t *testing.T) {
	for _, tt := range []struct {
		method string
		req    any
		want   picker.Class
	}{
		{"/etcdserverpb.KV/Range", &pb.RangeRequest{}, picker.ClassRead},
		{"/etcdserverpb.KV/Put", &pb.PutRequest{}, picker.ClassMutation},
		{"/etcdserverpb.KV/Txn", &pb.TxnRequest{}, picker.ClassRead},
		{"/etcdserverpb.KV/Txn", &pb.TxnRequest{Success: []*pb.RequestOp{get()}, Failure: []*pb.RequestOp{get()}}, picker.ClassRead},
		{"/etcdserverpb.KV/Txn", &pb.TxnRequest{Success: []*pb.RequestOp{get()}, Failure: []*pb.RequestOp{put()}}, picker.ClassMutation},
		{"/etcdserverpb.KV/Txn", &pb.TxnRequest{Success: []*pb.RequestOp{nested(&pb.TxnRequest{Success: []*pb.RequestOp{get()}})}}, picker.ClassRead},
		{"/etcdserverpb.KV/Txn", &pb.TxnRequest{Success: []*pb.RequestOp{nested(&pb.TxnRequest{Failure: []*pb.RequestOp{put()}})}}, picker.ClassMutation},
		{"/etcdserverpb.KV/Txn", &pb.TxnRequest{Success: []*pb.RequestOp{{}}}, picker.ClassMutation}, // an operation of a later version
		{"/etcdserverpb.KV/Txn", "not a transaction", picker.ClassMutation},
		{"/etcdserverpb.Lease/LeaseGrant", &pb.LeaseGrantRequest{}, picker.ClassMutation},
		{"/etcdserverpb.Lease/LeaseTimeToLive", &pb.LeaseTimeToLiveRequest{}, picker.ClassRead},
		{"/etcdserverpb.Maintenance/Alarm", &pb.AlarmRequest{Action: pb.AlarmRequest_GET}, picker.ClassRead},
		{"/etcdserverpb.Maintenance/Alarm", &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE}, picker.ClassMutation},
		{"/etcdserverpb.Maintenance/Defragment", &pb.DefragmentRequest{}, picker.ClassOther},
		{"/etcdserverpb.Auth/Authenticate", &pb.AuthenticateRequest{}, picker.ClassRead},
		{"/v3lockpb.Lock/Lock", nil, picker.ClassMutation}, // unknown: never twice
	} {
		if got := unaryClass(tt.method, tt.req); got != tt.want {
			t.Errorf("unaryClass(%s, %v) = %s, want %s", tt.method, tt.req, className(got), className(tt.want))
		}
	}
}

// Every method that etcd has is sorted on purpose: a new one must be looked at.
func TestEveryMethodOfEtcdIsSorted(t *testing.T) {
	mutations := map[string]bool{
		"Put": true, "DeleteRange": true, "Txn": true, "Compact": true, "LeaseGrant": true, "LeaseRevoke": true,
		"MemberAdd": true, "MemberRemove": true, "MemberUpdate": true, "MemberPromote": true,
		"AuthEnable": true, "AuthDisable": true, "UserAdd": true, "UserDelete": true, "UserChangePassword": true,
		"UserGrantRole": true, "UserRevokeRole": true, "RoleAdd": true, "RoleDelete": true,
		"RoleGrantPermission": true, "RoleRevokePermission": true, "MoveLeader": true, "Downgrade": true, "Alarm": true,
	}
	for _, d := range []grpc.ServiceDesc{pb.KV_ServiceDesc, pb.Lease_ServiceDesc, pb.Cluster_ServiceDesc, pb.Auth_ServiceDesc, pb.Maintenance_ServiceDesc} {
		for _, m := range d.Methods {
			full := "/" + d.ServiceName + "/" + m.MethodName
			want := picker.ClassMutation
			switch {
			case untouched[full]:
				want = picker.ClassOther
			case !mutations[m.MethodName]:
				want = picker.ClassRead
			}
			if got := unaryClass(full, nil); got != want {
				t.Errorf("%s is a %s, want %s", full, className(got), className(want))
			}
		}
	}
	for _, d := range []grpc.ServiceDesc{pb.KV_ServiceDesc, pb.Lease_ServiceDesc, pb.Watch_ServiceDesc, pb.Maintenance_ServiceDesc} {
		for _, m := range d.Streams {
			want := map[string]picker.Class{
				"Watch": picker.ClassWatch, "LeaseKeepAlive": picker.ClassLease, "RangeStream": picker.ClassStream, "Snapshot": picker.ClassOther,
			}
			full := "/" + d.ServiceName + "/" + m.StreamName
			if got := streamClass(full); got != want[m.StreamName] {
				t.Errorf("%s is a %s, want %s", full, className(got), className(want[m.StreamName]))
			}
		}
	}
}
