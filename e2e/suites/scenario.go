//go:build linux

package suites

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// Role says which member a scenario is aimed at.
type Role string

// The roles.
const (
	Nobody   Role = ""         // no one member
	Follower Role = "follower" // a follower
	Leader   Role = "leader"   // the leader
)

// Expect is what the official client is expected to do. A scenario in which it suffers
// nothing is void, unless it is marked as a no-harm one: Harmless or Unharmed.
type Expect int

const (
	// Stuck: its user waits, behind a healthy client, for longer than 2.5 s or
	// loses a lease.
	Stuck Expect = iota
	// Suffers: its user notices, by a wait, a failed call or a loss; see harm.
	Suffers
	// Harmless: its user may notice nothing; ours must lose nothing. That there was a fault
	// has to show all the same, see unfelt.
	Harmless
	// Unharmed: nothing happens to it, and nothing may happen to ours: no stream
	// is moved.
	Unharmed
)

// NoHarm says that the scenario shows something even if the official client suffers nothing.
func (x Expect) NoHarm() bool { return x == Harmless || x == Unharmed }

// Mark says what figures take a step for.
type Mark int

// The marks.
const (
	Plain     Mark = iota
	Inflicted      // a fault begins as this step does: figures count from the first one
	Mended         // everything is given back as this step begins: returns count from the last one
	Noted          // the reader of the timeline should see it
)

// Step is one thing that happens, and how long it is then left to work.
type Step struct {
	Text  string // for people, such as "cut the follower from its peers"
	Do    func(context.Context, *Stage) error
	Takes time.Duration // how long Do takes, about; 0: hardly any time
	Wait  time.Duration
	Mark  Mark
}

// Budget bounds how soon our client must have left each member that suffers, counted
// from the fault or, where that comes later, from the end of the election that it
// causes. Zero bounds are not checked.
type Budget struct {
	Calls   time.Duration // the last new call went there, the last read on it was re-sent
	Streams time.Duration // the last watch or lease stream left it
}

// Scenario is one thing that happens to a cluster and what is expected of it.
type Scenario struct {
	Name    string   // in words with dashes, unique
	Suite   string   // matrix, doubles, elections, operations, versions, field, soak
	Does    string   // one line
	Fault   string   // what figures are grouped by; default the name
	Field   []string // cases from the field that it replays, such as "F4"
	Members int      // default 3
	Shim    realetcd.Shim
	Version string // of etcd; "" the run's
	Target  Role
	Second  bool // Stage.Second is chosen too: a follower that is not the target
	Control Expect
	Steps   []Step
	Budget  Budget
	Returns bool     // calls and streams must come back to the member after the heal
	Quick   bool     // part of the selection that runs on every change
	Clock   bool     // the applications have wall clocks that can be stepped
	Needs   []string // of the machine, beside what every scenario needs, for people
	// Upgrades: its members end on the version of etcd that this module uses.
	Upgrades bool
	Endless  bool // it lasts for as long as told (Options.Duration), and is judged in segments
	// Prepare changes the cluster before the observers and the load start: all that it
	// writes has lower revisions than what is judged. It takes about Prepares.
	Prepare  func(context.Context, *Stage) error
	Prepares time.Duration
	// Spared lists members that the reference may be written through; nil: all that
	// are neither Target nor Second. It is called once, before the load starts.
	Spared func(*Stage) []*realetcd.Member
	// App and Cluster change the configurations before the start; App is called for
	// ours and for the control alike (Official tells them apart).
	App     func(*app.Config)
	Cluster func(*realetcd.Config)
	// Judge adds violations of claims that only this scenario makes. Timing adds those
	// of claims about time, which a machine that is late can break as well as anybody.
	Judge  func(*Evidence) []string
	Timing func(*Evidence) findings
	// Shown says why a no-harm scenario has shown nothing, such as that nothing was done: it is
	// void then; "": it has. nil: each hurt tells by itself, see felt.
	Shown func(*Evidence) string
}

// with is the scenario as it is played under options.
func (s Scenario) with(opts Options) Scenario {
	if opts.Members > 0 && (!s.Second || opts.Members >= 5) { // two of three are no minority
		s.Members = opts.Members
	}
	if s.Members == 0 {
		s.Members = 3
	}
	if s.Fault == "" {
		s.Fault = s.Name
	}
	return s
}

// Lasts is about how long preparations and steps take and wait, altogether.
func (s Scenario) Lasts() time.Duration {
	d := s.Prepares
	for _, step := range s.Steps {
		d += step.Takes + step.Wait
	}
	return d
}

// All lists every scenario, those of the matrix last: they are most of a run, and the
// longest ones are better seen to fail early.
func All() []Scenario {
	return slices.Concat(doubles(), elections(), operations(), field(), versions(), soak(), matrix())
}

// Match lists the scenarios whose name or suite/name fits a pattern: a glob ("leader-*",
// "matrix/*"), a name, a suite, or a part of a name. "" fits all.
func Match(pattern string) []Scenario {
	return slices.DeleteFunc(All(), func(s Scenario) bool { return !s.fits(pattern) })
}

func (s Scenario) fits(pattern string) bool {
	whole := s.Suite + "/" + s.Name
	for _, name := range []string{s.Name, whole} {
		if ok, err := path.Match(pattern, name); err == nil && ok {
			return true
		}
	}
	return s.Suite == pattern || strings.Contains(whole, pattern)
}
