//go:build linux

package app

import (
	"time"

	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// Record is all that an application has seen. As JSON it keeps everything.
type Record struct {
	Name     string
	Official bool
	Zero     time.Time // durations count from here
	Load     workload.Record
	Attempts []workload.Attempt // of the load and of all else, after the client was closed

	Histories []history.Op
	Streams   []history.Stream
	Sections  []history.Section
	Reigns    []history.Reign
	Counts    []history.Count
	Sessions  int // of recipes, at most at a time; each has a keepalive stream of its own
	Fragments int // messages of watches that were not the last of their response; counted with Config.Big

	Failures []Failure // in order of their ends; without what the end of the load cut short
	Grades   []Grade   // none of the official client
	Moves    []Move    // likewise
	Leaks    Leaks
	Log      string // path of the process's log
}

// Trace is the trace that the attempts were taken from, for workload.Measure.
func (r Record) Trace() *workload.Trace { return workload.TraceOf(r.Attempts) }

// Failure is a call of the application that ended with an error.
type Failure struct {
	At    time.Time // when it ended
	Took  time.Duration
	Class string // get, put, delete, txn, lock, guarded, unlock, campaign, resign, session, count, watch
	Err   *Error
}

// Grade is a change of what the client thinks of an endpoint.
type Grade struct {
	At                      time.Time
	Endpoint, Grade, Reason string
}

// Move is one call or stream that the client moved.
type Move struct {
	At                      time.Time
	Class, Endpoint, Reason string
}

// Leaks compares the process before its clients were made and after they were
// closed.
type Leaks struct {
	Goroutines  [2]int
	Descriptors [2]int
	Connections []string // of the process that are left, local to remote
	Stacks      string   // of all goroutines, where there are more than before
}

// Progress is how far an application has come.
type Progress struct {
	At      time.Time
	Load    workload.Progress
	Ops     int // of histories, returned
	Locked  int // times that a mutex was entered
	Elected int
	Counted int
	Failed  int       // of all these
	LastOp  time.Time // when the last of them returned without an error
	Moves   int
	Streams int // watches of every kind
}
