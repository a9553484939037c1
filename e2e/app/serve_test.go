package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/e2e/cluster"
	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// program is the application's program, run inside the test.
type program struct {
	t       *testing.T
	in      *io.PipeWriter
	lines   *json.Encoder
	reports chan report
	status  chan int
	record  string
	log     *safeBuffer
	seq     int
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func runProgram(t *testing.T, cfg Config) *program {
	t.Helper()
	in, toProgram := io.Pipe()
	fromProgram, out := io.Pipe()
	p := &program{
		t: t, in: toProgram, lines: json.NewEncoder(toProgram), reports: make(chan report, 1000),
		status: make(chan int, 1), record: filepath.Join(t.TempDir(), "record"), log: new(safeBuffer),
	}
	go func() {
		p.status <- serve(in, out, p.log)
		out.Close()
	}()
	go func() {
		defer close(p.reports)
		lines := json.NewDecoder(fromProgram)
		for {
			var r report
			if lines.Decode(&r) != nil {
				return
			}
			p.reports <- r
		}
	}()
	p.tell(order{Config: cfg.withDefaults(), Record: p.record, Within: 30 * time.Second})
	p.wait("the start", func(r report) bool { return r.Started })
	return p
}

func (p *program) tell(line any) {
	p.t.Helper()
	if err := p.lines.Encode(line); err != nil {
		p.t.Fatalf("told the program %+v: %v", line, err)
	}
}

// wait returns the first report that fits.
func (p *program) wait(what string, fits func(report) bool) report {
	p.t.Helper()
	timeout := time.After(40 * time.Second)
	for {
		select {
		case r, ok := <-p.reports:
			switch {
			case !ok:
				p.t.Fatalf("the program ended; want %s. Its log:\n%s", what, p.log)
			case fits(r):
				return r
			case r.Error != "":
				p.t.Fatalf("the program says %q; want %s", r.Error, what)
			}
		case <-timeout:
			p.t.Fatalf("no word from the program; want %s", what)
		}
	}
}

func (p *program) do(c command) report {
	p.t.Helper()
	p.seq++
	c.Seq = p.seq
	p.tell(c)
	return p.wait(string(c.Do), func(r report) bool { return r.Done == c.Seq })
}

// stop ends the program and returns its record.
func (p *program) stop(upTo int64) Record {
	p.t.Helper()
	if r := p.do(command{Do: stop, Upto: upTo, Within: 15 * time.Second}); r.Error != "" {
		p.t.Fatalf("stop: %s", r.Error)
	}
	if status := <-p.status; status != exitStopped {
		p.t.Errorf("exit status %d, want %d", status, exitStopped)
	}
	rec, err := readRecord(p.record)
	if err != nil {
		p.t.Fatal(err)
	}
	return rec
}

// servers is a cluster with the reference of events.
type servers struct {
	*cluster.Cluster
	cli *clientv3.Client
	ref *workload.Reference
}

func startServers(t *testing.T, members int, shim cluster.Shim) *servers {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := cluster.Start(ctx, cluster.Config{Members: members, Dir: t.TempDir(), Shim: shim})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	cli, err := clientv3.New(officialConfig(c.Endpoints()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cli.Close() })
	ref, err := workload.StartReference(ctx, cli, cli, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ref.Close)
	return &servers{Cluster: c, cli: cli, ref: ref}
}

// everything is a configuration with all of the load.
func everything(c *servers, v *cluster.View, official bool) Config {
	shims := make(map[string]string)
	for _, e := range v.Endpoints() {
		shims[e] = v.Shim(e)
	}
	return Config{
		Name: v.Name(), Official: official, Endpoints: v.Endpoints(), ShimAddresses: shims, Observer: c.Endpoints(), Seed: 7,
		Histories: true, Watches: true, Big: 500 * time.Millisecond, ManyWatchers: 25, Locks: true, Elections: true, Counters: true,
	}
}

// judge returns the violations in a record.
func judge(t *testing.T, c *servers, rec Record, upTo int64) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	truth, err := history.ReadTruth(ctx, c.cli, Prefix, 1)
	if err != nil {
		t.Fatal(err)
	}
	past, err := workload.ReadHistory(ctx, c.cli)
	if err != nil {
		t.Fatal(err)
	}
	linear := history.Linearizable(rec.Histories, truth, 20*time.Second)
	if !linear.Decided {
		t.Error("the order of the histories was not decided in 20 s; groups are too large")
	}
	bad := linear.Violations
	bad = append(bad, history.CheckOnce(rec.Histories, truth, nil)...)
	for _, s := range rec.Streams {
		bad = append(bad, history.CheckStream(s, truth)...)
	}
	bad = append(bad, history.CheckLocks(rec.Sections, truth, 10*time.Second)...)
	bad = append(bad, history.CheckElections(rec.Reigns, truth, 10*time.Second)...)
	bad = append(bad, history.CheckCounters(rec.Counts, truth)...)
	for _, w := range rec.Load.Watches {
		bad = append(bad, workload.CheckWatch(w.Name, workload.Between(w.Events, rec.Load.StartRev, upTo), workload.Between(past.Events, rec.Load.StartRev, upTo))...)
	}
	bad = append(bad, workload.CheckOnce(rec.Load.Puts, past.Applied, nil)...)
	bad = append(bad, workload.CheckReads(rec.Load.Gets, rec.Load.Puts)...)
	for _, l := range rec.Load.Leases {
		bad = append(bad, workload.CheckLease(l)...)
	}
	return bad
}

func TestAnApplicationOnAHealthyClusterSeesNothingWrongAndLeavesNothing(t *testing.T) {
	for name, official := range map[string]bool{"ours": false, "official": true} {
		t.Run(name, func(t *testing.T) {
			c := startServers(t, 3, cluster.ShimSidecar)
			v, err := c.View(name)
			if err != nil {
				t.Fatal(err)
			}
			p := runProgram(t, everything(c, v, official))
			p.wait("progress of every part", func(r report) bool {
				n := r.Progress
				return n != nil && n.Ops > 400 && n.Locked > 10 && n.Elected > 3 && n.Counted > 50 && n.Streams > 25+14 && n.Load.Gets > 50
			})
			upTo, err := c.ref.Finish(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rec := p.stop(upTo)
			if bad := judge(t, c, rec, upTo); len(bad) > 0 {
				t.Errorf("violations without any fault: %q", bad)
			}
			if len(rec.Failures) > 0 {
				t.Errorf("%d calls failed without any fault, the first: %+v %v", len(rec.Failures), rec.Failures[0], rec.Failures[0].Err)
			}
			rec.Leaks.Stacks = ""
			t.Log(len(rec.Histories), len(rec.Streams), len(rec.Sections), len(rec.Reigns), rec.Grades, rec.Moves, rec.Leaks, len(rec.Attempts))
		})
	}
}
