package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/cluster"
	"github.com/quorumwise/quorumwise/e2e/scenario"
	"github.com/quorumwise/quorumwise/e2e/workload"
	"github.com/quorumwise/quorumwise/healthsvc"
)

// gatherer reads a running stage into pictures. One goroutine owns it.
type gatherer struct {
	fault, does string
	began       time.Time
	stage       *scenario.Stage
	shims       *shims
	rates       [2]rate // ours, official
}

// picture reads everything once.
func (g *gatherer) picture(now time.Time) picture {
	p := picture{fault: g.fault, does: g.does, at: now.Sub(g.began)}
	ours, official := openStreams(g.stage.Ours), openStreams(g.stage.Control)
	p.members = g.members(ours, official)
	p.clients = []clientState{
		g.client(now, oursName, g.stage.Ours, ours, &g.rates[0]),
		g.client(now, officialName, g.stage.Control, official, &g.rates[1]),
	}
	return p
}

func (g *gatherer) members(ours, official []stream) []memberState {
	sit := g.situation()
	health := g.stage.Client.Health()
	news := g.shims.newest()
	var members []memberState
	for _, m := range g.stage.Cluster.Members() {
		said := news[m.Name()]
		state := memberState{
			name: m.Name(), leads: m.Name() == sit.leader, truth: sit.truth(m.Name()),
			shim: shimWord(said), said: said.Since.Sub(g.began),
			ours: streamsOn(m.Name(), ours), official: streamsOn(m.Name(), official),
		}
		if e, ok := health.Endpoint(g.stage.Ours.View.Endpoint(m)); ok {
			state.grade, state.graded = gradeWord(e.Grade, e.Reason), e.Since.Sub(g.began)
		}
		members = append(members, state)
	}
	return members
}

func (g *gatherer) situation() situation {
	c := g.stage.Cluster
	s := situation{view: g.stage.Ours.View.Name(), held: c.Held()}
	for _, m := range c.Members() {
		s.members = append(s.members, m.Name())
		if m.Server() == nil {
			s.stopped = append(s.stopped, m.Name())
		}
	}
	if leader := c.Leader(); leader != nil {
		s.leader = leader.Name()
	}
	return s
}

func (g *gatherer) client(now time.Time, name string, app *scenario.App, open []stream, r *rate) clientState {
	p := app.Load.Progress()
	c := clientState{name: name, failed: p.Failed, leases: len(p.Leases), ttl: -1}
	c.gets, c.puts = r.next(sample{now, p.Gets, p.Puts})
	for _, began := range p.Waiting {
		if age := now.Sub(began); age > workload.Slow {
			c.waiting++
			c.oldest = max(c.oldest, age)
		}
	}
	for _, w := range p.Watches {
		silent := now.Sub(w.Last)
		if w.Last.IsZero() {
			silent = now.Sub(g.began)
		}
		c.watches = append(c.watches, watchState{on: carrier(w.Name, open), silent: max(silent, 0)})
	}
	for _, l := range p.Leases {
		if l.Lost {
			c.lost++
		}
		if left := l.TTL.Remaining - now.Sub(l.TTL.At); !l.TTL.At.IsZero() && (c.ttl < 0 || left < c.ttl) {
			c.ttl = max(left, 0)
		}
	}
	return c
}

// stream is one open watch or keepalive stream.
type stream struct {
	watch  string // its watch, if it carries one
	member string
}

// openStreams lists an application's open streams, oldest first.
func openStreams(app *scenario.App) []stream {
	var open []stream
	for _, a := range app.Trace.Attempts(func(a workload.Attempt) bool { return a.Stream() && a.Ended.IsZero() }) {
		open = append(open, stream{a.Watch, app.View.MemberAt(a.Address)})
	}
	return open
}

func streamsOn(member string, open []stream) int {
	n := 0
	for _, s := range open {
		if s.member == member {
			n++
		}
	}
	return n
}

// carrier is the member that carries a watch, "" while none does.
func carrier(watch string, open []stream) string {
	for _, s := range slices.Backward(open) {
		if s.watch == watch {
			return s.member
		}
	}
	return ""
}

// sample is how many calls had returned at a moment.
type sample struct {
	at         time.Time
	gets, puts int
}

// rate turns samples into calls a second, over the last second.
type rate struct{ samples []sample }

func (r *rate) next(s sample) (gets, puts float64) {
	r.samples = append(r.samples, s)
	for len(r.samples) > 2 && s.at.Sub(r.samples[1].at) >= time.Second {
		r.samples = r.samples[1:]
	}
	first := r.samples[0]
	over := s.at.Sub(first.at).Seconds()
	if over <= 0 {
		return 0, 0
	}
	return float64(s.gets-first.gets) / over, float64(s.puts-first.puts) / over
}

func gradeWord(grade, reason string) word {
	w := word{text: grade}
	if reason != "" {
		w.text += " (" + reason + ")"
	}
	switch grade {
	case "healthy":
		w.tone = good
	case "unknown", "suspect":
		w.tone = warn
	case "unhealthy":
		w.tone = bad
	default:
		w.tone = faint
	}
	return w
}

// shimWord is what a shim says, as our application hears it: that it serves, or why
// not. Each status has a tone of its own.
func shimWord(n healthsvc.News) word {
	if n.Missed > 1 {
		return word{"no answer", warn}
	}
	switch n.Status {
	case healthsvc.StatusServing:
		return word{"serving", good}
	case healthsvc.StatusNotServing:
		return word{cmp.Or(string(n.Reason), "not serving"), bad}
	case healthsvc.StatusAbsent:
		return word{"there is none", faint}
	default:
		return word{"no answer", warn}
	}
}

// target is the name of the member that a scenario is aimed at, "" if at none.
func target(m *cluster.Member) string {
	if m == nil {
		return ""
	}
	return m.Name()
}
