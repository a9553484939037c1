package prober

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
)

// court is a judge with conditions that a test sets by word.
type court struct {
	t     *testing.T
	judge *judge
	start time.Time
	now   time.Time
	seen  []sight
	last  ruling

	compares int // rulings that asked for a comparison
}

func newCourt(t *testing.T, names ...string) *court {
	c := &court{t: t, judge: newJudge(scaled(Config{})), start: time.Unix(1000, 0)}
	c.now = c.start
	for _, n := range names {
		c.seen = append(c.seen, sight{n, &condition{}})
	}
	return c
}

// set gives an endpoint a condition that begins now; stale ones prove nothing new.
func (c *court) set(name string, f func(*condition)) {
	for i := range c.seen {
		if c.seen[i].address == name || name == "all" {
			n := condition{since: c.now, from: c.now, source: SourceShim}
			f(&n)
			c.seen[i].c = &n
		}
	}
}

func isGood(c *condition) { c.state = stateGood }

func isBad(k kind) func(*condition) {
	return func(c *condition) { c.state, c.kind, c.reason = stateBad, k, "bad" }
}

// run judges every 10 ms; good endpoints go on proving, and reports that are asked say the same
// as before, unless they are still.
func (c *court) run(d time.Duration, still ...string) {
	for end := c.now.Add(d); c.now.Before(end); c.now = c.now.Add(10 * time.Millisecond) {
		for i, s := range c.seen {
			if slices.Contains(c.last.ask, s.address) && !slices.Contains(still, s.address) {
				n := *s.c
				n.said = c.now
				c.seen[i].c = &n
				continue
			}
			if s.c.state == stateGood && !strings.Contains(strings.Join(still, " "), s.address) {
				n := *s.c
				n.answered, n.proven, n.proof = c.now, c.now, c.now
				n.run++
				c.seen[i].c = &n
			}
		}
		c.last = c.judge.rule(c.now, c.seen)
		if c.last.compare {
			c.compares++
		}
	}
}

func (c *court) want(want, why string) {
	c.t.Helper()
	var got []string
	for _, v := range c.last.verdicts {
		got = append(got, fmt.Sprintf("%s:%v", v.Address, v.Grade))
	}
	if g := strings.Join(got, " "); g != want {
		c.t.Errorf("at %v: grades are %s, want %s: %s", c.now.Sub(c.start), g, want, why)
	}
}

const ms = time.Millisecond

func TestJudgeCondemnsAfterHoldWithWitness(t *testing.T) {
	for _, k := range []kind{kindPath, kindQuorum} {
		c := newCourt(t, "a", "b")
		c.set("all", isGood)
		c.run(time.Second)
		c.set("a", isBad(k))
		c.run(10 * ms)
		c.want("a:suspect b:healthy", "suspect at once")
		c.run(280 * ms)
		c.want("a:suspect b:healthy", "not before 300 ms")
		c.run(30 * ms)
		c.want("a:unhealthy b:healthy", "another stands, proved since")
	}
}

func TestJudgeWaitsForEvidenceYoungerThanTheCause(t *testing.T) {
	c := newCourt(t, "a", "b")
	c.set("all", isGood)
	c.run(time.Second)
	c.set("a", isBad(kindQuorum))
	c.run(2*time.Second, "b")
	c.want("a:suspect b:healthy", "b has not shown that it is better off")
	if c.compares == 0 || c.last.wake.IsZero() {
		t.Errorf("the judge asks for a comparison %d times, wake %v; want both: nobody else brings the evidence", c.compares, c.last.wake)
	}
	c.run(10 * ms)
	c.run(10 * ms)
	c.want("a:unhealthy b:healthy", "b proved quorum after a lost it")
	if c.last.compare {
		t.Errorf("the judge still asks for comparison, want silence once the matter is settled")
	}
}

func TestJudgeCountsFromWhenAnotherStands(t *testing.T) {
	c := newCourt(t, "a", "b", "c")
	c.set("all", isBad(kindQuorum))
	c.run(5 * time.Second)
	c.want("a:suspect b:suspect c:suspect", "all alike: nobody is condemned")
	if c.last.compare || !c.last.wake.IsZero() {
		t.Errorf("compare %t, wake %v: want rest while there is nothing to compare with", c.last.compare, c.last.wake)
	}
	c.set("b", isGood)
	c.run(700 * ms)
	c.want("a:suspect b:healthy c:suspect", "the first to be back does not draw the herd: etcd re-sends lost reads every 500 ms")
	c.run(150 * ms)
	c.want("a:unhealthy b:healthy c:unhealthy", "they had their time")
}

