//go:build linux

package app

import (
	"context"
	"time"

	"github.com/quorumwise/quorumwise/client"
)

// gradeEvery is how often a client is asked what it thinks of its endpoints.
const gradeEvery = 20 * time.Millisecond

// grades are the changes in a sequence of snapshots.
type grades struct {
	last map[string]Grade // by endpoint
	all  []Grade
}

// add files what differs from the snapshots before. An endpoint that is no longer in
// it gets an empty grade.
func (g *grades) add(at time.Time, s *client.Snapshot) {
	if g.last == nil {
		g.last = make(map[string]Grade)
	}
	here := make(map[string]bool, len(s.Endpoints))
	for _, e := range s.Endpoints {
		here[e.Address] = true
		g.file(Grade{At: at, Endpoint: e.Address, Grade: e.Grade, Reason: e.Reason})
	}
	for endpoint, last := range g.last {
		if !here[endpoint] && last.Grade != "" {
			g.file(Grade{At: at, Endpoint: endpoint})
		}
	}
}

func (g *grades) file(now Grade) {
	last, known := g.last[now.Endpoint]
	if known && last.Grade == now.Grade && last.Reason == now.Reason {
		return
	}
	g.last[now.Endpoint] = now
	g.all = append(g.all, now)
}

// follow looks at a client until ctx ends.
func (g *grades) follow(ctx context.Context, cli *client.Client, clock clock) {
	tick := time.NewTicker(gradeEvery)
	defer tick.Stop()
	for {
		g.add(clock.wall(time.Now()), cli.Health())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
