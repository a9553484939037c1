package workload_test

import (
	"context"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/e2e/cluster"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// The machinery on a cluster without any fault: nothing to complain about, and
// everything counted.
func TestLoadOnAHealthyCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	arrivals := new(workload.Arrivals)
	c, err := cluster.Start(ctx, cluster.Config{
		Members: 1, Dir: t.TempDir(),
		Arrived: func(a cluster.Arrival) { arrivals.Add(a.Request) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	trace := new(workload.Trace)
	cli := dial(t, c.Endpoints(), trace)
	observer := dial(t, c.Endpoints(), new(workload.Trace))
	idle, err := workload.StartReference(ctx, observer, observer, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if upTo, err := idle.Finish(ctx); err == nil {
		t.Errorf("a reference that wrote nothing finished at revision %d; want an error: no watch could miss anything", upTo)
	}
	ref, err := workload.StartReference(ctx, observer, observer, 10*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer ref.Close()
	load, err := workload.Start(ctx, workload.Config{Name: "app", Client: cli, Trace: trace, Observer: observer, Spread: 1})
	if err != nil {
		t.Fatal(err)
	}
	for load.Progress().Puts < 20 || load.Progress().Events < 50 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("progress %+v; want 20 Puts and 50 events", load.Progress())
		}
	}
	upTo, err := ref.Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rec := load.Stop(ctx, upTo)
	h, err := workload.ReadHistory(ctx, observer)
	if err != nil {
		t.Fatal(err)
	}

	var bad []string
	for _, w := range rec.Watches {
		bad = append(bad, workload.CheckWatch(w.Name, workload.Between(w.Events, rec.StartRev, upTo), workload.Between(h.Events, rec.StartRev, upTo))...)
	}
	bad = append(bad, workload.CheckOnce(rec.Puts, h.Applied, arrivals.Counts())...)
	bad = append(bad, workload.CheckReads(rec.Gets, rec.Puts)...)
	for _, l := range rec.Leases {
		bad = append(bad, workload.CheckLease(l)...)
	}
	if len(bad) > 0 {
		t.Errorf("violations without any fault: %q", bad)
	}
	f := workload.Measure(rec, trace, ref.Events(), workload.Fault{}, func(error) bool { return false })
	if f.GetsFailed+f.PutsFailed+f.PutsUnknown+f.LeasesLost+f.WatchesClosed+f.WatchesReopened+f.LeasesReopened != 0 {
		t.Errorf("figures %+v; want nothing failed, lost or opened again", f)
	}
	checkProgress(t, load.Progress(), rec, trace)
	sent := len(trace.Attempts(func(a workload.Attempt) bool { return a.Method == workload.MethodPut }))
	// The end of the load may catch a Put before it is sent.
	if sent < f.PutsAcked || sent > len(rec.Puts) || len(h.Applied) < f.PutsAcked {
		t.Errorf("%d Puts made, %d seen by the trace, %d acknowledged, %d in the history; want all of them counted", len(rec.Puts), sent, f.PutsAcked, len(h.Applied))
	}
}

// What a display shows while the load runs is what the record says at its end.
func checkProgress(t *testing.T, p workload.Progress, rec workload.Record, trace *workload.Trace) {
	t.Helper()
	if p.Gets != len(rec.Gets) || p.Puts != len(rec.Puts) || p.Failed != 0 || len(p.Waiting) != 0 {
		t.Errorf("progress at the end: %d Gets, %d Puts, %d failed, %d waiting; want %d, %d, 0, 0", p.Gets, p.Puts, p.Failed, len(p.Waiting), len(rec.Gets), len(rec.Puts))
	}
	var got, want []string
	for _, a := range trace.Attempts(func(a workload.Attempt) bool { return a.Method == workload.MethodWatch }) {
		got = append(got, a.Watch)
	}
	for i, w := range rec.Watches {
		want = append(want, w.Name)
		if n := len(w.Events); p.Watches[i] != (workload.WatchProgress{Name: w.Name, Last: w.Events[n-1].At}) {
			t.Errorf("progress of watch %s: %+v; want its last event, at %v", w.Name, p.Watches[i], w.Events[n-1].At)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("watch streams of %q in the trace, want those of %q", got, want)
	}
	for i, l := range p.Leases {
		if l.Lost || len(p.Leases) != len(rec.Leases) {
			t.Errorf("progress of lease %s: %+v; want it kept", rec.Leases[i].Name, l)
		}
	}
}

func dial(t *testing.T, endpoints []string, trace *workload.Trace) *clientv3.Client {
	t.Helper()
	cli, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialOptions: []grpc.DialOption{trace.DialOption()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cli.Close() })
	return cli
}
