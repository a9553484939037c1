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

// big writes transactions whose events do not fit into one response. What fills them is too long to
// be counted where it arrives: their ID is put beside it.
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
	op, puts := b.next()
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

// next is the transaction that comes next.
func (b *big) next() (op history.Op, puts []clientv3.Op) {
	b.n++
	op = history.Op{Caller: bigCaller, Group: b.cfg.Name + "/big", ID: fmt.Sprintf("%s-big-%d", b.cfg.Name, b.n), Kind: history.Put}
	put := func(key, value string) {
		key = bigPrefix + b.cfg.Name + "/" + key
		op.Keys, op.Values = append(op.Keys, key), append(op.Values, value)
		puts = append(puts, clientv3.OpPut(key, value))
	}
	put("id", op.ID)
	for i := range bigKeys {
		value := fmt.Sprintf("%s/%d:", op.ID, i)
		put(fmt.Sprint(i), value+strings.Repeat("x", bigValue-len(value)))
	}
	return op, puts
}

// bigCaller is no number of a caller of the histories.
const bigCaller = 1000

func (b *big) record() []history.Op {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]history.Op(nil), b.ops...)
}
