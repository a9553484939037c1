package client_test

import (
	"context"
	"errors"
	"fmt"
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
)

// An answer that creates a watch and cancels it, and at once the end of the
// whole stream. clientv3 then waits for itself for ever: the other watches of
// the stream fall silent, every later one with them, and Close.
func TestWatchRefusedWithItsStreamSilencesNoOther(t *testing.T) {
	for _, code := range []codes.Code{codes.PermissionDenied, codes.ResourceExhausted, codes.Unavailable} {
		inBubble(t, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
			told := map[string]chan string{}
			watch := func(name string) {
				ch := make(chan string, 10)
				told[name] = ch
				go func() {
					for resp := range cli.Watch(t.Context(), "k") {
						ch <- fmt.Sprint(len(resp.Events), " events, error ", resp.Err())
					}
				}()
				time.Sleep(time.Second)
			}
			watch("before")
			for _, m := range c.Members() {
				m.RefuseWatches(code, "not for you")
			}
			watch("while they are refused")
			for _, m := range c.Members() {
				m.RefuseWatches(codes.OK, "")
			}
			watch("after")
			c.Put("k", "v")
			time.Sleep(time.Second)
			synctest.Wait()
			for name, ch := range told {
				if len(ch) == 0 {
					t.Errorf("%v: the watch begun %s is silent, want an event or a typed error", code, name)
					continue
				}
				if got := <-ch; name == "after" && got != "1 events, error <nil>" {
					t.Errorf("%v: the watch begun after got %s, want the event", code, got)
				}
			}
		})
	}
}

// As above, and what ends the stream is what clientv3 gives a watch up for
// that requires a leader. There is one endpoint, so that none is better.
func TestWatchRefusedWithItsStreamForWantOfALeaderIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(1, fakeetcd.Options{Shim: fakeetcd.ShimSidecar})
		defer c.Close()
		cli := newClientOf(t, c.ClientConfig(), options{})
		defer closeInTime(t, cli)
		watch := func() <-chan clientv3.WatchResponse {
			told := make(chan clientv3.WatchResponse, 10)
			go func() {
				for resp := range cli.Watch(clientv3.WithRequireLeader(t.Context()), "k") {
					told <- resp
				}
			}()
			time.Sleep(time.Second)
			return told
		}
		before := watch()
		c.Member(0).RefuseWatches(codes.Unavailable, rpctypes.ErrNoLeader.Error())
		during := watch()
		c.Member(0).RefuseWatches(codes.OK, "")
		after := watch()
		c.Put("k", "v")
		synctest.Wait()
		for name, told := range map[string]<-chan clientv3.WatchResponse{"before": before, "during": during} {
			if len(told) == 0 {
				t.Errorf("the watch begun %s the refusals is silent, want a typed error", name)
			} else if resp := <-told; !errors.Is(resp.Err(), rpctypes.ErrNoLeader) {
				t.Errorf("the watch begun %s the refusals got %d events and %v, want %v", name, len(resp.Events), resp.Err(), rpctypes.ErrNoLeader)
			}
		}
		if len(after) == 0 || len((<-after).Events) != 1 {
			t.Error("the watch begun after the refusals got nothing, want the event")
		}
	})
}

// numbered is a watch on a stream of its own, over all the keys that publish writes.
func numbered(ctx context.Context, cli *client.Client, stream int) *seen {
	s := &seen{}
	ctx = metadata.AppendToOutgoingContext(ctx, "stream", fmt.Sprint(stream))
	go func() { s.read(cli.Watch(ctx, "n/", clientv3.WithPrefix(), clientv3.WithRev(1))) }()
	return s
}

// publish writes a key every so often for some time, past all members, and
// returns the revisions.
func publish(c *fakeetcd.Cluster, every, d time.Duration) (revisions []int64) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(every) {
		revisions = append(revisions, c.Put("n/k", "v"))
	}
	return revisions
}