func TestJudgeDoesNotWaitForMemberThatMissedTheElection(t *testing.T) {
	c := newCourt(t, "a", "b")
	c.set("all", isBad(kindQuorum))
	c.run(time.Second)
	c.set("b", func(n *condition) { n.state, n.term = stateGood, 8 })
	began := c.now
	c.run(100 * ms)
	for i := range c.seen {
		if c.seen[i].address == "a" {
			n := *c.seen[i].c
			n.term, n.heard = 7, began.Add(50*ms)
			c.seen[i].c = &n
		}
	}
	c.run(220 * ms)
	c.want("a:unhealthy b:healthy", "a is still at the old term: it is cut off, not slow to start")
}

// A read-index request that is under way while leadership is handed over is lost, and etcd
// sends it again 500 ms later: a member that is well proves nothing for so long.
func TestJudgeWaitsOutAReadThatAChangeOfLeaderLost(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change time.Duration // of the leader, after the newest proof of a; 0: none
		own    bool          // no shim: a proof of ours failed
		reason string        // of the shim; "": no-quorum

		liar    func(time.Duration) uint64 // the term that a fourth tells; nil: there is none
		foreign bool                       // the fourth is of another cluster, and so is nobody's to ask
		stays   time.Duration              // how long after the proof it must not be given up
	}{
		{name: "the leader stays", stays: 540 * ms},
		{name: "the leader changes", change: 100 * ms, stays: 790 * ms},
		{name: "another member knew before", change: -200 * ms, stays: 790 * ms},
		{name: "the leader changed long before", change: -400 * ms, stays: 540 * ms},
		{name: "one that drains", reason: string(healthsvc.ReasonDraining), change: 100 * ms, stays: 540 * ms},
		{name: "and one tells a term of its own", liar: func(time.Duration) uint64 { return 1 << 60 }, change: 100 * ms, stays: 790 * ms},
		{name: "one of another cluster", foreign: true, liar: func(time.Duration) uint64 { return 900 }, change: 100 * ms, stays: 790 * ms},
		{name: "only one tells of new leaders", liar: func(d time.Duration) uint64 { return 21 + uint64(d/(100*ms)) }, stays: 540 * ms},
		{name: "without a shim", change: 100 * ms, own: true, stays: 790 * ms},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names, fourth := []string{"a", "b", "c"}, ""
			if tc.liar != nil {
				names, fourth = append(names, "d"), " d:healthy"
			}
			if tc.foreign {
				fourth = " d:parked"
			}
			c := newCourt(t, names...)
			term := func(n uint64) func(*condition) {
				return func(o *condition) { isGood(o); o.term, o.itself = n, 7 }
			}
			lie := func() {
				if tc.liar != nil && c.now.Sub(c.start)%(100*ms) == 0 {
					c.set("d", func(o *condition) {
						term(tc.liar(c.now.Sub(c.start)))(o)
						if tc.foreign {
							o.itself = 8
						}
					})
				}
			}
			c.set("all", term(20))
			proof := c.start.Add(1500 * ms)
			elected := proof.Add(tc.change)
			step := func(until time.Time) {
				for c.now.Before(until) {
					lie()
					if tc.change != 0 && c.now.Equal(elected) {
						c.set("b", term(21))
						c.set("c", term(21))
					}
					if c.now.Equal(proof.Add(250 * ms)) {
						c.set("a", func(o *condition) {
							isBad(kindQuorum)(o)
							o.itself = 7
							o.reason, o.term, o.proven, o.proof = string(healthsvc.ReasonNoQuorum), 20, proof, time.Time{}
							if tc.reason != "" {
								o.reason = tc.reason
							}
							if tc.own {
								o.reason, o.own, o.from, o.proven = ReasonProofFailed, true, proof, proof.Add(-700*ms)
							}
						})
					}
					c.run(10 * ms)
				}
			}
			step(proof.Add(tc.stays))
			c.want("a:suspect b:healthy c:healthy"+fourth, "its read may only have been lost")
			step(proof.Add(tc.stays + 30*ms))
			c.want("a:unhealthy b:healthy c:healthy"+fourth, "it would have been read again by now")
		})
	}
}

