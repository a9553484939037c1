//go:build linux

package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/e2e/cluster"
	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// program is the application's program in a process of its own, without a host.
type program struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   *json.Encoder
	reports chan report // closed when stdout ends
	record  string
	log     *bytes.Buffer // of stderr; may be read after wait
	seq     int
}

func startProgram(t *testing.T) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(os.Args[0]), reports: make(chan report, 1000), record: filepath.Join(t.TempDir(), "record"), log: new(bytes.Buffer)}
	p.cmd.Env = append(os.Environ(), programEnv+"=1")
	p.cmd.Stderr = p.log
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill() })
	p.lines = json.NewEncoder(p.in)
	go func() {
		defer close(p.reports)
		lines := json.NewDecoder(out)
		for {
			var r report
			if lines.Decode(&r) != nil {
				return
			}
			p.reports <- r
		}
	}()
	return p
}

func runProgram(t *testing.T, cfg Config) *program {
	t.Helper()
	p := startProgram(t)
	p.tell(order{Config: cfg.withDefaults(), Record: p.record, Log: "the log", Within: 30 * time.Second})
	p.wait("the start", func(r report) bool { return r.Started })
	return p
}

// busy is what a busy machine may add to what takes moments.
const busy = 20 * time.Second

// exit waits for the end of the program, which is killed where it does not come, and
// returns its status; negative: a signal's.
func (p *program) exit() int {
	p.t.Helper()
	timer := time.AfterFunc(busy, func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	for range p.reports {
	}
	p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
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
	timeout := time.After(3 * time.Minute)
	var last *Progress
	for {
		select {
		case r, ok := <-p.reports:
			if r.Progress != nil {
				last = r.Progress
			}
			switch {
			case !ok:
				p.t.Fatalf("the program ended with status %d; want %s. Its log:\n%s", p.exit(), what, p.log)
			case fits(r):
				return r
			case r.Error != "":
				p.t.Fatalf("the program says %q; want %s", r.Error, what)
			}
		case <-timeout:
			p.cmd.Process.Signal(syscall.SIGQUIT) // its log ends with its stacks
			p.exit()
			p.t.Fatalf("no word from the program; want %s. Its last progress: %+v. Its log:\n%s", what, last, p.log)
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
	if status := p.exit(); status != exitStopped {
		p.t.Errorf("exit status %d, want %d; its log:\n%s", status, exitStopped, p.log)
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
		Histories: true, Watches: true, Big: time.Second, ManyWatchers: 25, Locks: true, Elections: true, Counters: true,
	}
}

// judge returns the violations in a record: of what must hold on any machine, however
// slow. How long things took, and leases, which are a matter of time too, are judged
// elsewhere.
func judge(t *testing.T, cli *clientv3.Client, rec Record, upTo int64) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	truth, err := history.ReadTruth(ctx, cli, Prefix, 1)
	if err != nil {
		t.Fatal(err)
	}
	past, err := workload.ReadHistory(ctx, cli)
	if err != nil {
		t.Fatal(err)
	}
	linear := history.Linearizable(rec.Histories, truth, time.Minute)
	if !linear.Decided {
		t.Error("the order of the histories was not decided in a minute; groups are too large")
	}
	bad := linear.Violations
	bad = append(bad, history.CheckOnce(rec.Histories, truth, nil)...)
	for _, s := range rec.Streams {
		bad = append(bad, history.CheckStream(s, truth)...)
	}
	bad = append(bad, history.CheckLocks(rec.Sections, truth, time.Minute)...)
	bad = append(bad, history.CheckElections(rec.Reigns, truth, time.Minute)...)
	bad = append(bad, history.CheckCounters(rec.Counts, truth)...)
	for _, w := range rec.Load.Watches {
		bad = append(bad, workload.CheckWatch(w.Name, workload.Between(w.Events, rec.Load.StartRev, upTo), workload.Between(past.Events, rec.Load.StartRev, upTo))...)
	}
	bad = append(bad, workload.CheckOnce(rec.Load.Puts, past.Applied, nil)...)
	bad = append(bad, workload.CheckReads(rec.Load.Gets, rec.Load.Puts)...)
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
			cfg := everything(c, v, official).withDefaults()
			p := runProgram(t, cfg)
			p.wait("progress of every part", func(r report) bool {
				n := r.Progress
				return n != nil && n.Ops > 400 && n.Locked > 5 && n.Elected > 1 && n.Counted > 60 && n.Streams > 25+14 && n.Load.Gets > 50
			})
			upTo, err := c.ref.Finish(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rec := p.stop(upTo)
			if bad := judge(t, c.cli, rec, upTo); len(bad) > 0 {
				t.Errorf("violations without any fault: %q", bad)
			}
			checkLeaks(t, rec)
			if n, leases := keepalives(rec), len(rec.Load.Leases); n <= leases || n > leases+rec.Sessions {
				t.Errorf("%d keepalive streams stood when the load ended; want one for each of %d leases and for some of %d sessions", n, leases, rec.Sessions)
			}
			for _, problem := range append(incomplete(rec), cfg.lacks(rec)...) {
				t.Error(problem)
			}
		})
	}
}

