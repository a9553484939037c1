//go:build linux

package suites

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// herdSize is how many clients there are. Each is a client of its own, with connections and
// one watch of its own; like all clients of one process they share their probes.
const herdSize = 1000

// herdFiles is how many open files a herd needs: each client comes to have a connection to each
// member. Go has raised the soft limit to the hard one.
func herdFiles(members int) uint64 { return uint64(herdSize*members + 500) }

// roomForHerd says that this process may not have as many open files as a herd needs.
func roomForHerd(may uint64, members int) error {
	if need := herdFiles(members); may < need {
		return &nethosts.UnavailableError{
			What: fmt.Sprintf("a herd of %d clients", herdSize),
			Why:  fmt.Sprintf("a process may have %d open files, and it needs %d: raise the hard limit (ulimit -Hn, LimitNOFILE=, docker run --ulimit nofile=)", may, need),
		}
	}
	return nil
}

// refusing is for how long the members that are left refuse new calls.
const refusing = 10 * time.Second

const herdKey = "/bystanders/herd"

// A herd is many clients that all hang on one member.
type herd struct {
	clients []*client.Client
	trace   *workload.Trace
	end     context.CancelFunc
	members sync.WaitGroup
	last    []atomic.Int64 // newest revision that each client has seen
	reopens atomic.Int64   // watches that ended under their user and were opened again
	wrong   atomic.Int64   // events that came twice, or out of order
}

// gather makes the clients, all on one member, and lets them know the others.
func gather(ctx context.Context, st *Stage, at string) (*herd, error) {
	h := &herd{trace: new(workload.Trace), last: make([]atomic.Int64, herdSize)}
	grazing, end := context.WithCancel(ctx)
	h.end = end
	dial := []grpc.DialOption{dialFrom(st.Ours.Host), h.trace.DialOption()} // the same for all, as in one process
	for i := range herdSize {
		cli, err := newClient(st, bystanderConfig{Endpoints: []string{at}, Dial: dial})
		if err != nil {
			return nil, errors.Join(err, h.close())
		}
		h.clients = append(h.clients, cli)
		h.members.Go(func() { h.graze(grazing, cli, &h.last[i]) })
	}
	if err := h.caughtUp(ctx, 1, 30*time.Second); err != nil {
		return nil, errors.Join(err, h.close())
	}
	for _, cli := range h.clients {
		cli.SetEndpoints(st.Cluster.Endpoints()...)
	}
	return h, nil
}

// graze watches, and when its watch ends opens it again at the next revision, later each
// time, as applications do.
func (h *herd) graze(ctx context.Context, cli *client.Client, last *atomic.Int64) {
	const least, most = 250 * time.Millisecond, 4 * time.Second
	pause := least
	for ctx.Err() == nil {
		for resp := range cli.Watch(ctx, herdKey, clientv3.WithRev(last.Load()+1)) {
			for _, ev := range resp.Events {
				if ev.Kv.ModRevision <= last.Load() {
					h.wrong.Add(1)
				}
				last.Store(ev.Kv.ModRevision)
				pause = least
			}
		}
		if sleep(ctx, pause) == nil {
			h.reopens.Add(1)
		}
		pause = min(2*pause, most)
	}
}

// caughtUp waits until every client has seen a revision.
func (h *herd) caughtUp(ctx context.Context, revision int64, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		behind := 0
		for i := range h.last {
			if h.last[i].Load() < revision {
				behind++
			}
		}
		if behind == 0 {
			return nil
		}
		if sleep(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("%d of %d clients have not seen revision %d after %v", behind, len(h.last), revision, within)
		}
	}
}

func (h *herd) close() error {
	h.end()
	h.members.Wait()
	var errs []error
	for _, cli := range h.clients {
		errs = append(errs, cli.Close())
	}
	return errors.Join(errs...)
}

// herdSteps are one step: its parts share the herd.
func herdSteps() []Step {
	return []Step{{Text: "let the member go on which all clients are, while the others refuse for 10 s", Mark: Noted, Takes: refusing + 5*time.Second, Wait: 5 * time.Second, Do: stampede}}
}

func stampede(ctx context.Context, st *Stage) error {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	if err := roomForHerd(files.Cur, len(st.Cluster.Members())); err != nil {
		return err
	}
	writer, err := st.Cluster.Client(st.Others(st.Target)...)
	if err != nil {
		return err
	}
	defer writer.Close()
	if _, err := writer.Put(ctx, herdKey, "first"); err != nil {
		return err
	}
	h, err := gather(ctx, st, st.Target.Endpoint())
	if err != nil {
		return err
	}
	began := time.Now()
	if err := st.loseAttached(ctx); err != nil {
		return errors.Join(err, h.close())
	}
	freed := time.Now()
	st.Note("the others accept calls again")
	resp, err := writer.Put(ctx, herdKey, "last")
	if err != nil {
		return errors.Join(err, h.close())
	}
	behind := h.caughtUp(ctx, resp.Header.Revision, 10*time.Second)
	st.claimTiming(behind == nil, "%v", behind)
	st.Note("all clients were served %v after the refusals had ended; %d of their watches had been opened again by their users", time.Since(freed).Round(time.Millisecond), h.reopens.Load())
	st.judgeArrivals(h, began, freed)
	return errors.Join(h.close(), st.Target.Start(ctx))
}

// loseAttached kills the target while the others refuse new calls.
func (st *Stage) loseAttached(ctx context.Context) (err error) {
	st.Hurt(st.Target, "killed", Ends)
	for _, m := range st.Others(st.Target) {
		defer st.Hurt(m, "refuses new calls", Slows)()
	}
	for _, m := range st.Others(st.Target) {
		if err := m.Refuse(ctx, true); err != nil {
			return err
		}
	}
	if err := st.Target.Kill(); err != nil {
		return err
	}
	st.Note("%s is gone, the others refuse new calls", st.Target.Name())
	err = sleep(ctx, refusing)
	for _, m := range st.Others(st.Target) {
		err = errors.Join(err, m.Refuse(ctx, false))
	}
	return err
}

// Bounds on the herd. asksMost is how often a client that is refused may ask on average in
// the time of refusal: one that doubles its pauses asks about six times, one that does
// not some hundred times.
const (
	asksMost  = 20
	leastPart = 0.3 // of the arrivals, at each of the two members that are left
)

// judgeArrivals claims that the herd asked seldom and arrived at both members.
func (st *Stage) judgeArrivals(h *herd, began, freed time.Time) {
	asked := len(h.trace.Attempts(func(a workload.Attempt) bool {
		return a.Method == workload.MethodWatch && a.Began.After(began) && a.Began.Before(freed)
	}))
	st.claim(asked <= asksMost*herdSize, "%d clients that were refused opened watch streams %d times in %v; want at most %d times each: they should ask later each time", herdSize, asked, refusing, asksMost)
	carried := make(map[string]int)
	for _, address := range h.trace.Open(workload.MethodWatch) {
		carried[address]++
	}
	for _, m := range st.Others(st.Target) {
		n := carried[m.Endpoint()]
		st.claimTiming(float64(n) >= leastPart*herdSize, "%s carries %d of %d streams; want at least %.0f: the two that are left share them", m.Name(), n, herdSize, leastPart*herdSize)
	}
	st.claim(h.wrong.Load() == 0, "%d events came twice or out of order", h.wrong.Load())
	st.Note("while refused the clients asked %d times; afterwards the members carry %v", asked, carried)
}
