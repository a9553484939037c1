package workload

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// The one write of the harness that an election can spoil must not spoil a whole scenario.
func TestHistoryIsReadThoughALeaderHandsOver(t *testing.T) {
	for _, row := range []struct {
		name   string
		lasts  time.Duration // how long proposals are dropped
		want   error
		within time.Duration
	}{
		{"a moment", time.Second, nil, 3 * time.Second},
		{"for ever", time.Hour, context.DeadlineExceeded, 20 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := fakeetcd.New(3, fakeetcd.Options{})
				defer c.Close()
				cli, err := clientv3.New(c.ClientConfig())
				if err != nil {
					t.Fatal(err)
				}
				defer cli.Close()
				if _, err := cli.Put(t.Context(), eventPrefix+"1", "event-1"); err != nil {
					t.Fatal(err)
				}
				for _, m := range c.Members() {
					m.Reject(codes.Unknown, "raft proposal dropped", "Put")
					again := time.AfterFunc(row.lasts, func() { m.Reject(codes.OK, "") })
					defer again.Stop()
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				began := time.Now()
				h, err := ReadHistory(ctx, cli)
				if took := time.Since(began); !errors.Is(err, row.want) || took > row.within {
					t.Errorf("after %v: %v; want %v within %v", took, err, row.want, row.within)
				}
				if err == nil && (len(h.Events) != 1 || h.Events[0].Value != "event-1") {
					t.Errorf("events %v; want the one that there was", h.Events)
				}
			})
		})
	}
}
