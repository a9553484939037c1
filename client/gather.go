package client

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/quorumwise/quorumwise/picker"
	"github.com/quorumwise/quorumwise/prober"
)

// endpointFollower passes on the endpoint set of the main connection, which
// SetEndpoints, Sync and AutoSyncInterval change through the resolver, and
// remembers the endpoints that left it while calls are in flight on them. gRPC
// closes their connections gracefully: a stream could stay for days on a member
// that was taken out. The loop owns it.
type endpointFollower struct {
	current []prober.Endpoint
	left    map[string]time.Time // address: since when it is out of the set
}

// update takes over the set if it has changed.
func (f *endpointFollower) update(a *Attachment, now time.Time) {
	eps := a.hub.Endpoints()
	if len(eps) == 0 {
		return // not connected yet, or idle: the last known ones stay
	}
	if slices.EqualFunc(eps, f.current, func(e picker.Endpoint, t prober.Endpoint) bool {
		return e.Address == t.Address && e.ServerName == t.ServerName
	}) {
		return
	}
	before := f.current
	f.current = make([]prober.Endpoint, len(eps))
	for i, ep := range eps {
		f.current[i] = a.target(ep.Address, ep.ServerName)
		delete(f.left, ep.Address)
	}
	for _, t := range before {
		if !slices.ContainsFunc(f.current, func(c prober.Endpoint) bool { return c.Address == t.Address }) {
			f.left[t.Address] = now
		}
	}
	a.prober.SetEndpoints(f.current)
}

// view gathers what the decisions need.
func (a *Attachment) view(now time.Time, left map[string]time.Time) view {
	v := a.standings(now)
	leases := a.leases.byCall(now)
	for i := range v.endpoints {
		v.endpoints[i].calls = a.calls(v.endpoints[i].address, leases)
	}
	for _, address := range slices.Sorted(maps.Keys(left)) {
		calls := a.calls(address, leases)
		if len(calls) == 0 {
			delete(left, address) // nothing is picked for it any more
			continue
		}
		v.endpoints = append(v.endpoints, endpointView{
			address: address, grade: prober.Parked, reason: ReasonEndpointRemoved, since: left[address], left: true, calls: calls,
		})
	}
	return v
}

// standings is a view without the calls: how the endpoints of the set stand.
func (a *Attachment) standings(now time.Time) view {
	s := a.prober.Snapshot()
	v := view{now: now, term: s.Term, leader: uint64(s.Leader)}
	for _, ep := range a.hub.Endpoints() {
		e := endpointView{address: ep.Address, ready: ep.State == connectivity.Ready}
		if verdict, ok := s.Verdict(ep.Address); ok {
			e.member, e.grade, e.reason, e.since = verdict.Member, verdict.Grade, verdict.Reason, verdict.Since
			e.settling = verdict.Grade == prober.Unhealthy && verdict.Reason == prober.ReasonSettling
		}
		v.endpoints = append(v.endpoints, e)
	}
	return v
}

func (a *Attachment) calls(address string, leases map[*picker.Call]leaseInfo) []callView {
	calls := a.hub.Calls(address)
	views := make([]callView, len(calls))
	for i, c := range calls {
		views[i] = callView{call: c, class: c.Class(), method: c.Method(), picked: c.Picked()}
		if l, ok := leases[c]; ok {
			views[i].lease = l
		}
	}
	return views
}

// better reports whether a call that leaves address now would go to a better
// endpoint.
func (a *Attachment) better(address string) bool {
	v := a.standings(time.Now())
	for i := range v.endpoints {
		if e := &v.endpoints[i]; e.address == address {
			return hasBetter(v.endpoints, e)
		}
	}
	return false
}