func TestJudgeSuspectsTheClientWhenNoPathLives(t *testing.T) {
	c := newCourt(t, "a", "b")
	c.set("all", isBad(kindPath))
	c.run(2 * time.Second)
	c.set("b", isGood)
	c.run(1900 * ms)
	c.want("a:suspect b:healthy", "our own network is only just back: time for the others to connect and answer a poll")
	c.run(100 * ms)
	c.want("a:unhealthy b:healthy", "a had its time")
}

func TestJudgeExcusesWhatItSlept(t *testing.T) {
	c := newCourt(t, "a", "b")
	c.set("all", isGood)
	c.run(time.Second)
	c.set("a", isBad(kindQuorum))
	c.run(100 * ms)
	c.now = c.now.Add(2 * time.Second)
	c.judge.excuse(c.now, 2*time.Second)
	c.run(290 * ms)
	c.want("a:suspect b:healthy", "our own loop was late")
	c.run(30 * ms)
	c.want("a:unhealthy b:healthy", "the excuse is over")
}

func TestJudgeBelievesItsOwnLaterProofMoreThanAReport(t *testing.T) {
	for reason, outlives := range map[string]bool{"no-quorum": true, "draining": false, "catching-up": false} {
		c := newCourt(t, "a", "b")
		c.set("all", isGood)
		c.run(time.Second)
		c.set("a", func(c *condition) { isBad(kindQuorum)(c); c.reason = reason })
		c.run(200 * ms)
		proved := *c.seen[0].c
		proved.proof, proved.proven = c.now, c.now
		c.seen[0].c = &proved
		c.run(150 * ms)
		if outlives {
			c.want("a:suspect b:healthy", reason+": a proof that began 200 ms after the report has completed")
		} else {
			c.want("a:unhealthy b:healthy", reason+": no proof contradicts that")
		}
		c.run(300 * ms)
		c.want("a:unhealthy b:healthy", reason+": the report outlasts the proof")
	}
}

func TestJudgeLeavesStreamsOnAMemberThatOnlySettles(t *testing.T) {
	because := func(reason string) func(*condition) {
		return func(c *condition) { isBad(kindQuorum)(c); c.reason = reason }
	}
	c := newCourt(t, "a", "b")
	c.set("all", isGood)
	c.run(time.Second)
	stretch := c.now
	proven := func(c *condition) { c.proven = stretch.Add(10 * time.Second) }
	c.set("a", because("no-quorum"))
	c.run(200 * ms)
	c.set("a", because("settling"))
	c.seen[0].c.since, c.seen[0].c.from = stretch, stretch
	proven(c.seen[0].c)
	c.run(10 * time.Second)
	c.want("a:suspect b:healthy", "it proves its quorum while it settles: leaving it helps nobody")
	c.set("a", because("no-quorum"))
	c.seen[0].c.since, c.seen[0].c.from = stretch, stretch
	c.run(20 * ms)
	c.want("a:unhealthy b:healthy", "a relapse is the same stretch")
	c.set("a", because("settling"))
	c.run(time.Second)
	c.want("a:unhealthy b:healthy", "one that was condemned returns when it is good")
}

// A shim that says settling for ever counts proofs of which there are none.
func TestJudgeBelievesSettlingOnlyWhileProofsComplete(t *testing.T) {
	c := newCourt(t, "a", "b")
	c.set("all", isGood)
	c.run(time.Second)
	proven := c.now
	c.set("a", because("settling", c.now))
	c.seen[0].c.proven = proven
	c.run(900 * ms)
	c.want("a:suspect b:healthy", "the last proof is 0.9 s old")
	c.run(200 * ms)
	c.want("a:unhealthy b:healthy", "the last proof is more than 1 s old")
}

// because makes a report say that, in a stretch of bad evidence that began then.
func because(reason string, stretch time.Time) func(*condition) {
	return func(c *condition) {
		isBad(kindQuorum)(c)
		c.reason, c.since, c.from = reason, stretch, stretch
	}
}

