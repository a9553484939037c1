//go:build linux

package app

import (
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/e2e/history"
)

// A server cuts a response into fragments from 2 MiB on. A request has at most
// 1.5 MiB, but the event of a transaction that overwrites has the values before it
// too, where they are asked for.
const (
	bigKeys  = 6
	bigValue = 210 << 10
)

// big writes transactions whose events do not fit into one response.
type big struct {
	*site
	mu  sync.Mutex
	ops []history.Op
	n   int
}

func (b *big) start() {
	b.work.Go(func() { b.repeat(b.cfg.Big, b.write) })
}

func (b *big) write() error {
	b.n++
	op := history.Op{Caller: bigCaller, Group: b.cfg.Name + "/big", ID: fmt.Sprintf("%s-big-%d", b.cfg.Name, b.n), Kind: history.Put}
	var puts []clientv3.Op
	for i := range bigKeys {
		key := fmt.Sprintf("%s%s/%d", bigPrefix, b.cfg.Name, i)
		value := fmt.Sprintf("%s/%d:", op.ID, i)
		value += strings.Repeat("x", bigValue-len(value))
		op.Keys, op.Values = append(op.Keys, key), append(op.Values, value)
		puts = append(puts, clientv3.OpPut(key, value))
	}
	ctx, cancel := b.bound(b.cfg.RequestTimeout)
	defer cancel()
	began := time.Now()
	op.Call = b.clock.since(began)
	resp, err := b.cli.Txn(ctx).Then(puts...).Commit()
	op.Return = b.clock.now()
	op.Outcome = OutcomeOf(err)
	if err != nil {
		op.Error = err.Error()
	} else {
		op.Revision = resp.Header.Revision
	}
	b.file(ofHistory, class(op), began, err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ops = append(b.ops, op)
	return err
}

// bigCaller is no number of a caller of the histories.
const bigCaller = 1000

func (b *big) record() []history.Op {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]history.Op(nil), b.ops...)
}
