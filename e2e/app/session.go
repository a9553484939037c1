//go:build linux

package app

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// session is a session of the recipes whose lease has a keepalive stream of its
// own: two of one application may hang on different members.
type session struct {
	*concurrency.Session
	lessor clientv3.Lease
	name   string // unique
}

// sessions is how many an application of these settings has at most at a time: a seat gives
// one up before it opens the next.
func (c Config) sessions() int {
	n := 0
	if c.Locks {
		n += mutexes * holdersEach
	}
	if c.Elections {
		n += candidates
	}
	return n
}

// openSession grants a lease and keeps it alive. The name is completed by the
// lease's id.
func (s *site) openSession(name string) (*session, error) {
	began := time.Now()
	own := clientv3.NewCtxClient(s.calls)
	own.KV, own.Watcher, own.Lease = s.cli.KV, s.cli.Watcher, clientv3.NewLease(s.cli)
	ctx, cancel := s.bound(s.cfg.RequestTimeout)
	defer cancel()
	granted, err := own.Grant(ctx, int64(s.cfg.LeaseTTL/time.Second))
	var opened *concurrency.Session
	if err == nil {
		opened, err = concurrency.NewSession(own, concurrency.WithLease(granted.ID), concurrency.WithTTL(int(s.cfg.LeaseTTL/time.Second)), concurrency.WithContext(s.calls))
	}
	s.file(ofNothing, "session", began, err)
	if err != nil {
		own.Lease.Close()
		return nil, fmt.Errorf("session %s: %w", name, err)
	}
	return &session{Session: opened, lessor: own.Lease, name: fmt.Sprintf("%s/%x", name, opened.Lease())}, nil
}

// lost says that the session has ended by itself.
func (s *session) lost() bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// abandon stops keeping the lease alive: what hangs on it goes when it expires.
func (s *session) abandon() {
	s.Orphan()
	s.lessor.Close()
}

// seat is a place from which one session after the other takes part in a recipe.
type seat struct {
	*site
	name    string
	current *session
}

// session is the current one, or a new one where it was lost or given up.
func (s *seat) session() (*session, error) {
	if s.current != nil && s.current.lost() {
		s.leave()
	}
	if s.current != nil {
		return s.current, nil
	}
	opened, err := s.openSession(s.name)
	if err == nil {
		s.current = opened
	}
	return opened, err
}

// leave gives the current session up, where a recipe left it in a state that is not
// known: what it holds must go with its lease.
func (s *seat) leave() {
	if s.current != nil {
		s.current.abandon()
		s.current = nil
	}
}

// queue bounds how long one waits for a mutex or an election: long enough for the
// lease of a holder that vanished to expire twice.
func (s *seat) queue() (context.Context, context.CancelFunc) {
	return s.bound(2*s.cfg.LeaseTTL + s.cfg.RequestTimeout)
}