func TestJudgeAsksAReportOnceMoreBeforeItCondemns(t *testing.T) {
	c := newCourt(t, "a", "b")
	c.set("all", isGood)
	c.run(time.Second)
	c.set("a", because("no-quorum", c.now))
	c.run(300 * ms)
	if len(c.last.ask) > 0 {
		t.Error("the report is asked before its time, want it asked when its word would condemn")
	}
	c.run(10*ms, "a")
	end := c.now.Add(140 * ms)
	if !slices.Equal(c.last.ask, []string{"a"}) || !slices.Equal(c.last.awaited, []string{"a"}) || !c.last.wake.Equal(end) {
		t.Errorf("got asked %v, awaited %v, judged again at %v; want a to be asked once more, and 150 ms of time for it unless it answers (till %v)", c.last.ask, c.last.awaited, c.last.wake, end)
	}
	c.run(130*ms, "a")
	c.want("a:suspect b:healthy", "the answer is awaited")
	if len(c.last.ask) > 0 {
		t.Error("the report is asked again, want it asked once")
	}
	if !slices.Equal(c.last.awaited, []string{"a"}) || !c.last.wake.Equal(end) {
		t.Errorf("awaited %v, judged again at %v; want nothing in between (till %v): many clients would pay for each look", c.last.awaited, c.last.wake, end)
	}
	c.run(20*ms, "a")
	c.want("a:unhealthy b:healthy", "a report that does not answer is not waited for any longer than a check")
	if len(c.last.awaited) > 0 {
		t.Errorf("%v are still awaited, want nobody woken for an answer that changes nothing", c.last.awaited)
	}
}

func TestJudgeAsksAReportOnceMoreHoweverLateTheWitnessComes(t *testing.T) {
	c := newCourt(t, "a", "b")
	c.set("all", isGood)
	c.run(time.Second)
	c.set("a", because("no-quorum", c.now))
	c.run(2*time.Second, "a", "b")
	c.run(10*ms, "a")
	c.want("a:suspect b:healthy", "what a said is 2 s old")
	if !slices.Equal(c.last.ask, []string{"a"}) {
		t.Errorf("got asked %v, want a to be asked once more before it is condemned", c.last.ask)
	}
	c.run(10 * ms)
	c.run(10 * ms)
	c.want("a:unhealthy b:healthy", "it says the same still")
}

// A leader that is starved: proofs of all members come late, by a little more here and there.
func TestJudgeComparesWhenQuorumWasLastProved(t *testing.T) {
	for _, reason := range []string{"no-quorum", "no-leader"} {
		c := newCourt(t, "a", "b")
		c.set("all", isGood)
		c.run(time.Second)
		c.set("a", because(reason, c.now))
		late := func(d, bad, good time.Duration) {
			for end := c.now.Add(d); c.now.Before(end); {
				c.seen[0].c.proven = c.now.Add(-bad)
				c.seen[1].c.proven = c.now.Add(-good)
				c.run(10*ms, "b")
			}
		}
		late(2*time.Second, 359*ms, 80*ms)
		c.want("a:suspect b:healthy", reason+": a proved its quorum 279 ms before b, and goes on to")
		if c.compares < 100 || c.last.wake.IsZero() {
			t.Errorf("%s: compared %d times, judged again at %v; want both, until a is clearly behind", reason, c.compares, c.last.wake)
		}
		c.compares = 0
		late(5*time.Second, 359*ms, 80*ms)
		if c.compares != 10 {
			t.Errorf("%s: compared %d times in 5 s, want once a poll: what decides nothing for long makes a slow cluster slower", reason, c.compares)
		}
		stopped := c.now
		c.seen[0].c.proven = stopped.Add(-359 * ms)
		c.run(10 * ms)
		c.run(20 * ms)
		c.want("a:unhealthy b:healthy", reason+": a proves nothing more, and b does")
	}
	for _, reason := range []string{"draining", "catching-up", "read-stalled", "learner"} {
		c := newCourt(t, "a", "b")
		c.set("all", isGood)
		c.run(time.Second)
		c.set("a", because(reason, c.now))
		for range 32 {
			c.seen[0].c.proven = c.now
			c.run(10 * ms)
		}
		c.want("a:unhealthy b:healthy", reason+": it proves its quorum all the while, which is not what it lacks")
	}
	c := newCourt(t, "a", "b")
	c.set("all", isGood)
	c.run(time.Second)
	c.set("a", func(n *condition) { isBad(kindQuorum)(n); n.reason, n.own = ReasonNoLeader, true })
	for range 32 {
		c.seen[0].c.proven = c.now
		c.run(10 * ms)
	}
	c.want("a:unhealthy b:healthy", "what a shim proves does not outweigh what we were told ourselves")
}

