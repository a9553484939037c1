package membership

// Member is one entry of a cluster's member list.
type Member struct {
	ID         ID
	Name       string   // empty until the member has started for the first time
	PeerURLs   []string // where other members reach it
	ClientURLs []string // where it says that clients reach it: a claim, not a fact
	Learner    bool     // has no vote
}
