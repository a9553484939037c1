//go:build linux

package app

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// cross sends an error through a record.
func cross(t *testing.T, err error) error {
	t.Helper()
	b, failed := json.Marshal(Record{Attempts: []workload.Attempt{{Err: err}}})
	if failed != nil {
		t.Fatal(failed)
	}
	var rec Record
	if failed := json.Unmarshal(b, &rec); failed != nil {
		t.Fatal(failed)
	}
	return rec.Attempts[0].Err
}

func TestARecordIsTheSameAfterItsFile(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(1_700_000_000, int64(n)*1e6).UTC() }
	oops, empty := Crossing(errors.New("oops")), ""
	want := Record{
		Name: "ours", Zero: at(1), Log: "app.log",
		Load: workload.Record{
			Name: "ours", Began: at(1), Ended: at(9), StartRev: 1<<62 + 1,
			Gets:    []workload.Op{{Began: at(2), Ended: at(3), Revision: 7}, {Began: at(4)}},
			Puts:    []workload.Op{{ID: "p", Began: at(2), Ended: at(3), Err: oops}},
			Watches: []workload.WatchRecord{{Name: "w", Events: []workload.Event{{Revision: 1, Value: "v", At: at(5)}}}, {Name: "x", Closed: oops}},
			Leases:  []workload.LeaseRecord{{Name: "l", ID: 5, Answers: []time.Time{at(6)}, TTLs: []workload.TTL{{At: at(7), Remaining: time.Second}}}},
		},
		Attempts:  []workload.Attempt{{Method: workload.MethodWatch, Address: "a", Began: at(1), Watch: "w"}, {Method: workload.MethodPut, Ended: at(2), Err: oops, Values: []string{"p"}, Again: true}},
		Histories: []history.Op{{Caller: 1, Group: "g", ID: "i", Kind: history.Get, Keys: []string{"a", "b"}, Outcome: history.Done, Found: []string{"", "x"}}},
		Streams:   []history.Stream{{Name: "s", Responses: []history.Response{{At: 1, Revision: 2, Changes: []history.Change{{Previous: &empty}, {}}}}}},
		Sections:  []history.Section{{Mutex: "m", Writes: []history.Write{{Value: "v"}}}},
		Reigns:    []history.Reign{{Leader: "l"}},
		Fragments: 3,
		Counts:    []history.Count{{Counter: "c", Acked: []string{"1"}}},
		Failures:  []Failure{{At: at(3), Class: "put", Err: oops}},
		Grades:    []Grade{{At: at(3), Endpoint: "e", Grade: "healthy"}},
		Moves:     []Move{{At: at(3), Class: "watch"}},
		Leaks:     Leaks{Goroutines: [2]int{1, 2}, Connections: []string{"a to b"}},
	}
	path := filepath.Join(t.TempDir(), "record")
	if err := writeRecord(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := readRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the record after its file (-written +read):\n%s", d)
	}
}

func TestARecordThatWasCutShortIsAnErrorThatNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	if _, err := readRecord(path); err == nil {
		t.Error("a record that is not there was read")
	}
}