func TestJudgeComparesHowLongProofsTake(t *testing.T) {
	for _, s := range []struct {
		bad, witness time.Duration // bad: 0 as long as none completes
		suspect      time.Duration // how long it is that at least; condemned 20 ms later
		why          string
	}{
		{1010 * ms, 990 * ms, 10 * time.Second, "hardly quicker"},
		{1010 * ms, 500 * ms, 300 * ms, "twice as quick"},
		{1900 * ms, 990 * ms, 10 * time.Second, "less than twice as quick"},
		{0, 10 * ms, 300 * ms, "a's proof is waited for"},
		{0, 400 * ms, 800 * ms, "a's proof may come, and be as quick"},
		{0, 990 * ms, 1980 * ms, "a's proof may come, and be as quick"},
		{0, 1010 * ms, 10 * time.Second, "the witness takes nearly as long as we wait"},
	} {
		c := newCourt(t, "a", "b")
		c.set("all", func(n *condition) { n.state, n.source, n.took = stateGood, SourceStock, s.witness })
		c.run(time.Second)
		c.set("a", func(n *condition) {
			isBad(kindQuorum)(n)
			n.reason, n.own, n.source, n.late = ReasonProofFailed, true, SourceStock, s.bad
		})
		for end := c.now.Add(s.suspect); c.now.Before(end); {
			if s.bad > 0 {
				c.seen[0].c.proof = c.now.Add(-s.bad)
			}
			c.run(10 * ms)
		}
		c.want("a:suspect b:healthy", s.why)
		if s.suspect < 5*time.Second {
			c.run(20 * ms)
			c.want("a:unhealthy b:healthy", s.why)
		}
	}

	c := newCourt(t, "a", "b")
	c.set("all", func(n *condition) { n.state, n.source, n.took = stateGood, SourceStock, 900*ms })
	c.run(time.Second)
	c.set("a", func(n *condition) {
		isBad(kindQuorum)(n)
		n.reason, n.own, n.source, n.late, n.proof = ReasonProofFailed, true, SourceStock, 1010*ms, c.now
	})
	c.run(3900 * ms)
	c.want("a:suspect b:healthy", "a's proofs were as slow as b's not long ago")
	c.run(200 * ms)
	c.want("a:unhealthy b:healthy", "a's proofs hang by now")
}

func TestJudgeWaitsForAMemberThatCatchesUp(t *testing.T) {
	c := newCourt(t, "a", "b")
	c.set("all", isGood)
	c.run(time.Second)
	stretch := c.now
	c.set("a", because("no-quorum", stretch))
	c.run(250 * ms)
	c.set("a", because("catching-up", stretch))
	c.run(290 * ms)
	c.want("a:suspect b:healthy", "under load it is behind for a moment; what it was before does not count")
	c.set("a", because("settling", stretch))
	c.seen[0].c.proven = c.now
	c.run(290 * ms)
	c.set("a", because("catching-up", stretch))
	c.run(290 * ms)
	c.want("a:suspect b:healthy", "it had caught up in between")
	c.run(40 * ms)
	c.want("a:unhealthy b:healthy", "it serves the past for longer than the hold")

	c = newCourt(t, "a", "b")
	c.set("all", isGood)
	c.run(time.Second)
	c.set("all", because("catching-up", c.now))
	c.run(10 * time.Second)
	c.want("a:suspect b:suspect", "nobody is better")
}

func TestJudgeForgivesALoopThatIsAlwaysLateOnlyForAWhile(t *testing.T) {
	c := newCourt(t, "a", "b")
	c.set("all", isGood)
	late := func(d time.Duration) {
		for end := c.now.Add(d); c.now.Before(end); {
			c.now = c.now.Add(110 * ms)
			c.judge.excuse(c.now, 110*ms)
			c.run(10 * ms)
		}
	}
	late(time.Minute)
	c.set("a", isBad(kindQuorum))
	late(time.Second)
	c.want("a:suspect b:healthy", "our own loop is late, whatever happened before a was bad")
	late(600 * ms)
	c.want("a:unhealthy b:healthy", "a has been bad for long: being late all the time is no excuse for it")
}

