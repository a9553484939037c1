//go:build linux

package app

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/quorumwise/quorumwise/e2e/history"
)

const (
	mutexes       = 2
	holdersEach   = 2
	guardedWrites = 2
)

// locks are mutexes that sessions contend for.
type locks struct {
	*site
	mu       sync.Mutex
	sections []history.Section
}

func (l *locks) start() {
	for i := range mutexes {
		for j := range holdersEach {
			h := &holder{
				locks: l, number: i, rand: l.random(uint64(1000 + 10*i + j)),
				seat: seat{site: l.site, name: fmt.Sprintf("%s/mutex-%d/%d", l.cfg.Name, i, j)},
			}
			l.work.Go(func() {
				defer h.seat.leave()
				l.repeat(20*time.Millisecond, h.round)
			})
		}
	}
}

func (l *locks) record() []history.Section {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]history.Section(nil), l.sections...)
}

// holder takes one mutex again and again.
type holder struct {
	*locks
	seat   seat
	number int // of the mutex
	rand   *rand.Rand
	n      int // writes so far
}

// round is one stay in the critical section, or the attempt.
func (h *holder) round() error {
	s, err := h.seat.session()
	if err != nil {
		return err
	}
	sec := history.Section{Mutex: fmt.Sprintf("%s%s/%d", lockPrefix, h.cfg.Name, h.number), Holder: s.name}
	m := concurrency.NewMutex(s.Session, sec.Mutex)
	if err = h.enter(m, &sec); err == nil {
		h.inside(m, s, &sec)
		err = h.leave(m, s, &sec)
	}
	if err != nil {
		h.seat.leave()
	}
	h.mu.Lock()
	h.sections = append(h.sections, sec)
	h.mu.Unlock()
	return err
}

func (h *holder) enter(m *concurrency.Mutex, sec *history.Section) error {
	ctx, cancel := h.seat.queue()
	defer cancel()
	began := time.Now()
	sec.Asked = h.clock.since(began)
	err := m.Lock(ctx)
	entered := h.clock.now() // or when it gave up
	h.file(ofLock, "lock", began, err)
	if err != nil {
		sec.Left, sec.Error = entered, err.Error()
		return err
	}
	if header := m.Header(); header != nil {
		sec.Seen = header.Revision
	}
	owner := m.IsOwner()
	sec.Entered, sec.Key, sec.Fence = entered, m.Key(), owner.GetCompare().GetCreateRevision()
	return nil
}

// inside writes what only the holder may. A holder that learns that its session is
// gone stops, as a careful application does.
func (h *holder) inside(m *concurrency.Mutex, s *session, sec *history.Section) {
	for range guardedWrites {
		if s.lost() {
			break
		}
		h.n++
		w := history.Write{Key: fmt.Sprintf("%s%s/%d", guardedPrefix, h.cfg.Name, h.number), Value: fmt.Sprintf("%s-%d", s.name, h.n)}
		ctx, cancel := h.bound(h.cfg.RequestTimeout)
		began := time.Now()
		resp, err := h.cli.Txn(ctx).If(m.IsOwner()).Then(clientv3.OpPut(w.Key, w.Value)).Commit()
		cancel()
		w.Outcome = OutcomeOf(err)
		switch {
		case err != nil:
		case resp.Succeeded:
			w.Revision = resp.Header.Revision
		default:
			w.Outcome = history.Refused
		}
		h.file(ofNothing, "guarded", began, err)
		sec.Writes = append(sec.Writes, w)
		if h.pause(time.Duration(5+h.rand.IntN(30))*time.Millisecond) != nil {
			break
		}
	}
}

func (h *holder) leave(m *concurrency.Mutex, s *session, sec *history.Section) error {
	ctx, cancel := h.bound(h.cfg.RequestTimeout)
	defer cancel()
	began := time.Now()
	sec.Left = h.clock.since(began)
	sec.Lost = s.lost() && !h.over() // after Left: a session lost before it counts as lost
	err := m.Unlock(ctx)
	h.file(ofNothing, "unlock", began, err)
	sec.Unlocked = OutcomeOf(err)
	if err != nil {
		sec.Error = err.Error()
	}
	return err
}
