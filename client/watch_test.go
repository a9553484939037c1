package client_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
	"github.com/quorumwise/quorumwise/healthsvc"
)

// seen is what one watch brought.
type seen struct {
	from      int64 // first revision that it must bring
	now       bool  // it was begun without a revision
	revisions []int64
	err       error
}

func (s *seen) read(ch clientv3.WatchChan) {
	for resp := range ch {
		for _, e := range resp.Events {
			s.revisions = append(s.revisions, e.Kv.ModRevision)
		}
		if err := resp.Err(); err != nil {
			s.err = err
		}
	}
}

// Invariant: a watch delivers every event once, in order, over any number of
// moves: begun in the middle of one, told of progress, resumed where the store
// was compacted meanwhile. The dumb second version is the list of all writes.
func TestWatchesDeliverEveryEventOnceOverMovesOfAllKinds(t *testing.T) {
	moved := 0
	for seed := range uint64(4) {
		opts := fakeetcd.Options{Shim: fakeetcd.ShimSidecar, Progress: 700 * time.Millisecond}
		inBubble(t, opts, options{MoveSpread: 20 * time.Millisecond, Rebalance: time.Second}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			var written []int64
			var watches []*seen
			compacted := int64(0)
			ctx := t.Context()
			watch := func() {
				wctx := metadata.AppendToOutgoingContext(ctx, "stream", fmt.Sprint(len(watches)%3))
				o := []clientv3.OpOption{clientv3.WithProgressNotify(), clientv3.WithFragment(), clientv3.WithCreatedNotify()}
				s := &seen{now: true}
				if rnd.IntN(2) == 0 && len(written) > 0 {
					s.now, s.from = false, max(written[rnd.IntN(len(written))], compacted)
					o = append(o, clientv3.WithRev(s.from))
				}
				watches = append(watches, s)
				go func() { // Watch returns when it is created, which may be after a move
					ch := cli.Watch(wctx, "k", o...)
					if created, ok := <-ch; ok && s.now {
						s.from = created.Header.Revision + 1
					}
					s.read(ch)
				}()
			}
			for step := range 150 {
				m := c.Member(step % 3)
				switch rnd.IntN(12) {
				case 0, 1:
					watch()
				case 2, 3:
					m.Lie(&healthsvc.Report{Reason: healthsvc.ReasonDraining})
				case 4:
					m.Lie(nil)
				case 5:
					if rnd.IntN(3) == 0 {
						m.ResetConnections()
					}
				case 6:
					if n := len(written); n > 20 && written[n-20] > compacted && rnd.IntN(4) == 0 {
						compacted = written[n-20]
						if _, err := cli.Compact(ctx, compacted); err != nil {
							t.Fatalf("seed %d: Compact: %v", seed, err)
						}
					}
				default:
					written = append(written, c.Put("k", fmt.Sprint(step)))
				}
				time.Sleep(time.Duration(rnd.IntN(120)) * time.Millisecond)
			}
			for _, m := range c.Members() {
				m.Lie(nil)
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
			for i, s := range watches {
				s.check(t, fmt.Sprintf("seed %d, watch %d", seed, i), written)
			}
			moved += streamMoves(cli)
		})
	}
	if moved < 10 {
		t.Errorf("only %d moves, this tests little", moved)
	}
}

// Whoever ends a watch stream with the code of a context, while nobody has cancelled the watch,
// is a member that stops or a proxy that lets no stream last: clientv3 would close its watches.
func TestWatchOutlastsAStreamThatIsEndedOnTheWay(t *testing.T) {
	for _, code := range []codes.Code{codes.Canceled, codes.DeadlineExceeded} {
		inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
			s := &seen{from: c.Put("k", "0") + 1}
			go s.read(cli.Watch(t.Context(), "k", clientv3.WithRev(s.from)))
			time.Sleep(time.Second)
			written := []int64{c.Put("k", "1")}
			time.Sleep(time.Second)
			for _, m := range c.Members() {
				m.EndStreams(code, "ended on the way", "Watch")
			}
			written = append(written, c.Put("k", "2"))
			time.Sleep(time.Second)
			for _, m := range c.Members() { // now also before it has created anything
				m.Reject(code, "ended on the way", "Watch")
				m.EndStreams(code, "ended on the way", "Watch")
			}
			tries := len(c.Requests("Watch"))
			time.Sleep(3 * time.Second)
			if n := len(c.Requests("Watch")) - tries; n < 2 || n > 60 {
				t.Errorf("%v: %d tries in 3 s", code, n)
			}
			for _, m := range c.Members() {
				m.Reject(codes.OK, "")
			}
			written = append(written, c.Put("k", "3"))
			time.Sleep(5 * time.Second)
			synctest.Wait()
			s.check(t, code.String(), written)
		})
	}
}

func (s *seen) check(t *testing.T, name string, written []int64) {
	t.Helper()
	if s.err != nil {
		if !errors.Is(s.err, rpctypes.ErrCompacted) {
			t.Errorf("%s ended with %v", name, s.err)
		}
		return // it says itself that it has missed something
	}
	var want []int64
	for _, r := range written {
		if r >= s.from {
			want = append(want, r)
		}
	}
	got := s.revisions
	if s.now && len(got) > 0 && got[0] == s.from-1 {
		got = got[1:] // clientv3 resumes a watch that had no event yet at the revision of its creation
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s from %d brought %v, want %v", name, s.from, got, want)
	}
}