func TestJudgeReadmitsShimAtOnceAndStockAfterProofs(t *testing.T) {
	for _, source := range []Source{SourceShim, SourceStock} {
		c := newCourt(t, "a", "b")
		c.set("all", isGood)
		c.run(time.Second)
		c.set("a", isBad(kindQuorum))
		c.run(time.Second)
		c.want("a:unhealthy b:healthy", "condemned")
		c.set("a", func(n *condition) { n.state = stateNothing })
		c.run(time.Second)
		c.want("a:unhealthy b:healthy", "the absence of bad news is no proof")
		c.set("a", func(n *condition) { n.state, n.source = stateGood, source })
		c.run(20*ms, "a")
		if source == SourceShim {
			c.want("a:healthy b:healthy", "the shim has waited itself")
			continue
		}
		c.run(5*time.Second, "a")
		c.want("a:unhealthy b:healthy", "no proof has completed")
		c.run(30 * ms)
		c.want("a:healthy b:healthy", "three proofs in a row")
	}
}

func TestJudgeHoldsDownWhatFlapsAndDoublesIt(t *testing.T) {
	c := newCourt(t, "a", "b")
	c.set("all", isGood)
	c.run(time.Second)
	for i, want := range []time.Duration{0, 1, 2, 4, 8, 16, 32, 60, 60} {
		c.set("a", func(n *condition) { isBad(kindPath)(n); n.own = true })
		c.run(time.Second)
		c.want("a:unhealthy b:healthy", "condemned")
		c.set("a", isGood)
		c.run(max(want*time.Second-20*ms, 0))
		if want > 0 {
			c.want("a:unhealthy b:healthy", fmt.Sprintf("held down after condemnation %d", i+1))
		}
		c.run(50 * ms)
		c.want("a:healthy b:healthy", fmt.Sprintf("%v are over", want*time.Second))
	}
	c.run(3 * time.Minute)
	c.set("a", func(n *condition) { isBad(kindPath)(n); n.own = true })
	c.run(time.Second)
	c.set("a", isGood)
	c.run(20 * ms)
	c.want("a:healthy b:healthy", "good for long enough: forgotten")
}

func TestJudgeReadmitsWhatIsNeeded(t *testing.T) {
	c := newCourt(t, "a", "b")
	c.set("all", isGood)
	c.run(time.Second)
	for range 5 {
		c.set("a", func(n *condition) { isBad(kindPath)(n); n.own = true })
		c.run(time.Second)
		c.set("a", isGood)
		c.run(10 * time.Second)
	}
	c.set("a", func(n *condition) { isBad(kindPath)(n); n.own = true })
	c.run(time.Second)
	c.set("a", isGood)
	c.run(time.Second)
	c.want("a:unhealthy b:healthy", "held down")
	c.set("b", isBad(kindPath))
	c.run(20 * ms)
	c.want("a:healthy b:suspect", "a is all there is")
}

func TestJudgeNeverCondemnsTheOnlyEndpoint(t *testing.T) {
	c := newCourt(t, "a")
	c.set("a", isBad(kindPath))
	c.run(10 * time.Second)
	c.want("a:suspect", "nothing to compare with")

	c = newCourt(t, "a", "b")
	c.set("all", isGood)
	c.run(time.Second)
	c.set("a", isBad(kindQuorum))
	c.run(time.Second)
	c.seen = c.seen[:1]
	c.run(10 * ms)
	c.want("a:suspect", "the others were taken out of the set")
}

func TestJudgeParksTheMinoritysCluster(t *testing.T) {
	of := func(id membership.ID) func(*condition) {
		return func(n *condition) { n.state, n.itself = stateGood, id }
	}
	c := newCourt(t, "a", "b", "c")
	c.set("all", of(1))
	c.set("c", of(2))
	c.run(10 * ms)
	c.want("a:healthy b:healthy c:parked", "two against one")
	c.seen = c.seen[1:]
	c.run(10 * ms)
	c.want("b:healthy c:parked", "a tie leaves it at the incumbent")
	c.set("b", of(3))
	c.run(10 * ms)
	c.want("b:healthy c:healthy", "no incumbent, no majority: nobody is parked")
}

func TestJudgeNeverGoesToAForeignWitness(t *testing.T) {
	c := newCourt(t, "a", "b", "c")
	c.set("all", func(n *condition) { n.state, n.itself = stateGood, 1 })
	c.set("c", func(n *condition) { n.state, n.itself = stateGood, 2 })
	c.run(time.Second)
	c.set("a", func(n *condition) { isBad(kindQuorum)(n); n.itself = 1 })
	c.set("b", func(n *condition) { isBad(kindQuorum)(n); n.itself = 1 })
	c.run(5 * time.Second)
	c.want("a:suspect b:suspect c:parked", "another cluster's quorum says nothing about ours")
}

