package client

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/quorumwise/quorumwise/membership"
	"github.com/quorumwise/quorumwise/picker"
	"github.com/quorumwise/quorumwise/prober"
)

// EndpointHealth is what is known of one endpoint.
type EndpointHealth struct {
	Address string // as gRPC dials it
	Grade   string // healthy, unknown, suspect, unhealthy, parked: see prober.Grade
	// Reason is why: one of the Reason constants of package prober or a shim's own
	// word, mostly one of package healthsvc; "" when healthy by a shim's report.
	Reason    string
	Evidence  string         // the newest evidence, a line for people
	Since     time.Time      // since when the grade holds
	Source    string         // where the verdict comes from: shim, in-process, stock, none
	Cluster   membership.ID  // 0: not known
	Member    membership.ID  // 0: not known
	Leader    membership.ID  // whom the member names; 0: nobody, or not known
	Term      uint64         // raft term as the member tells it; 0: not known
	Connected bool           // the main connection to it is ready
	InFlight  map[string]int // calls and streams by class: read, mutation, watch, lease, stream
}

// Snapshot is the health of all endpoints at one moment. It never changes.
type Snapshot struct {
	At        time.Time        // when Health was called
	Endpoints []EndpointHealth // in the order of the configuration, or of SetEndpoints
	Leader    membership.ID    // named at the highest term; 0: not known
	Term      uint64           // that term; 0: not known
	// FailOpen: no endpoint is healthy or unknown, so the best connected ones are used all the same.
	FailOpen bool
	// NoReports: no endpoint has a shim, beside it or in process; the client
	// judges by itself, which takes longer.
	NoReports bool
	// Moves counts what was moved since the client was made, by class and reason.
	Moves map[MoveKind]int
}

// MoveKind is what was moved and why, in the words of [Move].
type MoveKind struct {
	Class string // read, mutation, watch, lease, stream
	// Reason is one of the Reason constants of this package, of prober or of healthsvc;
	// "other" stands for every other word that a shim may have said.
	Reason string
}

// Endpoint returns the health of one endpoint.
func (s *Snapshot) Endpoint(address string) (EndpointHealth, bool) {
	for _, e := range s.Endpoints {
		if e.Address == address {
			return e, true
		}
	}
	return EndpointHealth{}, false
}

// Health returns what is known of every endpoint now. It may have no endpoints
// for a moment after Attach. After Close it keeps the last grades, with nothing
// connected or in flight.
func (a *Attachment) Health() *Snapshot {
	now := time.Now()
	verdicts := a.prober.Snapshot()
	endpoints := make(map[string]picker.Endpoint)
	for _, ep := range a.hub.Endpoints() {
		endpoints[ep.Address] = ep
	}
	some := len(verdicts.Verdicts) > 0 // else nothing can be said yet
	s := &Snapshot{At: now, Leader: verdicts.Leader, Term: verdicts.Term, FailOpen: some, NoReports: some, Moves: a.moves.all()}
	for _, v := range verdicts.Verdicts {
		s.FailOpen = s.FailOpen && avoided(v.Grade)
		s.NoReports = s.NoReports && v.Source != prober.SourceShim && v.Source != prober.SourceInProcess
		ep := endpoints[v.Address]
		inFlight := make(map[string]int)
		for class, n := range ep.Calls {
			if n > 0 {
				inFlight[className(picker.Class(class))] = n
			}
		}
		s.Endpoints = append(s.Endpoints, EndpointHealth{
			Address: v.Address, Grade: v.Grade.String(), Reason: v.Reason, Evidence: v.Evidence, Since: v.Since,
			Source: v.Source.String(), Cluster: v.Cluster, Member: v.Member, Leader: v.Leader, Term: v.Term,
			Connected: ep.State == connectivity.Ready, InFlight: inFlight,
		})
	}
	return s
}

// why lists every endpoint and why it does not serve, for an error.
func (s *Snapshot) why(now time.Time) string {
	var parts []string
	for _, e := range s.Endpoints {
		state := "not connected"
		if e.Connected {
			state = "connected"
		}
		parts = append(parts, fmt.Sprintf("%s %s, %s (%s) for %v", e.Address, state, e.Grade, e.Reason, now.Sub(e.Since).Round(time.Millisecond)))
	}
	return strings.Join(parts, "; ")
}

// className is the word for a class in snapshots, metrics and moves.
func className(c picker.Class) string {
	switch c {
	case picker.ClassRead:
		return "read"
	case picker.ClassMutation:
		return "mutation"
	case picker.ClassWatch:
		return "watch"
	case picker.ClassLease:
		return "lease"
	case picker.ClassStream:
		return "stream"
	}
	return "other"
}

// moveLog counts moves by kind, and keeps those that the user is yet to be told of.
type moveLog struct {
	mu     sync.Mutex
	n      map[MoveKind]int
	untold []Move
}

func (l *moveLog) add(m Move, tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == nil {
		l.n = make(map[MoveKind]int)
	}
	l.n[MoveKind{m.Class, countedReason(m.Reason)}]++
	if tell {
		l.untold = append(l.untold, m)
	}
}

// take returns what the user is to be told, oldest first, once.
func (l *moveLog) take() []Move {
	l.mu.Lock()
	defer l.mu.Unlock()
	untold := l.untold
	l.untold = nil
	return untold
}

func (l *moveLog) all() map[MoveKind]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[MoveKind]int, len(l.n))
	maps.Copy(out, l.n)
	return out
}