// complete checks that a watch brought everything once and in order.
func (s *seen) complete(t *testing.T, name any, written []int64) {
	t.Helper()
	if s.err != nil {
		t.Errorf("watch %v ended with %v, want it to go on", name, s.err)
	}
	if !slices.Equal(s.revisions, written) {
		t.Errorf("watch %v brought %d events, want each of %d once and in order", name, len(s.revisions), len(written))
	}
}

// The member with the most streams restarts 50 times.
func TestFiftyRestartsOfTheAttachedMemberLoseNothing(t *testing.T) {
	for _, shim := range []fakeetcd.Shim{fakeetcd.ShimSidecar, fakeetcd.ShimNone} {
		inBubble(t, fakeetcd.Options{Shim: shim}, options{Rebalance: time.Second}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
			var watches []*seen
			for i := range 4 {
				watches = append(watches, numbered(t.Context(), cli, i))
			}
			written := publish(c, 100*time.Millisecond, time.Second)
			for i := range 50 {
				m := slices.MaxFunc(c.Members(), func(a, b *fakeetcd.Member) int { return a.Streams("Watch") - b.Streams("Watch") })
				m.Kill()
				written = append(written, publish(c, 100*time.Millisecond, time.Duration(1+i%4)*100*time.Millisecond)...)
				m.Restart()
				written = append(written, publish(c, 100*time.Millisecond, time.Duration(1+i%5)*100*time.Millisecond)...)
			}
			time.Sleep(6 * time.Second) // longer than the longest wait before a connection is tried again
			synctest.Wait()
			for i, s := range watches {
				s.complete(t, i, written)
			}
		})
	}
}

// All endpoints are gone for a minute. Nothing is silent once they are back.
func TestNothingIsSilentAfterAMinuteWithoutEndpoints(t *testing.T) {
	for name, fault := range map[string]struct{ gone, back func(*fakeetcd.Member) }{
		"cut off": {(*fakeetcd.Member).CutClient, (*fakeetcd.Member).HealClient},
		"killed":  {(*fakeetcd.Member).Kill, (*fakeetcd.Member).Restart},
		"frozen":  {(*fakeetcd.Member).Freeze, (*fakeetcd.Member).Thaw},
	} {
		for _, shim := range []fakeetcd.Shim{fakeetcd.ShimSidecar, fakeetcd.ShimNone} {
			t.Run(fmt.Sprint(name, shim), func(t *testing.T) {
				t.Parallel()
				inBubble(t, fakeetcd.Options{Shim: shim}, options{}, func(t *testing.T, c *fakeetcd.Cluster, cli *client.Client) {
					grant, err := cli.Grant(t.Context(), 300)
					if err != nil {
						t.Fatal(err)
					}
					alive, err := cli.KeepAlive(t.Context(), grant.ID)
					if err != nil {
						t.Fatal(err)
					}
					before := numbered(t.Context(), cli, 1)
					written := publish(c, 100*time.Millisecond, time.Second)
					for _, m := range c.Members() {
						fault.gone(m)
					}
					time.Sleep(10 * time.Second)
					during := numbered(t.Context(), cli, 2)
					read := make(chan error, 1)
					go func() {
						_, err := cli.Get(t.Context(), "n/k")
						read <- err
					}()
					time.Sleep(50 * time.Second)
					for _, m := range c.Members() {
						fault.back(m)
					}
					written = append(written, publish(c, 100*time.Millisecond, 8*time.Second)...)
					time.Sleep(time.Second)
					synctest.Wait()
					before.complete(t, "begun before", written)
					during.complete(t, "begun during", written)
					select {
					case err := <-read:
						if err != nil {
							t.Errorf("the Get without a deadline ended with %v, want it to wait", err)
						}
					default:
						t.Error("a Get without a deadline still waits 9s after the members were back")
					}
					if closed(alive) {
						t.Error("a lease of 300s was given up in one minute without endpoints")
					}
					if _, err := cli.Put(t.Context(), "k", "v"); err != nil {
						t.Errorf("a Put afterwards: %v", err)
					}
				})
			})
		}
	}
}
