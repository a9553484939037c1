package scenario

import (
	"context"
	"time"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/cluster"
)

// Role says which member a scenario is aimed at.
type Role int

// The roles.
const (
	Nobody   Role = iota // no one member
	Follower             // a follower
	Leader               // the leader
)

// Expect is what the official client is expected to do.
type Expect int

const (
	// Stuck: its user waits, behind a healthy client, for longer than 2.5 s or
	// loses a lease. Otherwise the scenario is void.
	Stuck Expect = iota
	// Unharmed: nothing happens to it, and nothing may happen to ours: no stream
	// is moved.
	Unharmed
	// Open: nothing is expected of it; ours must lose nothing.
	Open
)

// Step is one thing that happens, and how long it is then left to work.
type Step struct {
	Text string // for people, such as "cut follower m2 from its peers"
	Do   func(context.Context, *Stage) error
	Wait time.Duration
	Mark Mark
}

// Mark says what figures take a step for.
type Mark int

// The marks.
const (
	Plain  Mark = iota
	Fault       // the network is taken away as this step begins
	Mended      // it is given back as this step begins
)

// Budget bounds how soon our client must have left the member, counted from the
// fault or, where that comes later, from the election that it causes. Zero bounds
// are not checked.
type Budget struct {
	Calls   time.Duration // the last new call went there, the last read on it was re-sent
	Streams time.Duration // the last watch or lease stream left it
	Lag     time.Duration // how far any watch fell behind the reference, election included
}

// Scenario is one fault and what is expected of it.
type Scenario struct {
	Name    string // in words with dashes
	Does    string // one line
	Members int    // default 3
	Shim    cluster.Shim
	Target  Role
	Control Expect
	Steps   []Step
	Budget  Budget
	Health  client.Health // of our client; ShimAddress and Logger are filled in
	Returns bool          // calls and streams must come back to the member after the heal
	Quick   bool          // part of the short run
	Quiet   bool          // no Gets and Puts
}

// Lasts is how long the steps wait, altogether.
func (s Scenario) Lasts() time.Duration {
	var d time.Duration
	for _, step := range s.Steps {
		d += step.Wait
	}
	return d
}