// checkLeaks complains of what a closed client has left.
func checkLeaks(t *testing.T, rec Record) {
	t.Helper()
	l := rec.Leaks
	for _, a := range rec.Attempts {
		if a.Ended.IsZero() {
			t.Errorf("%s to %s, begun at %v, is open after the client was closed", a.Method, a.Address, a.Began)
		}
	}
	if l.Goroutines[1] > l.Goroutines[0] || l.Descriptors[1] > l.Descriptors[0] || len(l.Connections) > 0 {
		t.Errorf("leaks: goroutines %v, descriptors %v (before, after), connections %v; want as many as before and no connection. Stacks:\n%s",
			l.Goroutines, l.Descriptors, l.Connections, l.Stacks)
	}
}

// keepalives counts the lease streams that stood when the load ended.
func keepalives(rec Record) (n int) {
	for _, a := range rec.Attempts {
		if a.Method == workload.MethodKeepAlive && a.Began.Before(rec.Load.Ended) && !a.Ended.Before(rec.Load.Ended) {
			n++
		}
	}
	return n
}

// incomplete says what a record lacks that the load must have produced.
func incomplete(rec Record) []string {
	var lacks []string
	need := func(ok bool, what string) {
		if !ok {
			lacks = append(lacks, "the record has no "+what)
		}
	}
	kinds, swapped, absent := make(map[history.Kind]int), 0, 0
	for _, op := range rec.Histories {
		kinds[op.Kind]++
		if len(op.Keys) > 1 {
			kinds[op.Kind+" of several keys"]++
		}
		if op.Swapped {
			swapped++
		}
		if slices.Contains(op.Found, "") {
			absent++
		}
	}
	for _, k := range []history.Kind{history.Get, history.Put, history.Delete, history.Swap} {
		need(kinds[k] > 10 && kinds[k+" of several keys"] > 3, string(k))
	}
	need(swapped > 3 && swapped < kinds[history.Swap], "swaps of both answers")
	need(absent > 3, "reads of absent keys")
	var notices, fragments, previous int
	for _, s := range rec.Streams {
		for _, r := range s.Responses {
			if len(r.Changes) == 0 {
				notices++
			}
			for _, c := range r.Changes {
				if s.Fragment && len(c.Value) > 1<<16 {
					fragments++
				}
				if c.Previous != nil {
					previous++
				}
			}
		}
		need(len(s.Responses) > 0, "responses on watch "+s.Name)
	}
	need(notices > 0, "progress notices")
	need(fragments > 0, "big changes on a watch with fragments")
	need(previous > 0, "previous values")
	need(slices.ContainsFunc(rec.Sections, func(s history.Section) bool {
		return s.Fence > 0 && len(s.Writes) == guardedWrites && s.Writes[0].Revision > 0
	}), "sections with guarded writes")
	need(slices.ContainsFunc(rec.Reigns, func(r history.Reign) bool { return r.Resigned > r.Elected }), "reigns that ended by resigning")
	for _, c := range rec.Counts {
		need(len(c.Acked) > 5, "increments of "+c.Caller)
	}
	need(rec.Official == (len(rec.Grades) == 0), "grades, or it has and is official")
	need(slices.ContainsFunc(rec.Attempts, func(a workload.Attempt) bool { return strings.HasSuffix(a.Watch, "/shared") }), "attempt of a named stream")
	for _, l := range rec.Load.Leases {
		need(len(l.Answers) > 0 && len(l.TTLs) > 0, "answers or times to live of lease "+l.Name)
	}
	for _, f := range rec.Failures {
		need(f.Err != nil && f.Class != "" && !f.At.IsZero(), "class, time or error of a failure")
	}
	need(!rec.Load.Began.IsZero() && rec.Load.Ended.After(rec.Load.Began), "times of the load")
	return lacks
}
