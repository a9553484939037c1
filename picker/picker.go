package picker

import "google.golang.org/grpc/balancer"

// picker picks from the newest table of its instance, also when gRPC still
// holds an older picker.
type picker struct{ p *policy }

// Pick chooses an endpoint for a call and files the call under it.
func (k picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	call := callFrom(info.Ctx)
	hint, asked := "", false
	for {
		t := k.p.table.Load()
		switch {
		case !t.graded:
			return pass(t, call, info)
		case len(t.choice.best) == 0:
			return t.fallback.Pick(info)
		case t.choice.wait:
			return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
		case call == nil:
			return t.rotate().picker.Pick(info)
		case call.hub != t.hub: // of a client that this one is used beneath
			call.passed()
			return t.rotate().picker.Pick(info)
		}
		if !asked {
			hint, asked = call.hub.takeHint(call.class), true
		}
		res, err, ok := k.p.pickFor(call, t, hint, info)
		switch {
		case ok:
			return res, err
		case k.p.table.Load() == t:
			// The endpoint has just left the hub's books; the table that says so
			// is on its way, and its picker wakes the call.
			return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
		}
	}
}

// pass leaves the pick to gRPC's round robin and does not follow the call.
func pass(t *table, call *Call, info balancer.PickInfo) (balancer.PickResult, error) {
	res, err := t.fallback.Pick(info)
	if err == nil && call != nil {
		call.passed()
	}
	return res, err
}

// pickFor picks from the table and files the call; ok is false when the table
// was replaced meanwhile.
func (p *policy) pickFor(call *Call, t *table, hint string, info balancer.PickInfo) (_ balancer.PickResult, _ error, ok bool) {
	var to *place
	if hint != "" {
		to = t.among(hint)
	}
	switch {
	case call.class.stream() && t.choice.evidence:
		p.opening.Lock()
		defer p.opening.Unlock()
		if to == nil {
			to = t.leastStreams()
		}
	case to == nil:
		to = t.rotate()
	}
	res, err := to.picker.Pick(info)
	if err != nil {
		return res, err, true
	}
	attempt, outcome := call.file(to.ledger, func() bool { return p.table.Load() == t })
	switch outcome {
	case filingStale:
		return res, nil, false
	case filingOver:
		// The context is cancelled; gRPC waits on it for a moment at most.
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable, true
	case filingDone:
	}
	done := res.Done
	res.Done = func(info balancer.DoneInfo) {
		call.done(attempt, info)
		if done != nil {
			done(info)
		}
	}
	return res, nil, true
}
