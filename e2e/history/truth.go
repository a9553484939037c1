package history

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ReadTruth reads the store's own history below prefix, from revision fromRev on (0:
// from the first) up to the store's current revision, through a client that should
// reach members that no fault touches. It is to be called when nothing is on its way
// any more.
//
// It watches the whole store, writes nothing (the quota may be full), and relies on no
// progress notice: each revision of etcd changes some key, so it knows when it has all,
// and that none is missing. It ends with an error when ctx does, when revisions from
// fromRev on were compacted, and when one is missing.
func ReadTruth(ctx context.Context, cli *clientv3.Client, prefix string, fromRev int64) (Truth, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	now, err := cli.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return Truth{}, fmt.Errorf("history: revision of the store: %w", err)
	}
	r := reader{prefix: prefix, next: max(fromRev, firstChange)}
	r.truth = Truth{From: r.next - 1, Upto: now.Header.Revision}
	if r.done() {
		return r.truth, nil
	}
	for resp := range cli.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(r.next), clientv3.WithPrevKV()) {
		if err := resp.Err(); err != nil {
			return Truth{}, fmt.Errorf("history: reading on from revision %d: %w", r.next, err)
		}
		if err := r.take(resp.Events); err != nil {
			return Truth{}, err
		}
		if r.done() {
			return r.truth, nil
		}
	}
	return Truth{}, fmt.Errorf("history: revisions %d to %d did not come: %w", r.next, r.truth.Upto, cause(ctx))
}

// firstChange is the revision of the first change in an etcd; it is created at the one
// before.
const firstChange = 2

var errEnded = errors.New("the watch ended")

func cause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return errEnded
}

// reader puts a truth together.
type reader struct {
	prefix string
	next   int64 // revision
	truth  Truth
}

func (r *reader) done() bool { return r.next > r.truth.Upto }

// take adds the events of one answer, which holds whole transactions: it must begin
// with the next revision.
func (r *reader) take(events []*clientv3.Event) error {
	for i, ev := range events {
		revision := ev.Kv.ModRevision
		if revision != r.next && (i == 0 || revision != r.next-1) {
			return fmt.Errorf("history: the store's history goes from revision %d to %d", r.next-1, revision)
		}
		r.next = revision + 1
		if revision <= r.truth.Upto && strings.HasPrefix(string(ev.Kv.Key), r.prefix) {
			r.truth.Changes = append(r.truth.Changes, changeOf(ev))
		}
	}
	return nil
}

func changeOf(ev *clientv3.Event) Change {
	c := Change{
		Revision: ev.Kv.ModRevision, Deleted: ev.Type == mvccpb.Event_DELETE, Key: string(ev.Kv.Key), Value: string(ev.Kv.Value),
		Create: ev.Kv.CreateRevision, Version: ev.Kv.Version,
	}
	if ev.PrevKv != nil {
		value := string(ev.PrevKv.Value)
		c.Previous = &value
	}
	return c
}
