package picker

import "strconv"

// Grade is how far an endpoint may be trusted with calls. The package does not
// find grades out, it is told them by [Hub.SetGrades]. Package prober finds grades of
// the same five names, and says how an endpoint comes by each; the types are distinct.
//
// Best first: Healthy, Unknown, Suspect, Unhealthy, Parked.
type Grade int

const (
	// Unknown: no evidence either way. Every endpoint starts here, and one that
	// SetGrades does not name is here. It is used whenever none is Healthy.
	Unknown Grade = iota
	// Healthy: there is evidence that the endpoint serves. Preferred to all.
	Healthy
	// Suspect: evidence is late. No call goes here while a Healthy or Unknown
	// endpoint is connected.
	Suspect
	// Unhealthy: there is evidence that the endpoint does not serve. Picked when no
	// better one is connected.
	Unhealthy
	// Parked: not meant for ordinary calls at all (a learner, a removed member,
	// another cluster). Picked only when all endpoints are: while there is any other
	// one, calls wait for it to be connected.
	Parked
)

// String returns unknown, healthy, suspect, unhealthy or parked, for any other value
// grade(n).
func (g Grade) String() string {
	switch g {
	case Unknown:
		return "unknown"
	case Healthy:
		return "healthy"
	case Suspect:
		return "suspect"
	case Unhealthy:
		return "unhealthy"
	case Parked:
		return "parked"
	default:
		return "grade(" + strconv.Itoa(int(g)) + ")"
	}
}
