//go:build linux

package suites

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// comes is a response of a watch of a key that is counted up.
func comes(all ...int64) clientv3.WatchResponse {
	var resp clientv3.WatchResponse
	for _, v := range all {
		resp.Events = append(resp.Events, &clientv3.Event{Kv: &mvccpb.KeyValue{Version: v, ModRevision: 100 + v}})
	}
	return resp
}

func TestTallyFindsWhatIsPlanted(t *testing.T) {
	for _, c := range []struct {
		name   string
		come   []clientv3.WatchResponse
		open   bool  // the channel goes on until the end
		stored int64 // version in the store; 0: no such key
		want   string
	}{
		{"all came", []clientv3.WatchResponse{comes(1), comes(2, 3)}, true, 3, ""},
		{"one is missing between two responses", []clientv3.WatchResponse{comes(1), comes(3)}, true, 3, "version 3 came, want 2"},
		{"one is missing within a response", []clientv3.WatchResponse{comes(1, 3)}, true, 3, "version 3 came, want 2"},
		{"the first is missing", []clientv3.WatchResponse{comes(2, 3)}, true, 3, "version 2 came, want 1"},
		{"one came twice", []clientv3.WatchResponse{comes(1, 2), comes(2, 3)}, true, 3, "version 2 came, want 3"},
		{"they came in the wrong order", []clientv3.WatchResponse{comes(1, 3, 2, 4)}, true, 4, "version 3 came, want 2"},
		{"the last is missing", []clientv3.WatchResponse{comes(1, 2)}, true, 3, "silent since version 2 of 3"},
		{"nothing came", nil, true, 3, "silent since version 0 of 3"},
		{"nothing was written", nil, true, 0, "none of its writes"},
		{"one came that was applied after the store was asked", []clientv3.WatchResponse{comes(1, 2)}, true, 1, ""},
		{"one is missing before such a one", []clientv3.WatchResponse{comes(1, 3)}, true, 2, "version 3 came, want 2"},
		{"the channel was closed", []clientv3.WatchResponse{comes(1, 2, 3)}, false, 3, "channel was closed"},
		{"the watch was cancelled", []clientv3.WatchResponse{comes(1, 2, 3), {Canceled: true, CompactRevision: 7}}, true, 3, "it ended: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				watching, end := context.WithCancel(t.Context())
				events, over, followed := make(chan clientv3.WatchResponse), new(tally), make(chan struct{})
				go func() { defer close(followed); over.follow(watching, events) }()
				for _, resp := range c.come {
					events <- resp
				}
				synctest.Wait()
				if !c.open {
					close(events)
					<-followed
				}
				stored := new(clientv3.GetResponse)
				if c.stored > 0 {
					stored.Kvs = []*mvccpb.KeyValue{{Version: c.stored}}
				}
				patience, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if got := over.ended(patience, stored); c.want == "" && got != "" || !strings.Contains(got, c.want) {
					t.Errorf("%q; want %q", got, c.want)
				}
				end()
				if c.open {
					close(events) // as a client's is when its context ends
					<-followed
				}
				if got := over.wrong(); c.want == "" && got != "" {
					t.Errorf("%q after it was told to end; want nothing", got)
				}
			})
		})
	}
}

// The last version may still be on its way when the store is asked.
func TestTallyWaitsForWhatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		follows := new(tally)
		go func() {
			time.Sleep(9 * time.Second)
			follows.take(comes(1).Events[0])
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if got := follows.ended(ctx, &clientv3.GetResponse{Kvs: []*mvccpb.KeyValue{{Version: 1}}}); got != "" {
			t.Errorf("%q; want nothing: it came in time", got)
		}
	})
}

func TestCountUpGoesOnAfterAWriteThatFailsOrHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second+100*time.Millisecond)
		defer cancel()
		n, began := 0, time.Now()
		done := countUp(ctx, 200*time.Millisecond, func(ctx context.Context) error {
			n++
			switch n {
			case 2:
				return errors.New("refused")
			case 3:
				<-ctx.Done() // after a second
				return ctx.Err()
			}
			return nil
		})
		if n != 15 || len(done) != 13 {
			t.Errorf("%d writes, %d of them done; want 15 and 13: one was refused, one hung for a second", n, len(done))
		}
		if len(done) > 0 && done[0].Sub(began) != 200*time.Millisecond {
			t.Errorf("the first write was done after %v; want 200ms", done[0].Sub(began))
		}
	})
}

// A write that is given up may still reach the store, after it was asked for the last one.
func TestCountUpEndsWithItsLastWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		done := countUp(ctx, 200*time.Millisecond, func(ctx context.Context) error {
			return sleep(ctx, 400*time.Millisecond)
		})
		if len(done) != 1 || ctx.Err() == nil {
			t.Errorf("%d writes were done; want the one that was on its way", len(done))
		}
	})
}
