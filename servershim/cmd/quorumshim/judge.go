package main

import (
	"fmt"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
)

// clusterStatus is what all answers together say.
type clusterStatus struct {
	answers  []answer
	leader   membership.ID // named by a majority at the highest term; 0: none is
	term     uint64
	serving  int // members that serve; one with two addresses counts once
	majority int // of the endpoints asked
}

// judge is pure. The leader is not taken from who calls itself leader: an ex-leader that is cut off
// does so for a while (F5).
func judge(answers []answer) clusterStatus {
	c := clusterStatus{answers: answers, majority: len(answers)/2 + 1}
	var observed []membership.Observation
	counted := make(map[uint64]bool)
	for _, a := range answers {
		if !known(a.news) {
			continue
		}
		id := a.news.Identity
		observed = append(observed, membership.Observation{
			Cluster: membership.ID(id.Cluster), Member: membership.ID(id.Member), Leader: membership.ID(id.Leader),
			Term: id.Term, Voters: len(answers), At: a.news.Began,
		})
		if a.news.Status == healthsvc.StatusServing && !counted[id.Member] {
			c.serving++
			counted[id.Member] = id.Member != 0
		}
	}
	view := membership.Merge(0, observed)
	c.leader, c.term = view.Leader, view.Term
	return c
}

// err is nil only if a majority serves.
func (c clusterStatus) err() error {
	if c.serving >= c.majority {
		return nil
	}
	return fmt.Errorf("%d of %d endpoints serving, a majority is %d: see the reasons above", c.serving, len(c.answers), c.majority)
}

// status is one word for one endpoint.
func (a answer) status() string {
	switch a.via {
	case viaShim, viaInProcess:
		return a.news.Status.String()
	case viaNobody:
		return "no shim"
	case viaSilence:
		return "unreachable"
	default:
		return "unknown"
	}
}

// why explains a status that is not serving: the shim's reason, or what the question failed of.
func (a answer) why() string {
	switch {
	case a.news.Reason != "":
		return string(a.news.Reason)
	case a.news.Err != nil:
		return a.news.Err.Error()
	default:
		return ""
	}
}

// isLeader reports whether this endpoint is the cluster's leader.
func (c clusterStatus) isLeader(a answer) bool {
	return c.leader != 0 && uint64(c.leader) == a.news.Identity.Member
}
