//go:build linux

package suites

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// standing has ours open a stream on m1 at 5 s, which ends at a moment; zero: it does not.
func (e *Evidence) standing(method, watch string, ended time.Time) {
	e.Ours.Attempts = append(e.Ours.Attempts, workload.Attempt{Method: method, Watch: watch, Address: address("m1"), Began: at(5 * time.Second), Ended: ended})
}

// A client that leaves anything behind has failed, whatever else it did well.
func TestNothingMayBeLeftOver(t *testing.T) {
	for _, row := range []struct {
		name  string
		plant func(*Evidence)
		says  string // "": it passes
	}{
		{"a goroutine is left", func(e *Evidence) { e.Ours.Leaks.Goroutines[1]++ }, "goroutines"},
		{"a descriptor is left", func(e *Evidence) { e.Ours.Leaks.Descriptors[1]++ }, "open files"},
		{"a connection is left", func(e *Evidence) { e.Ours.Leaks.Connections = []string{"a to b"} }, "connections are left"},
		{"a stream does not end when the client is closed", func(e *Evidence) { e.standing(workload.MethodWatch, "ours/late", time.Time{}) }, "1 calls and streams did not end when the client was closed, the first /etcdserverpb.Watch/Watch on m1 from 5s"},
		{"a call does not end when the client is closed", func(e *Evidence) { e.txn(11*time.Second, time.Time{}) }, "did not end when the client was closed, the first /etcdserverpb.KV/Txn on m2 from 11s"},
		{"a watch stream is opened elsewhere and the one before forgotten", func(e *Evidence) { e.standing(workload.MethodWatch, "ours", at(closes)) }, "watch stream ours stood 2 times when the load ended"},
		{"a lease stream is opened elsewhere and the one before forgotten", func(e *Evidence) { e.standing(workload.MethodKeepAlive, "", at(closes)) }, "3 keepalive streams stood when the load ended; want at most 2"},
		{"one of a session's is forgotten", func(e *Evidence) {
			e.Ours.Sessions = 1
			e.standing(workload.MethodKeepAlive, "", at(closes))
			e.standing(workload.MethodKeepAlive, "", at(closes))
		}, "4 keepalive streams stood when the load ended; want at most 3"},
		{"members hold connections", func(e *Evidence) { e.Connected["ours"] = 2 }, "still hold 2 connections"},
		{"a watch stream is moved as the load ends", func(e *Evidence) { e.standing(workload.MethodWatch, "ours", at(loadEnds-500*time.Millisecond)) }, ""},
		{"a session has a lease stream of its own", func(e *Evidence) {
			e.Ours.Sessions = 1
			e.standing(workload.MethodKeepAlive, "", at(closes))
		}, ""},
		{"recipes watch with one stream each", func(e *Evidence) {
			e.standing(workload.MethodWatch, "", at(closes))
			e.standing(workload.MethodWatch, "", at(closes))
		}, ""},
		{"the official client leaves a stream", func(e *Evidence) {
			e.Control.Attempts = append(e.Control.Attempts, workload.Attempt{Method: workload.MethodWatch, Watch: "control", Address: address("m1"), Began: at(5 * time.Second)})
		}, ""},
	} {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			e := sound()
			row.plant(e)
			want := report.Passed
			if row.says != "" {
				want = report.Failed
			}
			v := e.Judge()
			if text := strings.Join(v.Violations, "\n"); v.Status != want || !strings.Contains(text, row.says) {
				t.Errorf("judged %s (%s), want %s; it says\n%s\nwant it to say %q", v.Status, v.Reason, want, text, row.says)
			}
		})
	}
}