func TestJudgeTakesAMembersNoLeaderUntilALaterProof(t *testing.T) {
	c := newCourt(t, "a", "b")
	c.set("all", isGood)
	c.run(time.Second)
	c.judge.noLeader("a", c.now)
	c.run(200*ms, "a")
	c.want("a:suspect b:healthy", "the member's own word")
	c.run(20 * ms)
	c.want("a:healthy b:healthy", "a proof began later")
	c.judge.noLeader("a", c.now)
	c.run(310*ms, "a")
	c.want("a:unhealthy b:healthy", "no proof for as long as Hold")
}

func TestSnapshotTellsLeaderAndSinceWhen(t *testing.T) {
	c := newCourt(t, "a", "b")
	names := func(leader membership.ID, term uint64) func(*condition) {
		return func(n *condition) { n.state, n.leader, n.term = stateGood, leader, term }
	}
	c.set("all", names(1, 5))
	c.run(100 * ms)
	common := c.judge.common
	if c.judge.leader != 1 || c.judge.leadTerm != 5 || !c.judge.leading.Equal(c.start) || !common.Equal(c.start) {
		t.Errorf("leader %v at term %d since %v, common since %v; want 1 at 5, both since the begin", c.judge.leader, c.judge.leadTerm, c.judge.leading, common)
	}
	at := c.now
	c.set("b", names(2, 6)) // a, cut off, still names itself
	c.run(100 * ms)
	if c.judge.leader != 2 || c.judge.leadTerm != 6 || !c.judge.leading.Equal(at) {
		t.Errorf("leader %v at term %d since %v, want 2 at 6 since %v: the highest term counts", c.judge.leader, c.judge.leadTerm, c.judge.leading, at)
	}
	if !c.judge.common.Equal(common) {
		t.Errorf("common since %v, want %v: one was healthy without a break", c.judge.common, common)
	}
	c.set("all", isBad(kindQuorum))
	c.run(100 * ms)
	if !c.judge.common.IsZero() || c.judge.leader != 0 || !c.judge.leading.IsZero() {
		t.Errorf("common since %v, leader %v since %v; want none of them", c.judge.common, c.judge.leader, c.judge.leading)
	}
}

func TestGradesAreOrdered(t *testing.T) {
	order := []Grade{Healthy, Unknown, Suspect, Unhealthy, Parked}
	for i, g := range order {
		for k, o := range order {
			if g.Better(o) != (i < k) {
				t.Errorf("%v.Better(%v) = %t, want %t", g, o, g.Better(o), i < k)
			}
		}
	}
}

// A shim may go on saying that its member settles when it does no longer.
func TestJudgeBelievesThatAMemberSettlesWhileItProvesItsQuorum(t *testing.T) {
	for _, row := range []struct {
		name string
		set  func(*condition)
	}{
		{"its shim says so", func(c *condition) { c.state, c.kind, c.reason = stateBad, kindQuorum, ReasonSettling }},
		{"it is good, after a proof of ours had failed", func(c *condition) { c.state, c.source = stateGood, SourceStock }},
	} {
		c := newCourt(t, "a", "b")
		c.set("all", isGood)
		c.run(time.Second)
		c.set("a", func(c *condition) { isBad(kindQuorum)(c); c.own = true })
		c.run(time.Second)
		c.want("a:unhealthy b:healthy", row.name)
		c.set("a", row.set)
		c.seen[0].c.proven = c.now
		c.run(900*ms, "a")
		if got := c.last.verdicts[0]; got.Grade != Unhealthy || got.Reason != ReasonSettling {
			t.Errorf("%s: a is %v (%s) 0.9 s after its last proof, want unhealthy (settling)", row.name, got.Grade, got.Reason)
		}
		if c.last.wake.IsZero() || c.last.wake.After(c.seen[0].c.proven.Add(time.Second)) {
			t.Errorf("%s: judged again at %v, want when its proof is 1 s old", row.name, c.last.wake)
		}
		c.run(300*ms, "a") // a report is asked once more, for 150 ms at most
		if got := c.last.verdicts[0]; got.Grade != Unhealthy || got.Reason != ReasonUnproved {
			t.Errorf("%s: a is %v (%s) 1.2 s after its last proof, want unhealthy (unproved): its streams are to go", row.name, got.Grade, got.Reason)
		}
	}
}
