package realetcd

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Sampler asks all members of a cluster what they are, again and again, from the
// harness, whose way no fault touches. Every member is asked by a goroutine of its
// own, so that one that does not answer delays no other.
type Sampler struct {
	cancel  context.CancelFunc
	working sync.WaitGroup

	mu      sync.Mutex
	samples []Sample
}

// StartSampler asks every member every so often (default 100 ms), members that join
// later too, and removed ones until they have stopped.
func StartSampler(ctx context.Context, c *Cluster, every time.Duration) *Sampler {
	if every <= 0 {
		every = 100 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Sampler{cancel: cancel}
	s.working.Go(func() { s.attend(ctx, c, every) })
	return s
}

// Stop ends the sampler and returns what it has seen, in order of time: a member's
// sample where anything about it has changed, and its last one. In between it was
// as the sample before says. It may be called again.
func (s *Sampler) Stop() []Sample {
	s.cancel()
	s.working.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.samples, func(a, b Sample) int { return a.At.Compare(b.At) })
	return slices.Clone(s.samples)
}

// attend keeps one observer for every present member.
func (s *Sampler) attend(ctx context.Context, c *Cluster, every time.Duration) {
	observed := make(map[*Member]context.CancelFunc)
	defer func() {
		for _, cancel := range observed {
			cancel()
		}
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		present := c.Members()
		for _, m := range present {
			if observed[m] == nil {
				watching, cancel := context.WithCancel(ctx)
				observed[m] = cancel
				s.working.Go(func() { s.observe(watching, m, every) })
			}
		}
		for m, cancel := range observed {
			if !slices.Contains(present, m) && !m.Running() {
				cancel()
				delete(observed, m)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// observe asks one member until ctx ends. Rounds do not overlap: one that takes long
// leaves out the next.
func (s *Sampler) observe(ctx context.Context, m *Member, every time.Duration) {
	ear := &listener{member: m}
	defer ear.close()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last Sample
	for {
		ear.attend(ctx)
		now := m.sample(ctx, last)
		if ctx.Err() != nil { // the answer may be the context's
			break
		}
		now.Shim = ear.word()
		if changed := (Sample{now.At, last.Member, last.State, last.Leader, last.Term, last.Shim}); changed != now {
			s.add(now)
		}
		last = now
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	if !m.Running() {
		last.State, last.Leader, last.Term, last.Shim = Stopped, 0, 0, ear.word()
	}
	last.Member, last.At = m.name, time.Now()
	s.add(last)
}

func (s *Sampler) add(sample Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = append(s.samples, sample)
}

// sample asks what the member is, not its shim, in at most twice askTimeout. The moment is that of
// the question: an answer that does not come was already missing then.
func (m *Member) sample(ctx context.Context, last Sample) Sample {
	s := Sample{At: time.Now(), Member: m.name}
	p := m.Etcd()
	switch {
	case p == nil:
		s.State = Stopped
		return s
	case p.Frozen():
		s.State = Frozen
		return s
	}
	proof := errNotAsked
	if last.State == Quorum || last.State == Leader {
		var term uint64
		if term, proof = m.proveSoon(ctx); proof == nil && term == last.Term {
			s.State, s.Leader, s.Term = last.State, last.Leader, last.Term // a term has one leader
			return s
		}
	}
	said, mute := m.askSoon(ctx)
	if mute == nil {
		s.Leader, s.Term = said.leader, said.term
	}
	if mute == nil && proof == errNotAsked && said.leader != 0 && !said.learner {
		_, proof = m.proveSoon(ctx)
	}
	s.State = judge(said, mute, proof)
	if s.State == Mute && !m.Running() { // it ended while we asked
		s.State = Stopped
	}
	return s
}

func (m *Member) proveSoon(ctx context.Context) (term uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return m.prove(ctx)
}

func (m *Member) askSoon(ctx context.Context) (claim, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return m.ask(ctx)
}
