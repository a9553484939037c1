package workload

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Never stands for a duration that did not end before the fault did.
const Never = time.Duration(1<<63 - 1)

// Fault is when and where the network was taken away. The zero Fault is none.
type Fault struct {
	Address string    // the client's door to the member; "" when no one member is meant
	Cut     time.Time // zero: there was none
	Heal    time.Time
}

// Figures are what the user of one client has seen.
type Figures struct {
	// Silence is the longest time without an event on any watch, Lag the longest
	// that an event came later than at the reference. In an election the reference
	// is silent too; the lag is what the client adds.
	Silence, Lag     time.Duration
	Gets, GetsFailed int
	GetMax           time.Duration
	PutsAcked        int
	PutsUnknown      int // by the error: it may or may not have been applied
	PutsFailed       int // by the error: any other
	PutsDropped      int // those of PutsFailed that raft refused ([ProposalDropped])
	PutMax           time.Duration
	Failures         map[string]int // the errors behind GetsFailed and PutsFailed, by text
	WatchesClosed    int
	Leases           int
	LeasesLost       int
	WatchesReopened  int           // named watch streams opened after the load had begun
	LeasesReopened   int           // keepalive streams likewise
	CallsBack        int           // calls on the member after the heal
	StreamsBack      int           // streams opened on the member after the heal
	LastCall         time.Duration // from the cut until the last new call went to the member before the heal; 0: none did
	LastRead         time.Duration // from the cut until the last read on it ended; Never: one was still waiting at the heal
	LastStream       time.Duration // from the cut until the last watch or lease stream left it; Never likewise
	LastMutation     time.Duration // from the cut until the last call on it ended that is no read; Never likewise
}

// Measure computes the figures of one load. unknown says of an error whether it
// leaves a mutation's outcome open.
func Measure(rec Record, trace *Trace, reference []Event, fault Fault, unknown func(error) bool) Figures {
	var f Figures
	f.countOps(rec, unknown)
	f.countStreams(rec)
	f.watchTimes(rec, reference)
	attempts := trace.Attempts(func(a Attempt) bool { return !a.Began.After(rec.Ended) })
	for _, a := range attempts {
		if !a.Began.After(rec.Began) || refused(a) {
			continue
		}
		switch {
		case a.Method == MethodWatch && a.Watch != "": // those of recipes come and go
			f.WatchesReopened++
		case a.Method == MethodKeepAlive:
			f.LeasesReopened++
		}
	}
	if fault.Address != "" && !fault.Cut.IsZero() {
		f.leaving(attempts, fault)
	}
	return f
}

// refused says that a server turned a stream away at once because it knew no
// leader: clientv3 asks again until there is one, and no stream has moved.
func refused(a Attempt) bool {
	const atOnce = 500 * time.Millisecond
	return a.Stream() && !a.Ended.IsZero() && a.Ended.Sub(a.Began) < atOnce && errors.Is(rpctypes.Error(a.Err), rpctypes.ErrNoLeader)
}

func (f *Figures) countOps(rec Record, unknown func(error) bool) {
	for _, g := range rec.Gets {
		f.Gets++
		f.GetMax = max(f.GetMax, g.Took(rec.Ended))
		if g.Err != nil {
			f.GetsFailed++
			f.fail(g.Err)
		}
	}
	for _, p := range rec.Puts {
		f.PutMax = max(f.PutMax, p.Took(rec.Ended))
		switch {
		case p.Ended.IsZero():
		case p.Err == nil:
			f.PutsAcked++
		case unknown(p.Err) || errors.Is(p.Err, context.DeadlineExceeded):
			f.PutsUnknown++
		default:
			f.PutsFailed++
			if ProposalDropped(p.Err.Error()) {
				f.PutsDropped++
			}
			f.fail(p.Err)
		}
	}
}

func (f *Figures) fail(err error) {
	if f.Failures == nil {
		f.Failures = make(map[string]int)
	}
	f.Failures[err.Error()]++
}

func (f *Figures) countStreams(rec Record) {
	for _, w := range rec.Watches {
		if w.Closed != nil {
			f.WatchesClosed++
		}
	}
	for _, l := range rec.Leases {
		f.Leases++
		if len(CheckLease(l)) > 0 {
			f.LeasesLost++
		}
	}
}

// watchTimes measures every watch against the reference. Events that a watch never
// delivered count as late until the end.
func (f *Figures) watchTimes(rec Record, reference []Event) {
	for _, w := range rec.Watches {
		f.Silence = max(f.Silence, Silence(w.Events, rec.Began, rec.Ended))
		arrived := make(map[int64]time.Time, len(w.Events))
		for _, e := range w.Events {
			arrived[e.Revision] = e.At
		}
		for _, e := range reference {
			if e.Revision <= rec.StartRev || e.At.After(rec.Ended) {
				continue
			}
			at, ok := arrived[e.Revision]
			if !ok {
				at = rec.Ended
			}
			f.Lag = max(f.Lag, at.Sub(e.At))
		}
	}
}

// Silence is the longest time without an event between two moments.
func Silence(events []Event, from, to time.Time) time.Duration {
	var longest time.Duration
	last := from
	for _, e := range events {
		if e.At.After(last) && !e.At.After(to) {
			longest = max(longest, e.At.Sub(last))
			last = e.At
		}
	}
	return max(longest, to.Sub(last))
}

// leaving measures when the client has left the member behind the fault.
func (f *Figures) leaving(attempts []Attempt, fault Fault) {
	for _, a := range attempts {
		if a.Address != fault.Address {
			continue
		}
		if a.Began.After(fault.Cut) && a.Began.Before(fault.Heal) {
			f.LastCall = max(f.LastCall, a.Began.Sub(fault.Cut))
		}
		if a.Began.After(fault.Heal) {
			f.CallsBack++
			if a.Stream() {
				f.StreamsBack++
			}
		}
		if !a.Began.Before(fault.Heal) || !a.Ended.IsZero() && !a.Ended.After(fault.Cut) {
			continue // it was not on the member during the fault
		}
		left := Never
		if !a.Ended.IsZero() && a.Ended.Before(fault.Heal) {
			left = a.Ended.Sub(fault.Cut)
		}
		switch {
		case a.Stream():
			f.LastStream = max(f.LastStream, left)
		case a.Method == MethodRange:
			f.LastRead = max(f.LastRead, left)
		default: // whatever else may write: it must not be sent again
			f.LastMutation = max(f.LastMutation, left)
		}
	}
}

// Stuck says whether the user of this client was left alone with the bad member:
// a watch silent for longer than limit behind the reference, a call that took
// longer, a lease lost, or a watch closed. It returns the first such figure.
func (f Figures) Stuck(limit time.Duration) (string, bool) {
	switch {
	case f.LeasesLost > 0:
		return "lease lost", true
	case f.WatchesClosed > 0:
		return "watch closed", true
	case f.Lag > limit:
		return "watch silent for " + f.Lag.Round(time.Millisecond).String(), true
	case f.GetMax > limit:
		return "a Get blocked for " + f.GetMax.Round(time.Millisecond).String(), true
	default:
		return "", false
	}
}
