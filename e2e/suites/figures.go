//go:build linux

package suites

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/e2e/app"
	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// call is one call of an application, of whatever part of its load.
type call struct {
	class    string // get, put, txn, delete
	from, to time.Time
	failed   bool // with an error that does not leave the outcome of a mutation open
	unknown  bool // with one that does
	err      string
	gaveUp   bool // the caller's own deadline ended it
	handover bool // refused for certain by a leader that was handing over: nobody else would have served it
}

func (c call) took() time.Duration { return c.to.Sub(c.from) }

// calls are those of an application's load and of its histories that ended after a
// moment, or never did. What the end of the load cut short neither failed nor came back.
func calls(rec app.Record, after time.Time) []call {
	var cs []call
	file := func(c call, err string) {
		c.err = err
		c.gaveUp = strings.Contains(err, context.DeadlineExceeded.Error())
		c.handover = workload.ProposalDropped(err)
		if err != "" && c.to.After(rec.Load.Ended) {
			c = call{class: c.class, from: c.from, to: rec.Load.Ended}
		}
		if !c.to.Before(after) && !c.to.Before(c.from) {
			cs = append(cs, c)
		}
	}
	for class, ops := range map[string][]workload.Op{"get": rec.Load.Gets, "put": rec.Load.Puts} {
		for _, op := range ops {
			file(loadCall(class, op, rec.Load.Ended), text(op.Err))
		}
	}
	for _, op := range rec.Histories {
		file(call{
			class: classOf(op), from: rec.Zero.Add(op.Call), to: rec.Zero.Add(op.Return),
			failed:  op.Outcome == history.Refused,
			unknown: op.Outcome == history.Unknown,
		}, op.Error)
	}
	return cs
}

