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

// herdEvery is how often herdKey is counted up.
const herdEvery = 200 * time.Millisecond

// A herd is many clients that all hang on one member.
type herd struct {
	grazers []*grazer
	trace   *workload.Trace
	end     context.CancelFunc
	members sync.WaitGroup
	reopens atomic.Int64 // watches that ended under their user and were opened again
}

// A grazer is one client of a herd, which watches herdKey.
type grazer struct {
	cli   *client.Client
	tally // of all its watches: each goes on where the one before ended
}

// gather makes the clients, all on one member.
func gather(ctx context.Context, st *Stage, at string) (*herd, error) {
	h := &herd{trace: new(workload.Trace)}
	grazing, end := context.WithCancel(ctx)
	h.end = end
	dial := []grpc.DialOption{dialFrom(st.Ours.Host), h.trace.DialOption()} // the same for all, as in one process
	for range herdSize {
		cli, err := newClient(st, bystanderConfig{Endpoints: []string{at}, Dial: dial})
		if err != nil {
			return nil, errors.Join(err, h.close())
		}
		g := &grazer{cli: cli}
		h.grazers = append(h.grazers, g)
		h.members.Go(func() { h.graze(grazing, g) })
	}
	if err := h.caughtUp(ctx, 1, 30*time.Second); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// graze watches, and when its watch ends opens it again at the next revision, later each
// time, as applications do.
func (h *herd) graze(ctx context.Context, g *grazer) {
	const least, most = 250 * time.Millisecond, 4 * time.Second
	pause, next := least, int64(1)
	for ctx.Err() == nil {
		for resp := range g.cli.Watch(ctx, herdKey, clientv3.WithRev(next)) {
			for _, ev := range resp.Events {
				g.take(ev)
				pause, next = least, ev.Kv.ModRevision+1
			}
		}
		if sleep(ctx, pause) == nil {
			h.reopens.Add(1)
		}
		pause = min(2*pause, most)
	}
}

// caughtUp waits until every client has seen a version.
func (h *herd) caughtUp(ctx context.Context, version int64, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		behind := 0
		for _, g := range h.grazers {
			if g.seen.Load() < version {
				behind++
			}
		}
		if behind == 0 {
			return nil
		}
		if sleep(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("%d of %d clients have not seen version %d after %v", behind, len(h.grazers), version, within)
		}
	}
}

// wrong lists what was wrong with what clients saw.
func (h *herd) wrong() (all lines) {
	for i, g := range h.grazers {
		if why := g.wrong(); why != "" {
			all.add("client %d: %s", i, why)
		}
	}
	return all
}

func (h *herd) close() error {
	h.end()
	h.members.Wait()
	var errs []error
	for _, g := range h.grazers {
		errs = append(errs, g.cli.Close())
	}
	return errors.Join(errs...)
}

// herdSteps are one step: its parts share the herd.
func herdSteps() []Step {
	return []Step{{Text: "let the member go on which all clients are, while the others refuse for 10 s", Mark: Noted, Takes: refusing + 8*time.Second, Wait: 5 * time.Second, Do: stampede}}
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
	if err := h.drive(ctx, st, writer); err != nil {
		return errors.Join(err, h.close())
	}
	return errors.Join(h.close(), st.Target.Start(ctx))
}

// drive takes the member from the herd, while herdKey is counted up, and judges where the herd
// goes and what it sees.
func (h *herd) drive(ctx context.Context, st *Stage, writer *clientv3.Client) error {
	stop := countHerdKey(ctx, writer)
	defer stop()
	if err := h.caughtUp(ctx, 4, 30*time.Second); err != nil {
		return err
	}
	for _, g := range h.grazers {
		g.cli.SetEndpoints(st.Cluster.Endpoints()...)
	}
	gone, err := st.loseAttached(ctx)
	if err != nil {
		return err
	}
	freed := time.Now()
	st.Note("the others accept calls again")
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	done := stop()
	stored, err := writer.Get(ctx, herdKey)
	if err != nil {
		return err
	}
	behind := h.caughtUp(ctx, stored.Kvs[0].Version, time.Until(freed.Add(10*time.Second)))
	st.claimTiming(behind == nil, "%v", behind)
	st.Note("all clients were served %v after the refusals had ended; %d of their watches had been opened again by their users", time.Since(freed).Round(time.Millisecond), h.reopens.Load())
	st.judgeArrivals(h.arrivals(st, gone, freed, done))
	return nil
}

// countHerdKey counts it up until stop is called, which says when it did.
func countHerdKey(ctx context.Context, writer *clientv3.Client) (stop func() []time.Time) {
	var done []time.Time
	var counting sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	counting.Go(func() {
		done = countUp(ctx, herdEvery, func(ctx context.Context) error {
			_, err := writer.Put(ctx, herdKey, "")
			return err
		})
	})
	return sync.OnceValue(func() []time.Time { cancel(); counting.Wait(); return done })
}

// loseAttached kills the target while the others refuse new calls, and says when.
func (st *Stage) loseAttached(ctx context.Context) (gone time.Time, err error) {
	st.Hurt(st.Target, "killed", Ends)
	for _, m := range st.Others(st.Target) {
		defer st.Hurt(m, "refuses new calls", Slows)()
	}
	for _, m := range st.Others(st.Target) {
		if err := m.Refuse(ctx, true); err != nil {
			return gone, err
		}
	}
	gone = time.Now()
	if err := st.Target.Kill(); err != nil {
		return gone, err
	}
	st.Note("%s is gone, the others refuse new calls", st.Target.Name())
	err = sleep(ctx, refusing)
	for _, m := range st.Others(st.Target) {
		err = errors.Join(err, m.Refuse(ctx, false))
	}
	return gone, err
}
