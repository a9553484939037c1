package report

import "time"

// Run is one run of the suites.
type Run struct {
	Command   string    // how to repeat it
	Seed      int64     //
	Began     time.Time //
	Took      time.Duration
	Versions  []Version // of what took part
	Machine   string    // cores, memory, kernel
	Ended     string    // why before its end; "" is that all was played
	Scenarios []Scenario
}

// Version is what one part of a run was.
type Version struct{ Name, Version string }

// Status is how a scenario ended.
type Status string

// The statuses.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"  // ours violated something: Violations
	Void    Status = "void"    // the control suffered nothing, so nothing was shown: Reason
	Skipped Status = "skipped" // the machine cannot do it: Reason
	Broken  Status = "broken"  // it could not be played: Reason
)

// Scenario is what one scenario has shown. All durations but Took are from Began.
type Scenario struct {
	Name, Suite, Does string
	Fault             string // what figures are grouped by
	Members           int
	Shim              string
	Target            string // role of the member that it is aimed at: follower, leader, or ""
	TargetMember      string // its name
	Version           string // of etcd
	Field             []string
	Budget            Budget
	Command           string // how to repeat it alone; "" is not told
	Status            Status
	Reason            string
	Violations        []string
	Notes             []string // what a reader should know; no violation
	Began             time.Time
	Took              time.Duration
	End               time.Duration // of the timeline
	Marks             []Mark
	Lanes             []Lane // members, in order of name
	Apps              []App  // ours first, then the control
	Lateness          Lateness
	Files             []File
}

// Budget is how soon each member that suffers must have been left, beyond the election; zero:
// that depends on what each suffers, or it is not known.
type Budget struct{ Calls, Streams time.Duration }

// MarkKind is what a mark stands for.
type MarkKind string

// The kinds of mark.
const (
	FaultMark  MarkKind = "fault"
	MendedMark MarkKind = "mended"
	NoteMark   MarkKind = "note"
)

// Mark is one moment of a scenario.
type Mark struct {
	At   time.Duration
	Kind MarkKind
	Text string
}

// Lane is one member.
type Lane struct {
	Member, Address string
	Truth           []Span // stopped, frozen, mute, no-leader, no-quorum, quorum, leader, learner
	Shim            []Span // serving, not-serving, silent, none; Detail is the reason
}

// Span is a state that lasted.
type Span struct {
	From, To time.Duration
	State    string
	Detail   string
}

// App is one application, ours or the control.
type App struct {
	Name     string
	Official bool
	Members  []Use
	Moves    []Move
	Figures  Figures
}

// Use is what an application had on one member.
type Use struct {
	Member  string
	Grades  []Span  // of our client; none for the control
	Calls   []Point // calls begun in each slice of Slice
	Streams []Point // watch and lease streams open, where the number changes
}

// Slice is the width of the columns of Use.Calls.
const Slice = 100 * time.Millisecond

// Point is a number at a moment.
type Point struct {
	At time.Duration
	N  int
}

// Move is one call or stream that our client moved.
type Move struct {
	At            time.Duration
	Member        string // that was left
	Class, Reason string
}

// Never stands for what did not end before the fault did.
const Never = time.Duration(1<<63 - 1)

// Quantiles of a set of durations.
type Quantiles struct {
	N                  int
	P50, P90, P99, Max time.Duration
}

// Figures are what the user of one client has seen, from the fault on.
type Figures struct {
	Silence      time.Duration        // longest without an event on any watch
	Silences     Quantiles            // the longest without an event of each watch
	Lag          time.Duration        // the latest event against the reference
	Calls        map[string]Quantiles // latency by class: get, put, txn, ...
	Failed       map[string]int       // by class
	Avoidable    int                  // calls that failed, whose outcome is unknown or that were slow, although a better choice of member would have served them
	Unknown      int                  // mutations of unknown outcome
	LastCall     time.Duration        // from the fault until the last new call went to the member
	LastRead     time.Duration        // until the last read on it ended
	LastStream   time.Duration        // until the last stream left it
	LastMutation time.Duration
	Left         []Left // what had to leave a member, for each that suffered
	FalseMoves   int    // streams moved off a member that was healthy
	EventsLost   int
	EventsTwice  int
	LeasesLost   int
	Leases       int
	Closed       int    // watches that were closed under the user
	Stuck        string // how its user got stuck; "" if not
}

// Left is how soon one member was left that had to be.
type Left struct {
	Member string
	At     time.Duration // from when on
	Call   Leave         // until the last new call went to it
	Stream Leave         // until the last stream left it
}

// Leave is how soon one thing left a member.
type Leave struct {
	Took     time.Duration // 0: there was none, or the member did not suffer until it was due
	Election time.Duration // for so long no other member served
	Budget   time.Duration // what was allowed after that; 0: not known
}

// Lateness is how late the machine let a goroutine wake up.
type Lateness struct{ Typical, Worst time.Duration }

// File is something kept beside the report.
type File struct{ Name, Path string }
