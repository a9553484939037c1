package prober

import (
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
)

// evidence is everything that a probe has gathered about one endpoint. The gatherer
// is its only writer.
type evidence struct {
	shim, inproc reporter
	check        checks
	proof        proofs
	self         membership.Observation // what etcd at the address says of itself; zero At: not read yet
}

// reporter is one place where reports may come from.
type reporter struct {
	sought bool           // one search was made, or is under way for long enough
	news   healthsvc.News // the newest
}

// speaks reports whether the reporter's last word still stands. One missed poll is
// not its end: the path check tells whether it means anything. A shim whose own loop
// stands still says nothing of its member: it is starved, and its member may be well.
func (r reporter) speaks(now time.Time, expire time.Duration) bool {
	n := r.news
	if n.Status != healthsvc.StatusServing && n.Status != healthsvc.StatusNotServing || n.Reason == healthsvc.ReasonStale || strange(n) {
		return false
	}
	return n.Missed < 2 && now.Sub(n.Heard) <= max(expire, 3*hint(n))
}

// strange reports whether a shim has never met its member: it was just started, or is
// set up wrongly, for instance without TLS towards a member that wants it. It says
// NOT_SERVING, of whom it does not know; our own checks and proofs judge the member.
func strange(n healthsvc.News) bool {
	if n.Status != healthsvc.StatusNotServing || n.Identity.Member != 0 {
		return false
	}
	switch n.Reason {
	case healthsvc.ReasonStarting, healthsvc.ReasonUnreachable, healthsvc.ReasonNotEtcd:
		return true
	}
	return false
}

// answer is what etcd's own port said to a check.
type answer int

const (
	answerNone       answer = iota // never any
	answerOK                       // it answers; a refusal for want of permission, or of the service, is an answer too
	answerNoLeader                 // it knows of no leader
	answerNotServing               // its own health service says so, or it is stopping
	answerLearner                  // it refuses as learners do
)

// checks are the outcomes of checks on etcd's own port.
type checks struct {
	answer   answer
	answered time.Time // when the newest answered check began; zero: never
	failing  time.Time // when the first check that was missed since the last answer began; zero: none
	missed   time.Time // when that was noticed
	rtt      time.Duration
}

// proofs are the outcomes of linearizable reads made by the probe itself.
type proofs struct {
	completed time.Time     // when the newest completed one began; zero: none yet
	failing   time.Time     // when the first that failed since the last completion began; zero: none
	missed    time.Time     // when that was noticed
	run       int           // completed in time, in a row
	took      time.Duration // by the newest completed one
	noLeader  bool          // the newest failure was the answer "no leader"

	refused time.Time // since when all of them are turned away, and the checks find nothing wrong; zero: not so
	waived  time.Time // when the newest of those began, once that has lasted for long; zero: it has not
}