func loadCall(class string, op workload.Op, ended time.Time) call {
	c := call{class: class, from: op.Began, to: op.Ended, failed: op.Err != nil}
	if op.Ended.IsZero() {
		c.to = ended
	}
	if class != "get" && op.Err != nil && app.OutcomeUnknown(op.Err) {
		c.failed, c.unknown = false, true
	}
	return c
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func classOf(op history.Op) string {
	if op.Kind == history.Swap || len(op.Keys) > 1 {
		return "txn"
	}
	return string(op.Kind)
}

// figures are what the user of one application has seen, from the fault on; from the start
// of the load where there was none.
func (e *Evidence) figures(rec app.Record) report.Figures {
	w, from := e.measured(rec), e.struck(rec)
	f := report.Figures{
		Lag: w.Lag, Calls: make(map[string]report.Quantiles), Failed: make(map[string]int),
		LastCall: w.LastCall, LastRead: w.LastRead, LastStream: w.LastStream, LastMutation: w.LastMutation,
		LeasesLost: w.LeasesLost - len(e.revoked(since(rec.Load, from).Leases)), Leases: w.Leases, Closed: w.WatchesClosed,
	}
	f.Stuck, f.Left = e.stuck(w), e.lefts(rec)
	var silences []time.Duration
	for _, watch := range rec.Load.Watches {
		silences = append(silences, workload.Silence(watch.Events, from, rec.Load.Ended))
		lost, twice := e.missed(rec, watch)
		f.EventsLost += lost
		f.EventsTwice += twice
	}
	f.Silences = history.Quantiles(silences)
	f.Silence = f.Silences.Max
	took := make(map[string][]time.Duration)
	truth := truthOf(e.Samples)
	for _, c := range calls(rec, from) {
		took[c.class] = append(took[c.class], c.took())
		if c.failed {
			f.Failed[c.class]++
		}
		if c.unknown {
			f.Unknown++
		}
		if e.avoidable(truth, c) {
			f.Avoidable++
		}
	}
	for class, ds := range took {
		f.Calls[class] = history.Quantiles(ds)
	}
	f.FalseMoves = len(e.falseMoves(rec))
	return f
}

// stuckAfter is the wait that makes a user stuck, besides the time in which no member that
// was well served anybody.
const stuckAfter = 2500 * time.Millisecond

// stuck says how the user of a client got stuck; "" if not.
func (e *Evidence) stuck(w workload.Figures) string {
	limit := stuckAfter
	if !e.Cut.IsZero() && !slices.ContainsFunc(e.Hurts, func(h Hurt) bool { return !e.elsewhere(h) }) {
		limit += covered(truthOf(e.Samples).unserved(e.Hurts, e.Cut, e.Ended), e.Cut, e.Ended)
	}
	how, _ := w.Stuck(limit)
	return how
}

// reopened are the load's and the application's streams that ended before the load did and
// not by the user's wish: watches that were opened more than once, and lease streams that
// broke.
func (e *Evidence) reopened(rec app.Record) (watches, leases []when) {
	opened := make(map[string]int)
	for _, a := range rec.Attempts {
		switch {
		case a.Began.After(rec.Load.Ended), refused(a):
		case a.Method == workload.MethodWatch && a.Watch != "":
			if opened[a.Watch]++; opened[a.Watch] > 1 {
				watches = append(watches, happened(a.Began))
			}
		case a.Method == workload.MethodKeepAlive && !a.Ended.IsZero() && a.Ended.Before(rec.Load.Ended) && a.Err != nil && status.Code(a.Err) != codes.Canceled:
			leases = append(leases, happened(a.Ended))
		}
	}
	return watches, leases
}

// refused says that a server turned a stream away because it knew no leader: clientv3 asks
// again until there is one, and no stream has moved.
func refused(a workload.Attempt) bool {
	return a.Stream() && a.Err != nil && errors.Is(rpctypes.Error(a.Err), rpctypes.ErrNoLeader)
}

// avoidable says that a better choice of member would have served a call that failed, or
// served it sooner.
func (e *Evidence) avoidable(t truth, c call) bool {
	switch {
	case c.handover:
		return false
	case c.failed || c.unknown:
		return t.servable(e.Hurts, c.from, c.to)
	}
	return c.took() > workload.Slow && t.servedThrough(e.Hurts, c.from, c.to)
}

// missed counts the events of a watch that were lost and those that came more than once.
func (e *Evidence) missed(rec app.Record, w workload.WatchRecord) (lost, twice int) {
	n := make(map[int64]int)
	for _, ev := range w.Events {
		if n[ev.Revision]++; n[ev.Revision] > 1 {
			twice++
		}
	}
	for _, ev := range workload.Between(e.History.Events, rec.Load.StartRev, e.Upto) {
		if n[ev.Revision] == 0 {
			lost++
		}
	}
	return lost, twice
}

// measured are the load's figures. Waits count from the fault on, and leases that were lost since
// then; what left a bad member is the worst of all members that suffered, each from its own fault
// on.
func (e *Evidence) measured(rec app.Record) workload.Figures {
	from := e.struck(rec)
	late := slices.DeleteFunc(slices.Clone(e.Reference), func(ev workload.Event) bool { return ev.At.Before(from) })
	w := workload.Measure(since(rec.Load, from), rec.Trace(), late, workload.Fault{Heal: e.Heal}, app.OutcomeUnknown)
	w.Leases = len(rec.Load.Leases)
	t := truthOf(e.Samples)
	for _, hurt := range e.Hurts {
		if h, must := e.away(t, hurt); must {
			l := e.leave(t, rec, h)
			w.LastCall, w.LastRead = max(w.LastCall, l.LastCall), max(w.LastRead, l.LastRead)
			w.LastStream, w.LastMutation = max(w.LastStream, l.LastStream), max(w.LastMutation, l.LastMutation)
		}
	}
	return w
}

// leave measures how one application left a member that is hurt. What was on it until the hurt
// ended, and was not due to leave by then, tells nothing: it does not count.
func (e *Evidence) leave(t truth, rec app.Record, h Hurt) workload.Figures {
	f, b := e.leaving(rec, h), e.budget(h)
	for took, within := range map[*time.Duration]time.Duration{&f.LastRead: b.Calls, &f.LastStream: b.Streams, &f.LastMutation: b.Streams} {
		if *took == workload.Never && !t.due(h, e.Hurts, within).Before(e.until(h)) {
			*took = 0
		}
	}
	return f
}

// lefts is how soon one application left each member that had to be left.
func (e *Evidence) lefts(rec app.Record) (all []report.Left) {
	t := truthOf(e.Samples)
	for _, hurt := range e.Hurts {
		h, must := e.away(t, hurt)
		if !must {
			continue
		}
		within := func(took, budget time.Duration) report.Leave {
			return report.Leave{Took: took, Election: t.due(h, e.Hurts, budget).Sub(h.From) - budget, Budget: budget}
		}
		f, b := e.leave(t, rec, h), e.budget(h)
		all = append(all, report.Left{Member: h.Member, At: e.since(h.From), Call: within(f.LastCall, b.Calls), Stream: within(f.LastStream, b.Streams)})
	}
	return all
}

// since is a load without the Gets that had returned before a moment and the leases that were lost
// by then. What was waited before it does not count.
func since(load workload.Record, from time.Time) workload.Record {
	load.Leases = slices.DeleteFunc(slices.Clone(load.Leases), func(l workload.LeaseRecord) bool {
		return !l.LostAt().IsZero() && l.LostAt().Before(from)
	})
	var gets []workload.Op
	for _, g := range load.Gets {
		if !g.Ended.IsZero() && g.Ended.Before(from) {
			continue
		}
		if g.Began.Before(from) {
			g.Began = from
		}
		gets = append(gets, g)
	}
	load.Gets = gets
	return load
}

// elsewhere says that there were members to go to when a member was hurt.
func (e *Evidence) elsewhere(h Hurt) bool {
	hurt := hurtNames(e.Hurts, h.From, h.From.Add(moment))
	return slices.ContainsFunc(e.Members, func(m MemberFacts) bool { return !slices.Contains(hurt, m.Name) })
}

// endpoint is the address of a member.
func (e *Evidence) endpoint(member string) string {
	for _, m := range e.Members {
		if m.Name == member {
			return m.Endpoint
		}
	}
	return ""
}

// member is the name of the member at an address; the address where there is none.
func (e *Evidence) member(endpoint string) string {
	i := slices.IndexFunc(e.Members, func(m MemberFacts) bool { return m.Endpoint == endpoint })
	if i < 0 {
		return endpoint
	}
	return e.Members[i].Name
}

// election is the longest time for which a fault left the others without a leader. One that
// hits all members leaves no others.
func (e *Evidence) election() time.Duration {
	var longest time.Duration
	t := truthOf(e.Samples)
	for _, h := range e.Hurts {
		if e.elsewhere(h) {
			longest = max(longest, t.election(h, e.Hurts))
		}
	}
	return longest
}
