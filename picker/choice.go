package picker

import "google.golang.org/grpc/connectivity"

// candidate is what the choice knows of an endpoint.
type candidate struct {
	grade Grade
	state connectivity.State
}

// choice is which endpoints calls may go to.
type choice struct {
	// best are the endpoints to choose among, as indexes of the candidates.
	best []int
	// wait: do not use best, hold calls until something changes.
	wait bool
	// evidence: some endpoint is known to be healthy, so that there is a reason
	// to depart from plain round robin.
	evidence bool
}

// choose decides by grade and connectivity, without side effect.
//
//   - Connected and Healthy ones, else connected Unknown ones.
//   - If neither is connected but a Healthy one is about to be, wait for it. This
//     lasts one connection attempt at most, since one that fails leaves the
//     endpoint in TransientFailure until it succeeds.
//   - Else fail open: the connected Suspect ones, else the connected Unhealthy
//     ones. Grades are opinions; an application that reaches anything at all must
//     go on. What was condemned in comparison comes last: while all are suspect for
//     a moment, calls must not go to a member that has been frozen for seconds.
//   - Parked ones only when all endpoints are: a learner refuses calls and a
//     member of another cluster answers wrongly, so calls rather wait for one that
//     is not parked, however long it is away.
//   - Nothing connected: best is empty, and gRPC's own rules hold.
func choose(all []candidate) choice {
	var healthy, unknown, suspect, unhealthy, parked []int
	var evidence, coming, member bool
	for i, c := range all {
		evidence = evidence || c.grade == Healthy
		member = member || c.grade != Parked
		if c.state != connectivity.Ready {
			coming = coming || c.grade == Healthy && connecting(c.state)
			continue
		}
		switch c.grade {
		case Healthy:
			healthy = append(healthy, i)
		case Suspect:
			suspect = append(suspect, i)
		case Unhealthy:
			unhealthy = append(unhealthy, i)
		case Parked:
			parked = append(parked, i)
		case Unknown:
			unknown = append(unknown, i)
		default: // a grade of tomorrow's is no evidence
			unknown = append(unknown, i)
		}
	}
	out := choice{evidence: evidence}
	switch {
	case len(healthy) > 0:
		out.best = healthy
	case len(unknown) > 0:
		out.best = unknown
	case len(suspect) > 0:
		out.best, out.wait = suspect, coming
	case len(unhealthy) > 0:
		out.best, out.wait = unhealthy, coming
	default:
		out.best, out.wait = parked, member && len(parked) > 0
	}
	return out
}

// connecting tells the states that a connection attempt ends. Idle is one of
// them: the policy beneath leaves it at once by itself.
func connecting(s connectivity.State) bool {
	return s == connectivity.Connecting || s == connectivity.Idle
}
