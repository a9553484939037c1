//go:build linux

package realetcd

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

func put(value string) *pb.PutRequest { return &pb.PutRequest{Key: []byte("k"), Value: []byte(value)} }

func putOp(value string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put(value)}}
}

func txnOp(ops ...*pb.RequestOp) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Success: ops}}}
}

// What a killed member has received counts as well, and so does what the next one in its place
// receives: both write into one file.
func TestArrivalsAreCountedOverRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "arrivals")
	handled := 0
	handler := func(context.Context, any) (any, error) { handled++; return nil, nil }
	for _, values := range [][]string{{"a", "with\nline and \x00\xff"}, {"a", "b"}} {
		a, err := openArrivals(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			if _, err := a.unary(t.Context(), put(v), &grpc.UnaryServerInfo{}, handler); err != nil {
				t.Fatal(err)
			}
		}
		a.close() // as good as a kill: nothing is buffered
	}
	got := make(map[string]int)
	if err := countArrivals(got, path); err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"a": 2, "b": 1, "with\nline and \x00\xff": 1}; !maps.Equal(got, want) {
		t.Errorf("counted %v; want %v", got, want)
	}
	if handled != 4 {
		t.Errorf("%d requests were handled; want all 4", handled)
	}
}

func TestArrivalThatCannotBeFiledIsNoSuccess(t *testing.T) {
	a, err := openArrivals(filepath.Join(t.TempDir(), "arrivals"))
	if err != nil {
		t.Fatal(err)
	}
	a.close()
	handler := func(context.Context, any) (any, error) { t.Error("it was handled"); return nil, nil }
	if _, err := a.unary(t.Context(), put("a"), &grpc.UnaryServerInfo{}, handler); err == nil {
		t.Error("the call succeeded; want an error: its mutation would be missing in the counts")
	}
}

func TestArrivalsFileOfAnyContent(t *testing.T) {
	for content, want := range map[string]map[string]int{
		"":                {},
		"\"a\"\n\"a\"\n":  {"a": 2},
		"\"a\"\n\"half":   {"a": 1}, // being written
		"\"a\"\nnonsense": {"a": 1},
		"nonsense\n":      nil, // an error
		"\"a\n":           nil,
	} {
		path := filepath.Join(t.TempDir(), "arrivals")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		got := make(map[string]int)
		if err := countArrivals(got, path); (err == nil) != (want != nil) || want != nil && !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", content, got, err, want)
		}
	}
	if err := countArrivals(nil, filepath.Join(t.TempDir(), "missing")); err != nil {
		t.Errorf("a member that never ran: %v; want nothing counted", err)
	}
}

func FuzzArrivalIsCountedUnderItsValue(f *testing.F) {
	f.Add("plain")
	f.Add("a\nb\"\x00\xff\u2028")
	f.Fuzz(func(t *testing.T, value string) {
		if value == "" || len(value) > 1<<10 {
			return
		}
		path := filepath.Join(t.TempDir(), "arrivals")
		a, err := openArrivals(path)
		if err != nil {
			t.Fatal(err)
		}
		defer a.close()
		if err := a.add([]string{value}); err != nil {
			t.Fatal(err)
		}
		got := make(map[string]int)
		if err := countArrivals(got, path); err != nil || got[value] != 1 || len(got) != 1 {
			t.Errorf("%q was counted as %v: %v", value, got, err)
		}
	})
}
