//go:build linux

package realetcd

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Sampler asks all members of a cluster what they are, again and again, from the
// harness, whose way no fault touches, and listens to their shims. Every member is
// asked by a goroutine of its own, so that one that does not answer delays no other.
type Sampler struct {
	cancel  context.CancelFunc
	working sync.WaitGroup

	mu     sync.Mutex
	tracks []*track
}

// sampleEvery is how often members are asked by default.
const sampleEvery = 100 * time.Millisecond

// StartSampler asks every member every so often (default 100 ms), members that join
// later too, and removed ones until they have stopped.
func StartSampler(ctx context.Context, c *Cluster, every time.Duration) *Sampler {
	if every <= 0 {
		every = sampleEvery
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Sampler{cancel: cancel}
	s.working.Go(func() { s.attend(ctx, c, every) })
	return s
}

// Stop ends the sampler and returns what it has found, in order of time: for each
// member a sample where anything about it has changed, and one at the end. In
// between it was as the sample before says. A state counts from when the question
// began that found it, a shim's word from when it arrived. Stop may be called again.
func (s *Sampler) Stop() []Sample {
	s.cancel()
	s.working.Wait()
	return s.found()
}

func (s *Sampler) found() []Sample {
	s.mu.Lock()
	tracks := slices.Clone(s.tracks)
	s.mu.Unlock()
	var all []Sample
	for _, t := range tracks {
		all = append(all, t.samples()...)
	}
	slices.SortStableFunc(all, func(a, b Sample) int { return a.At.Compare(b.At) })
	return all
}

// attend keeps one observer for every member.
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
				t := s.newTrack(m)
				s.working.Go(func() { observe(watching, m, t, every) })
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

func (s *Sampler) newTrack(m *Member) *track {
	t := &track{member: m.name}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracks = append(s.tracks, t)
	return t
}

// observe asks one member until ctx ends. Rounds do not overlap: one that takes long
// leaves out the next.
func observe(ctx context.Context, m *Member, t *track, every time.Duration) {
	ear := &listener{member: m, track: t}
	defer t.end()
	defer ear.close()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last sighting
	for {
		ear.attend(ctx)
		now := m.look(ctx, last)
		if ctx.Err() != nil { // what was found may be the context's end
			if !m.Running() {
				t.see(sighting{at: now.at, state: Stopped})
			}
			return
		}
		t.see(now)
		last = now
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// look finds out what the member is, in at most twice askTimeout. The moment is that of the question:
// an answer that does not come was already missing then. Where a member had quorum and has it still,
// at the same term, one question is enough: a term has one leader.
func (m *Member) look(ctx context.Context, last sighting) sighting {
	s := sighting{at: time.Now()}
	p := m.Etcd()
	switch {
	case p == nil:
		s.state = Stopped
		return s
	case p.Frozen():
		s.state = Frozen
		return s
	}
	proof := errNotAsked
	if last.state == Quorum || last.state == Leader {
		var term uint64
		if term, proof = m.proveSoon(ctx); proof == nil && term == last.term {
			s.state, s.leader, s.term = last.state, last.leader, last.term
			return s
		}
	}
	said, mute := m.askSoon(ctx)
	if mute == nil {
		s.leader, s.term = said.leader, said.term
	}
	if mute == nil && proof == errNotAsked && said.leader != 0 && !said.learner {
		_, proof = m.proveSoon(ctx)
	}
	s.state = judge(said, mute, proof)
	switch p := m.Etcd(); {
	case s.state == Mute && p == nil: // it ended while we asked
		s.state = Stopped
	case s.state == Mute && p.Frozen():
		s.state = Frozen
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
