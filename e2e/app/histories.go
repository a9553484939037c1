//go:build linux

package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/e2e/history"
)

const (
	// generation is how long a set of groups is worked on. The time that the search
	// for an order takes grows with the operations of a group.
	generation = 3 * time.Second
	groups     = 3 // in each generation
	opPause    = 40 * time.Millisecond
)

// histories are callers that work on groups of keys.
type histories struct {
	*site
	mu  sync.Mutex
	ops []history.Op
}

func (h *histories) start() {
	for i := range h.cfg.Callers {
		c := &caller{histories: h, number: i, rand: h.random(uint64(i))}
		h.work.Go(func() { h.repeat(opPause, c.step) })
	}
}

// record is a copy of what was done.
func (h *histories) record() []history.Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]history.Op(nil), h.ops...)
}

// caller makes one operation after the other.
type caller struct {
	*histories
	number int
	rand   *rand.Rand
	n      int // operations so far
	gen    int
	seen   map[string]string // newest values that it knows of, in this generation
}

// step makes one operation and files it.
func (c *caller) step() error {
	c.n++
	op := c.choose(int(c.clock.now() / generation))
	ctx, cancel := c.bound(c.patience())
	defer cancel()
	began := time.Now()
	op.Call = c.clock.since(began)
	err := c.make(ctx, &op)
	op.Return = c.clock.now()
	op.Outcome = OutcomeOf(err)
	switch {
	case err == nil:
		c.learn(op)
	case op.Kind == history.Get:
		op.Outcome = history.Refused // a read that failed has changed nothing
	}
	if err != nil {
		op.Error = err.Error()
	}
	c.file(ofHistory, class(op), began, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ops = append(c.ops, op)
	return err
}

// class names the call that an operation is made with.
func class(op history.Op) string {
	if op.Kind == history.Swap || len(op.Keys) > 1 {
		return "txn"
	}
	return string(op.Kind)
}

// patience is the timeout of the next operation. Of three callers one has the
// request timeout, one no deadline, and one a shorter one each time.
func (c *caller) patience() time.Duration {
	whole := c.cfg.RequestTimeout
	switch c.number % 3 {
	case 0:
		return whole
	case 1:
		return 0
	default:
		return whole/10 + time.Duration(c.rand.Int64N(int64(whole)))
	}
}

// choose decides on the next operation.
func (c *caller) choose(gen int) history.Op {
	if gen != c.gen || c.seen == nil {
		c.gen, c.seen = gen, make(map[string]string)
	}
	g := c.rand.IntN(groups)
	group := fmt.Sprintf("%s/%d.%d", c.cfg.Name, gen, g)
	all := []string{"a", "b", "c"}[:2+g%2]
	var keys []string
	for _, k := range all {
		keys = append(keys, historyPrefix+group+"/"+k)
	}
	op := history.Op{Caller: c.number, Group: group, ID: fmt.Sprintf("%s-%d-%d", c.cfg.Name, c.number, c.n)}
	if c.rand.IntN(3) > 0 { // else all keys in one transaction
		i := c.rand.IntN(len(keys))
		keys = keys[i : i+1]
	}
	op.Keys = keys
	switch n := c.rand.IntN(100); {
	case n < 35:
		op.Kind = history.Get
	case n < 65:
		op.Kind = history.Put
	case n < 90:
		op.Kind = history.Swap
		op.Expect = c.seen[keys[0]]
	default:
		op.Kind = history.Delete
	}
	if op.Kind == history.Put || op.Kind == history.Swap {
		for i := range keys {
			op.Values = append(op.Values, fmt.Sprintf("%s/%d", op.ID, i))
		}
	}
	return op
}

// learn remembers what an operation has shown.
func (c *caller) learn(op history.Op) {
	for i, key := range op.Keys {
		switch {
		case op.Kind == history.Get || op.Kind == history.Swap && !op.Swapped:
			c.seen[key] = op.Found[i]
		case op.Kind == history.Delete:
			c.seen[key] = ""
		default:
			c.seen[key] = op.Values[i]
		}
	}
}

// make sends the operation and fills in what the answer says.
func (c *caller) make(ctx context.Context, op *history.Op) error {
	if len(op.Keys) == 1 && op.Kind != history.Swap {
		return c.single(ctx, op)
	}
	var conditions []clientv3.Cmp
	if op.Kind == history.Swap {
		conditions = append(conditions, holds(op.Keys[0], op.Expect))
	}
	then, otherwise := requests(op)
	resp, err := c.cli.Txn(ctx).If(conditions...).Then(then...).Else(otherwise...).Commit()
	if err != nil {
		return err
	}
	op.Revision = resp.Header.Revision
	op.Swapped = op.Kind == history.Swap && resp.Succeeded
	if op.Kind == history.Get || op.Kind == history.Swap && !resp.Succeeded {
		for _, r := range resp.Responses {
			op.Found = append(op.Found, found(r.GetResponseRange()))
		}
	}
	return nil
}

// single makes an operation on one key without a transaction.
func (c *caller) single(ctx context.Context, op *history.Op) error {
	var header *pb.ResponseHeader
	switch op.Kind {
	case history.Get:
		resp, err := c.cli.Get(ctx, op.Keys[0])
		if err != nil {
			return err
		}
		header, op.Found = resp.Header, []string{found((*pb.RangeResponse)(resp))}
	case history.Put:
		resp, err := c.cli.Put(ctx, op.Keys[0], op.Values[0])
		if err != nil {
			return err
		}
		header = resp.Header
	case history.Delete:
		resp, err := c.cli.Delete(ctx, op.Keys[0])
		if err != nil {
			return err
		}
		header = resp.Header
	case history.Swap: // always a transaction
	}
	op.Revision = header.GetRevision()
	return nil
}

// requests are the operation's halves of a transaction.
func requests(op *history.Op) (then, otherwise []clientv3.Op) {
	for i, key := range op.Keys {
		switch op.Kind {
		case history.Get:
			then = append(then, clientv3.OpGet(key))
		case history.Put:
			then = append(then, clientv3.OpPut(key, op.Values[i]))
		case history.Delete:
			then = append(then, clientv3.OpDelete(key))
		case history.Swap:
			then = append(then, clientv3.OpPut(key, op.Values[i]))
			otherwise = append(otherwise, clientv3.OpGet(key))
		}
	}
	return then, otherwise
}

// holds compares a key with a value; an absent key compares with no value at all.
func holds(key, value string) clientv3.Cmp {
	if value == "" {
		return clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	}
	return clientv3.Compare(clientv3.Value(key), "=", value)
}

func found(r *pb.RangeResponse) string {
	if len(r.GetKvs()) == 0 {
		return ""
	}
	return string(r.Kvs[0].Value)
}
