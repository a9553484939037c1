package workload

import (
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// longestIdentity is the longest value, in bytes, that is taken for the identity of a mutation.
// Longer ones are ballast and are not filed.
const longestIdentity = 1024

// Carried are the values of a request's Puts, each once: a transaction may write its identity under
// several keys, or in either of its branches. Values longer than 1 KiB are left out.
func Carried(req any) []string {
	var values []string
	switch r := req.(type) {
	case *pb.PutRequest:
		values = carriedByPut(values, r)
	case *pb.TxnRequest:
		values = carriedByTxn(values, r)
	}
	return values
}

// Identifies says whether a value is counted where it arrives.
func Identifies(value string) bool { return value != "" && len(value) <= longestIdentity }

func carriedByPut(values []string, r *pb.PutRequest) []string {
	if v := string(r.GetValue()); Identifies(v) && !slices.Contains(values, v) {
		return append(values, v)
	}
	return values
}

func carriedByTxn(values []string, r *pb.TxnRequest) []string {
	for _, op := range slices.Concat(r.GetSuccess(), r.GetFailure()) {
		if put := op.GetRequestPut(); put != nil {
			values = carriedByPut(values, put)
		}
		if txn := op.GetRequestTxn(); txn != nil { // etcd limits the depth by the size of a request
			values = carriedByTxn(values, txn)
		}
	}
	return values
}
