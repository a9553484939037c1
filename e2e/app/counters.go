//go:build linux

package app

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/e2e/history"
)

const (
	counterKeys  = 2
	countersEach = 2 // callers of each
	countPause   = 60 * time.Millisecond
)

// counterKey is the key of an application's counter.
func counterKey(app string, number int) string {
	return fmt.Sprintf("%s%s/%d", counterPrefix, app, number)
}

// counters are incremented by reading, comparing and writing.
type counters struct {
	*site
	mu      sync.Mutex
	callers []*history.Count // guarded by mu, what they point to as well
}

func (c *counters) start() {
	for i := range counterKeys {
		for j := range countersEach {
			count := &history.Count{Counter: counterKey(c.cfg.Name, i), Caller: fmt.Sprintf("%s-count-%d-%d", c.cfg.Name, i, j)}
			c.callers = append(c.callers, count)
			n := 0
			c.work.Go(func() {
				c.repeat(countPause, func() error { n++; return c.increment(count, fmt.Sprintf("%s-%d", count.Caller, n)) })
			})
		}
	}
}

func (c *counters) record() []history.Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []history.Count
	for _, count := range c.callers {
		all = append(all, *count)
	}
	return all
}

// increment adds one, unless another caller was quicker.
func (c *counters) increment(count *history.Count, id string) error {
	ctx, cancel := c.bound(c.cfg.RequestTimeout)
	defer cancel()
	began := time.Now()
	was, revision, err := c.read(ctx, count.Counter)
	if err != nil {
		c.file(ofCounter, "get", began, err)
		return err
	}
	began = time.Now()
	resp, err := c.cli.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(count.Counter), "=", revision)).
		Then(clientv3.OpPut(count.Counter, fmt.Sprintf("%s:%d", id, was+1))).
		Commit()
	outcome := OutcomeOf(err)
	if err == nil && !resp.Succeeded {
		outcome = history.Refused
	}
	c.file(ofCounter, "count", began, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch outcome {
	case history.Done:
		count.Acked = append(count.Acked, id)
	case history.Refused:
		count.Refused = append(count.Refused, id)
	case history.Unknown:
		count.Unsure = append(count.Unsure, id)
	}
	return err
}

// read is the count now, and the revision that wrote it; 0 for none.
func (c *counters) read(ctx context.Context, key string) (count int, revision int64, err error) {
	resp, err := c.cli.Get(ctx, key)
	if err != nil || len(resp.Kvs) == 0 {
		return 0, 0, err
	}
	value := string(resp.Kvs[0].Value)
	count, err = strconv.Atoi(value[strings.LastIndex(value, ":")+1:])
	if err != nil {
		return 0, 0, fmt.Errorf("counter %s holds %q, want id:count: %w", key, value, err)
	}
	return count, resp.Kvs[0].ModRevision, nil
}
