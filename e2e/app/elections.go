//go:build linux

package app

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/quorumwise/quorumwise/e2e/history"
)

const candidates = 2

// elections is an election with candidates.
type elections struct {
	*site
	mu     sync.Mutex
	reigns []history.Reign
}

func (e *elections) start() {
	for i := range candidates {
		c := &candidate{elections: e, rand: e.random(uint64(2000 + i)), seat: seat{site: e.site, name: fmt.Sprintf("%s/candidate-%d", e.cfg.Name, i)}}
		e.work.Go(func() {
			defer c.seat.leave()
			e.repeat(20*time.Millisecond, c.round)
		})
	}
}

func (e *elections) record() []history.Reign {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]history.Reign(nil), e.reigns...)
}

// candidate campaigns, leads, and resigns after a while.
type candidate struct {
	*elections
	seat seat
	rand *rand.Rand
}

// round is one leadership, or the attempt.
func (c *candidate) round() error {
	s, err := c.seat.session()
	if err != nil {
		return err
	}
	r := history.Reign{Election: electionPrefix + c.cfg.Name, Leader: s.name}
	e := concurrency.NewElection(s.Session, r.Election)
	if err = c.campaign(e, &r); err == nil {
		c.lead(s, &r)
		err = c.resign(e, &r)
	}
	if err != nil {
		c.seat.leave()
	}
	c.mu.Lock()
	c.reigns = append(c.reigns, r)
	c.mu.Unlock()
	return err
}

func (c *candidate) campaign(e *concurrency.Election, r *history.Reign) error {
	ctx, cancel := c.seat.queue()
	defer cancel()
	began := time.Now()
	r.Asked = c.clock.since(began)
	err := e.Campaign(ctx, r.Leader)
	elected := c.clock.now() // or when it gave up
	c.file(ofElection, "campaign", began, err)
	if err != nil {
		r.Resigned, r.Error = elected, err.Error()
		return err
	}
	r.Elected, r.Key, r.Fence = elected, e.Key(), e.Rev()
	return nil
}

// lead returns when the leader has had enough, or has learnt that its session is
// gone.
func (c *candidate) lead(s *session, r *history.Reign) {
	timer := time.NewTimer(time.Duration(200+c.rand.IntN(800)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.Done():
	case <-c.calls.Done():
	}
	if s.lost() && !c.over() {
		r.Lost, r.LostAt = true, c.clock.now()
	}
}

// resign gives the leadership back. From the moment that it is tried the candidate
// holds itself for a leader no more.
func (c *candidate) resign(e *concurrency.Election, r *history.Reign) error {
	if r.Lost || c.over() {
		return nil // the key goes with the lease
	}
	ctx, cancel := c.bound(c.cfg.RequestTimeout)
	defer cancel()
	began := time.Now()
	r.Resigned = c.clock.since(began)
	err := e.Resign(ctx)
	c.file(ofNothing, "resign", began, err)
	if err != nil {
		r.Error = err.Error()
	}
	return err
}
