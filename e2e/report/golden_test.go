package report_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorumwise/quorumwise/e2e/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

// smallRun has one scenario of each status and something in every field.
func smallRun() report.Run {
	short := func(name string, s report.Status, reason string) report.Scenario {
		return report.Scenario{
			Name: name, Suite: "operations", Does: name + " is done", Members: 3, Shim: "none", Version: "3.7.3",
			Status: s, Reason: reason, Began: sampleBegan.Add(time.Minute), Took: ms(1500), End: ms(1000),
		}
	}
	return report.Run{
		Command: "go run ./e2e/partition run all --seed 7", Seed: 7, Began: sampleBegan, Took: 83 * time.Second, Machine: "2 cores",
		Versions: []report.Version{{Name: "etcd", Version: "3.7.3"}},
		Scenarios: []report.Scenario{
			smallFailure(),
			short("rolling-restart", report.Passed, ""),
			short("quota-full", report.Void, "the control suffered nothing"),
			short("disk-hangs", report.Skipped, "no loop device: permission denied"),
			short("upgrade", report.Broken, "no leader within 30s\n\x1b[31mpanic:\x00 <nil> & \"more\"\xff"),
		},
	}
}

func smallFailure() report.Scenario {
	return report.Scenario{
		Name: "cut-follower", Suite: "matrix", Does: "a follower loses its peers", Fault: "cut", Members: 3, Shim: "sidecar",
		Target: "follower", TargetMember: "m2", Version: "3.7.3", Field: []string{"F1"}, Budget: report.Budget{Calls: ms(400), Streams: ms(800)}, Status: report.Failed,
		Command:    "go run ./e2e/partition run cut-follower --seed 7",
		Violations: []string{"the last stream left m2 2.31 s after the fault", "revision 11 came twice"},
		Notes:      []string{"election at 0.2 s"}, Began: sampleBegan, Took: ms(8123), End: ms(6000),
		Marks: []report.Mark{{At: ms(1000), Kind: report.FaultMark, Text: "cut m2"}, {At: ms(4000), Kind: report.MendedMark, Text: "heal"}, {At: ms(4500), Kind: report.NoteMark, Text: "seen"}},
		Lanes: []report.Lane{{
			Member: "m2", Address: "10.1.0.2:2379",
			Truth: []report.Span{{To: ms(1100), State: "quorum"}, {From: ms(1100), To: ms(6000), State: "no-quorum", Detail: "no leader"}},
			Shim:  []report.Span{{To: ms(6000), State: "serving"}},
		}},
		Apps: []report.App{
			{
				Name: "ours",
				Members: []report.Use{{
					Member: "m2", Grades: []report.Span{{To: ms(1300), State: "healthy"}, {From: ms(1300), To: ms(6000), State: "unhealthy", Detail: "no quorum"}},
					Calls: []report.Point{{At: 0, N: 4}, {At: ms(100), N: 5}}, Streams: []report.Point{{At: ms(90), N: 3}, {At: ms(3310), N: 0}},
				}},
				Moves: []report.Move{{At: ms(3310), Member: "m2", Class: "watch", Reason: "no quorum"}},
				Figures: report.Figures{
					Silence: ms(2310), Silences: report.Quantiles{N: 4, P50: ms(90), P90: ms(2310), P99: ms(2310), Max: ms(2310)}, Lag: ms(2200), Calls: map[string]report.Quantiles{"get": {N: 900, P50: ms(1), P90: ms(2), P99: ms(9), Max: 312345678}},
					Failed: map[string]int{"put": 1}, Unknown: 1, LastCall: ms(300), LastRead: ms(310), LastStream: ms(2310), FalseMoves: 1, EventsTwice: 1, Leases: 2,
					Left: []report.Left{{Member: "m2", At: ms(1000), Call: report.Leave{Took: ms(300), Budget: ms(400)}, Stream: report.Leave{Took: ms(2310), Election: ms(200), Budget: ms(800)}}},
				},
			},
			{
				Name: "control", Official: true,
				Figures: report.Figures{
					Silence: report.Never, Lag: report.Never, Calls: map[string]report.Quantiles{"get": {N: 9, P50: ms(1), P90: ms(5000), P99: ms(5000), Max: report.Never}},
					Failed: map[string]int{"get": 3}, Avoidable: 3, LastCall: ms(3000), LastRead: report.Never, LeasesLost: 1, Leases: 2, Closed: 1, Stuck: "a watch was silent",
				},
			},
		},
		Lateness: report.Lateness{Typical: 100 * time.Microsecond, Worst: ms(3)},
		Files:    []report.File{{Name: "log of m2", Path: "files/cut-follower/m2.log"}},
	}
}

// golden compares with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: readers of the file depend on its form (-want +got); -update if it is meant:\n%s", path, diff)
	}
}

func written(t *testing.T, write func(*bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestJSONKeepsItsForm(t *testing.T) {
	golden(t, "results.json", written(t, func(b *bytes.Buffer) error { return smallRun().WriteJSON(b) }))
}

func TestJUnitKeepsItsForm(t *testing.T) {
	golden(t, "junit.xml", written(t, func(b *bytes.Buffer) error { return smallRun().WriteJUnit(b) }))
}

func TestTablesKeepTheirForm(t *testing.T) {
	golden(t, "table.txt", written(t, func(b *bytes.Buffer) error { return report.Table(b, sampleRun(24)) }))
	golden(t, "table.md", written(t, func(b *bytes.Buffer) error { return report.Markdown(b, sampleRun(24)) }))
}
