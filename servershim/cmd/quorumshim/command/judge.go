package command

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
)

// reasonOtherCluster stands in the place of a shim's reason where --endpoints names a member of
// another cluster than most of them: whatever that member is, it is nothing to this cluster.
const reasonOtherCluster healthsvc.Reason = "other-cluster"

// clusterStatus is what all answers together say.
type clusterStatus struct {
	answers  []answer
	cluster  membership.ID // that of most answers; 0: of none
	foreign  int           // answers of other clusters; all that name one, where none has most
	leader   membership.ID // named by a majority at the highest term; 0: none is
	term     uint64
	voters   int // endpoints that are, or may be, voters of the cluster; one with two addresses counts twice
	serving  int // members of the cluster that serve; one with two addresses counts once
	majority int // of voters
}

// judge is pure. The leader is not taken from who calls itself leader: an ex-leader that is cut off
// does so for a while.
func judge(answers []answer) clusterStatus {
	c := clusterStatus{answers: answers}
	observed := observations(answers)
	c.cluster = membership.Merge(0, observed).Cluster
	c.count()
	for i := range observed {
		observed[i].Voters = c.voters
	}
	if c.cluster != 0 {
		view := membership.Merge(c.cluster, observed)
		c.leader, c.term = view.Leader, view.Term
	}
	return c
}

func observations(answers []answer) []membership.Observation {
	var observed []membership.Observation
	for _, a := range answers {
		if !known(a.news) {
			continue
		}
		id := a.news.Identity
		observed = append(observed, membership.Observation{
			Cluster: membership.ID(id.Cluster), Member: membership.ID(id.Member), Leader: membership.ID(id.Leader),
			Term: id.Term, At: a.news.Began,
			Learner: a.news.Reason == healthsvc.ReasonLearner, Removed: a.news.Reason == healthsvc.ReasonRemoved,
		})
	}
	return observed
}

// count counts the endpoints. One that does not answer may be a voter, so it counts for one.
func (c *clusterStatus) count() {
	counted := make(map[uint64]bool)
	for _, a := range c.answers {
		id := a.news.Identity.Member
		switch {
		case c.isForeign(a):
			c.foreign++
		case a.news.Reason == healthsvc.ReasonLearner, a.news.Reason == healthsvc.ReasonRemoved:
		default:
			c.voters++
			if a.news.Status == healthsvc.StatusServing && !counted[id] {
				c.serving++
				counted[id] = id != 0
			}
		}
	}
	c.majority = c.voters/2 + 1
}

// isForeign reports whether this endpoint is a member of another cluster. One that names none, as
// before it has heard from etcd, is not.
func (c clusterStatus) isForeign(a answer) bool {
	return a.news.Identity.Cluster != 0 && membership.ID(a.news.Identity.Cluster) != c.cluster
}

// err is nil only if a majority serves.
func (c clusterStatus) err() error {
	if c.serving >= c.majority {
		return nil
	}
	if c.cluster == 0 && c.foreign > 0 {
		return errors.New("no cluster has most of the endpoints, so no majority can be counted: name the members of one cluster")
	}
	return fmt.Errorf("%d of %d endpoints serving, a majority is %d: see the reasons above", c.serving, c.voters, c.majority)
}

// warnings says, one line an endpoint, what is wrong with the question.
func (c clusterStatus) warnings() []string {
	var lines []string
	for _, a := range c.answers {
		if !c.isForeign(a) {
			continue
		}
		line := fmt.Sprintf("--endpoints %s: a member of cluster %v", a.endpoint, membership.ID(a.news.Identity.Cluster))
		if c.cluster != 0 {
			line += fmt.Sprintf(", the others are of %v: not counted; give its address in that cluster, or leave it out", c.cluster)
		} else {
			line += ", the others are of different ones: not counted; name the members of one cluster"
		}
		lines = append(lines, line)
	}
	return lines
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

// reason is the shim's own, unless it is of another cluster.
func (c clusterStatus) reason(a answer) healthsvc.Reason {
	if c.isForeign(a) {
		return reasonOtherCluster
	}
	return a.news.Reason
}

// why explains a status that does not count, in a word: the reason, or the code of
// what the question failed of.
func (c clusterStatus) why(a answer) string {
	if c.failed(a) {
		return strings.ToLower(status.Code(a.news.Err).String())
	}
	return string(c.reason(a))
}

// failed says that no reason is known but an error.
func (c clusterStatus) failed(a answer) bool { return c.reason(a) == "" && a.news.Err != nil }

// isLeader reports whether this endpoint is the cluster's leader.
func (c clusterStatus) isLeader(a answer) bool {
	return c.leader != 0 && uint64(c.leader) == a.news.Identity.Member && !c.isForeign(a)
}
