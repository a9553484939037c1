package prober

// Grade says how far an endpoint can be trusted. Package picker has grades of the same five
// names, which say what calls do about each; the two are distinct types of distinct packages.
type Grade int

const (
	// Unknown: nothing was heard yet, or everything heard has expired. The member
	// is usable. Left by any evidence.
	Unknown Grade = iota
	// Healthy: positive evidence stands. Left at once by bad evidence, or when the
	// evidence expires.
	Healthy
	// Suspect: bad evidence stands, or evidence is late. Entered at once; left at once
	// by good evidence, or for Unhealthy by Config.Hold in comparison with another
	// endpoint.
	Suspect
	// Unhealthy: condemned in comparison with another endpoint. Left by good
	// evidence, in some cases (see the package comment) only after proofs.
	Unhealthy
	// Parked: a learner, removed, or of another cluster: no place for ordinary calls.
	// Left when etcd itself says otherwise.
	Parked
)

// String returns unknown, healthy, suspect, unhealthy or parked, for any other value invalid.
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
	}
	return "invalid"
}

// Better reports whether g is to be preferred to o: Healthy, then Unknown,
// Suspect, Unhealthy, Parked.
func (g Grade) Better(o Grade) bool { return g.rank() < o.rank() }

func (g Grade) rank() int {
	switch g {
	case Healthy:
		return 0
	case Unknown:
		return 1
	case Suspect, Unhealthy, Parked:
		return int(g)
	}
	return int(Parked) + 1
}
