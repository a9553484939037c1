//go:build linux

package suites

import (
	"time"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// Evidence is all that the judge decides from. It is only read.
type Evidence struct {
	Scenario  Scenario
	Version   string    // of etcd
	Began     time.Time // of the timeline
	Ended     time.Time // the loads were told to stop
	Cut, Heal time.Time // the first fault, the last heal; zero: none
	Acted     time.Time // the first step began that the timeline shows; zero: none did
	Members   []MemberFacts
	Target    string // name; "" none
	Second    string
	Samples   []realetcd.Sample
	Hurts     []Hurt
	Reference []workload.Event
	History   workload.History
	Truth     history.Truth
	Upto      int64          // revision that every watch was given the time to reach
	Arrived   map[string]int // how often each mutation reached a server, by its value
	Uncounted []string       // why Arrived may be too low
	Ours      app.Record
	Control   app.Record
	Crashed   []string          // processes of members that ended by themselves, and how
	Died      map[string]string // applications that did not end as told: why
	Connected map[string]int    // application: connections that members still had from its host after it had ended, but for those that it had closed before
	LeaseTTL  time.Duration     // of the applications; 0: the usual 5 s
	Marks     []report.Mark
	Lateness  report.Lateness
	Stalls    []Stall // from when the loads ran until the steps were played
	Pauses    []Stall // likewise; the times in which all processors stood still
	lags      lags    // likewise
}

// MemberFacts is what a member was called.
type MemberFacts struct {
	Name     string
	Endpoint string
}
