package prober

import (
	"log/slog"
	"slices"
	"sync"
	"time"
)

// bench is the state of a prober's loop.
type bench struct {
	*Prober
	judge *judge
	seats []seat // in the order of SetEndpoints
}

// seat is one endpoint with its subscription.
type seat struct {
	Endpoint
	sub    *subscription
	warned bool // that no report is followed
	wrong  bool // that the shim is another member's
}

// figures is how often ages and round trips in the snapshot are refreshed when no verdict changes.
const figures = 10 * time.Second

// loop owns the judge: it judges when a probe has news, when asked, and when a hold ends.
func (p *Prober) loop() {
	b := &bench{Prober: p, judge: newJudge(p.times)}
	defer b.leave()
	timer := time.NewTimer(figures)
	defer timer.Stop()
	due := time.Now().Add(figures)
	for {
		var denied noLeader
		select {
		case <-p.ctx.Done():
			return
		case <-p.notify:
		case <-p.set:
			b.reseat()
		case a := <-p.asked:
			b.prove(a)
		case denied = <-p.denied:
			b.judge.noLeader(denied.address, time.Now())
		case <-timer.C:
		}
		now := time.Now()
		if late := now.Sub(due); late > p.times.late {
			b.judge.excuse(now, late)
		}
		due = b.turn(now)
		if denied.seen != nil {
			b.prove(denied.address) // now that it is awaited
			close(denied.seen)
		}
		timer.Reset(due.Sub(now))
	}
}

// turn judges once, publishes, and returns when to judge again.
func (b *bench) turn(now time.Time) time.Time {
	sights := make([]sight, len(b.seats))
	for i, s := range b.seats {
		sights[i] = sight{s.Address, s.sub.condition()}
	}
	r := b.judge.rule(now, sights)
	b.publish(now, r, sights)
	for i := range b.seats {
		s := &b.seats[i]
		s.sub.stand(r.verdicts[i].Grade == Unhealthy, slices.Contains(r.awaited, s.Address), sights[i].c) // before it is asked
		if r.compare {
			s.sub.compare()
		}
		if slices.Contains(r.ask, s.Address) {
			s.sub.ask()
		}
		if slices.Contains(r.prove, s.Address) {
			s.sub.prove()
		}
	}
	return soonest(r.wake, now.Add(figures))
}

// publish replaces the snapshot; where a verdict changed it also logs and tells.
func (b *bench) publish(now time.Time, r ruling, sights []sight) {
	before := b.newest.Load()
	changed := len(before.Verdicts) != len(r.verdicts) || before.Leader != b.judge.leader || before.Term != b.judge.leadTerm
	for i := range r.verdicts {
		v := &r.verdicts[i]
		if i < len(before.Verdicts) && same(*v, before.Verdicts[i]) && now.Sub(before.At) < figures {
			v.Evidence, v.ProofAge, v.RoundTrip = before.Verdicts[i].Evidence, before.Verdicts[i].ProofAge, before.Verdicts[i].RoundTrip
			continue
		}
		v.Evidence = line(sights[i].c, now)
		if v.Reason == ReasonNoLeader && sights[i].c.state != stateBad {
			v.Evidence += "; but a call was answered no leader"
		}
		changed = changed || i >= len(before.Verdicts) || !same(*v, before.Verdicts[i])
		b.report(&b.seats[i], sights[i].c, *v, r)
	}
	if !changed && now.Sub(before.At) < figures {
		return
	}
	s := &Snapshot{
		At: now, Verdicts: r.verdicts,
		Leader: b.judge.leader, Term: b.judge.leadTerm, LeaderSince: b.judge.leading, CommonSince: b.judge.common,
	}
	b.newest.Store(s)
	if changed && b.cfg.OnChange != nil {
		b.cfg.OnChange(s)
	}
}

// report logs what changed about one endpoint.
func (b *bench) report(s *seat, c *condition, v Verdict, r ruling) {
	if before, ok := r.before[v.Address]; ok {
		b.log.LogAttrs(b.ctx, slog.LevelInfo, "endpoint changed grade",
			slog.String("endpoint", v.Address), slog.String("member", v.Member.String()),
			slog.String("before", before.String()), slog.String("after", v.Grade.String()),
			slog.String("reason", v.Reason), slog.String("evidence", v.Evidence))
	}
	if c.wrongShim && !s.wrong {
		b.log.LogAttrs(b.ctx, slog.LevelWarn, "the shim at this address speaks for another member and is ignored: correct the address, or its --etcd-endpoint",
			slog.String("endpoint", v.Address), slog.String("shim", s.Shim), slog.String("member", v.Member.String()))
	}
	s.wrong = c.wrongShim
	if c.alone && !s.warned && !c.wrongShim {
		s.warned = true
		b.log.LogAttrs(b.ctx, slog.LevelWarn, "endpoint follows no reports; judged without a shim",
			slog.String("endpoint", v.Address), slog.String("shim", s.Shim))
	}
}

// prove has one endpoint settled, and the others give a comparison.
func (b *bench) prove(address string) {
	for i := range b.seats {
		if s := &b.seats[i]; s.Address == address {
			s.sub.prove()
		} else {
			s.sub.compare()
		}
	}
}

// reseat takes up what SetEndpoints wants. New probes are acquired before old ones are
// released, so that one that stays is never restarted.
func (b *bench) reseat() {
	b.mu.Lock()
	endpoints := b.pending
	b.mu.Unlock()
	old := b.seats
	b.seats = make([]seat, 0, len(endpoints))
	taken := make(map[string]bool, len(endpoints))
	for _, e := range endpoints {
		if !taken[e.Address] {
			taken[e.Address] = true
			b.seats = append(b.seats, b.sit(e, old))
		}
	}
	for i := range old {
		if old[i].sub != nil {
			old[i].quit()
		}
	}
}

// sit takes over the old seat of an endpoint, or makes one.
func (b *bench) sit(e Endpoint, old []seat) seat {
	for i := range old {
		if old[i].sub != nil && old[i].Endpoint == e {
			s := old[i]
			old[i].sub = nil
			return s
		}
	}
	key := probeKey{b.share, e, b.times}
	return seat{Endpoint: e, sub: acquire(key, newDialer(b.cfg, e.ServerName, b.times)).subscribe(b.notify)}
}

// quit gives the probe back.
func (s *seat) quit() {
	s.sub.drop()
	release(s.sub.probe)
}

// leave gives all probes back, at once: each may take a moment to end.
func (b *bench) leave() {
	var all sync.WaitGroup
	for i := range b.seats {
		all.Go(b.seats[i].quit)
	}
	all.Wait()
}
