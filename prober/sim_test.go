package prober

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
)

// sim drives the pure parts (gatherers, detectors, one judge) against scripted members in
// steps of a millisecond. There is no randomness: the first member's waits
// have their longest length, the others' are a little shorter, so that polls are not in step.
type sim struct {
	t      *testing.T
	start  time.Time
	now    time.Time
	times  times
	ends   []*simEndpoint
	judge  *judge
	due    time.Time // of the judge
	trace  []string
	ruling ruling
	orders map[do]int // how many of each were carried out
}

// simEndpoint is one member with its probe.
type simEndpoint struct {
	name     string
	gather   *gather
	detector detector
	last     condition
	due      time.Time
	outed    bool // the judge holds it condemned
	awaited  bool // the judge waits for a word of its report, or a proof

	// How the member behaves.
	path     string // ok, dead, refused
	leader   bool
	learner  bool
	proof    string        // ok, stall, error, turned-away
	slow     time.Duration // of proofs
	lag      time.Duration // of everything
	shim     simShim
	inproc   simShim
	self     membership.Observation
	stuck    bool // the connection was used while the path was dead: TCP waits, longer each time
	fresh    bool // the connection is not established yet: gRPC gives up and tries again
	flying   []simCall
	follower [2]simFollower // etcd's port, the shim's
}

type simCall struct {
	id  int
	at  time.Time
	out outcome
}

type simShim struct {
	mode   string // none, silent, absent, serving, not-serving
	reason string
	lost   time.Time // when it last said that the quorum is lost, which takes it a window; zero: it is not
	id     healthsvc.Identity
}

type simFollower struct {
	on      bool
	session int
	next    time.Time
	late    time.Time // when the poll that is out is missed; zero: none is out
	news    healthsvc.News
}

const (
	simRTT    = time.Millisecond
	simWindow = 250 * time.Millisecond // of a shim
)

func newSim(t *testing.T, names []string) *sim {
	s := &sim{t: t, start: time.Unix(1_000_000, 0), times: scaled(Config{}), orders: make(map[do]int)}
	s.now = s.start
	s.judge = newJudge(s.times)
	for i, n := range names {
		s.ends = append(s.ends, &simEndpoint{
			name: n, path: "ok", leader: true, proof: "ok",
			gather:   newGather(s.times, true, func() float64 { return float64(i) * 0.4 }),
			detector: newDetector(s.times),
			last:     condition{reason: ReasonChecking},
			self:     membership.Observation{Cluster: 0xc, Member: membership.ID(i + 1), Leader: 3, Term: 7},
			shim:     simShim{mode: "none"}, inproc: simShim{mode: "absent"},
			due: s.start,
		})
	}
	return s
}

func (s *sim) at(d time.Duration) time.Time { return s.start.Add(d) }

// until runs to a time.
func (s *sim) until(end time.Time) {
	for ; s.now.Before(end); s.now = s.now.Add(time.Millisecond) {
		s.tick()
	}
}

func (s *sim) tick() {
	news := false
	for _, e := range s.ends {
		e.gather.woke(s.now.Sub(e.due))
		woken := e.deliver(s.now)
		if woken || !s.now.Before(e.due) {
			news = s.step(e) || news
		}
	}
	if news || !s.due.IsZero() && !s.now.Before(s.due) {
		s.rule()
	}
}

// step is one turn of a probe's loop; it reports whether subscribers are woken.
func (s *sim) step(e *simEndpoint) bool {
	for _, o := range e.gather.tick(s.now) {
		s.orders[o.do]++
		e.act(o, s.now)
	}
	return s.publish(e)
}

func (s *sim) publish(e *simEndpoint) bool {
	c := e.detector.step(&e.gather.ev, s.now)
	proved := !c.proof.Equal(e.last.proof) || !c.waived.Equal(e.last.waived)
	woken := c.differs(&e.last) || proved && (e.outed || e.awaited) || e.awaited && !c.said.Equal(e.last.said)
	e.last = c
	e.due = later(e.gather.wake(s.now), s.now.Add(time.Millisecond))
	return woken
}

// rule is one turn of the prober's loop.
func (s *sim) rule() {
	if late := s.now.Sub(s.due); !s.due.IsZero() && late > s.times.late {
		s.judge.excuse(s.now, late)
	}
	sights := make([]sight, len(s.ends))
	for i, e := range s.ends {
		c := e.last
		sights[i] = sight{e.name, &c}
	}
	s.ruling = s.judge.rule(s.now, sights)
	for _, v := range s.ruling.verdicts {
		if before, ok := s.ruling.before[v.Address]; ok {
			s.trace = append(s.trace, fmt.Sprintf("%s %s %v -> %v %s", stamp(s.now.Sub(s.start)), v.Address, before, v.Grade, orDash(v.Reason)))
		}
	}
	s.due = s.ruling.wake
	for i, e := range s.ends {
		e.outed = s.ruling.verdicts[i].Grade == Unhealthy
		e.gather.out(e.outed, s.now)
		e.awaited = slices.Contains(s.ruling.awaited, e.name)
		if s.ruling.compare {
			for _, o := range e.gather.compare(s.now, nil) {
				e.act(o, s.now)
			}
		}
		if slices.Contains(s.ruling.ask, e.name) {
			e.act(order{do: doNudge}, s.now)
		}
		if slices.Contains(s.ruling.prove, e.name) {
			e.gather.demand()
		}
		// Not before now: that would pass for a loop that slept.
		e.due = later(earlier(e.due, e.gather.wake(s.now)), s.now)
	}
}

func stamp(d time.Duration) string {
	return fmt.Sprintf("%d.%03d", d/time.Second, d%time.Second/time.Millisecond)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// deliver hands over what has arrived by now.
func (e *simEndpoint) deliver(now time.Time) (any bool) {
	rest := e.flying[:0]
	for _, c := range e.flying {
		if now.Before(c.at) {
			rest = append(rest, c)
			continue
		}
		e.gather.done(c.id, c.out, now)
		any = true
	}
	e.flying = rest
	for i := range e.follower {
		any = e.poll(i, now) || any
	}
	return any
}

// act does what a gatherer ordered.
func (e *simEndpoint) act(o order, now time.Time) {
	switch o.do {
	case doCheck, doProve, doObserve:
		e.flying = append(e.flying, e.call(o, now))
	case doRedial:
		e.stuck, e.fresh = false, true
		e.flying = nil
	case doSeekShim, doSeekEtcd:
		i := atEtcd
		if o.do == doSeekShim {
			i = atShim
		}
		e.follower[i] = simFollower{on: true, session: o.id, next: now.Add(simRTT), news: healthsvc.News{Since: now}}
	case doLeaveShim:
		e.follower[atShim].on = false
	case doLeaveEtcd:
		e.follower[atEtcd].on = false
	case doNudge:
		for i := range e.follower {
			e.follower[i].next = earlier(e.follower[i].next, now.Add(simRTT))
		}
	}
}

func (e *simEndpoint) call(o order, now time.Time) simCall {
	c := simCall{id: o.id, at: now.Add(simRTT + e.lag)}
	e.stuck = e.stuck || e.path == "dead" && !e.fresh
	e.fresh = e.fresh && e.path != "ok"
	switch {
	case e.stuck:
		c.at = now.Add(o.timeout)
		return c
	case e.path == "dead":
		c.at, c.out = now.Add(time.Second), outcome{result: resultBroken}
		return c
	case e.path == "refused":
		c.out = outcome{result: resultBroken}
		return c
	}
	c.out.result = resultAnswered
	switch o.do {
	case doCheck:
		c.out.answer = answerOK
		if e.learner {
			c.out.answer = answerLearner
		} else if !e.leader {
			c.out.answer = answerNoLeader
		}
	case doProve:
		c.at = c.at.Add(e.slow)
		switch {
		case e.proof == "error":
			c.out.result = resultFailed
		case e.proof == "turned-away":
			c.out.result = resultRefused
		case e.proof == "stall", c.at.Sub(now) > o.timeout:
			c.at, c.out.result = now.Add(o.timeout), resultSilent
		}
	case doObserve:
		c.out.self = e.self
		c.out.self.At = now
		c.out.self.Learner = e.learner
	}
	return c
}

// poll is the follower at one place; it reports whether it told something.
func (e *simEndpoint) poll(i int, now time.Time) bool {
	f, shim := &e.follower[i], &e.shim
	if i == atEtcd {
		shim = &e.inproc
	}
	if !f.on {
		return false
	}
	silent := shim.mode == "silent" || i == atEtcd && e.stuck
	switch {
	case !f.late.IsZero() && now.Before(f.late):
		return false
	case !f.late.IsZero(), shim.mode == "none" && !now.Before(f.next):
		f.late, f.next = time.Time{}, now.Add(100*time.Millisecond)
		f.news.Missed++
	case now.Before(f.next):
		return false
	case silent:
		f.late = now.Add(150 * time.Millisecond)
		return false
	default:
		f.hear(shim, now)
	}
	e.gather.told(i == atShim, f.session, f.news, now)
	return true
}

func (f *simFollower) hear(shim *simShim, now time.Time) {
	status := healthsvc.StatusServing
	switch shim.mode {
	case "absent":
		status = healthsvc.StatusAbsent
	case "not-serving":
		status = healthsvc.StatusNotServing
	}
	if status != f.news.Status {
		f.news.Since = now
	}
	f.news.Status, f.news.Reason, f.news.Identity = status, healthsvc.Reason(shim.reason), shim.id
	f.news.Heard, f.news.Began, f.news.Missed, f.news.ProofAge = now, now.Add(-simRTT), 0, 50*time.Millisecond
	if !shim.lost.IsZero() {
		f.news.ProofAge = now.Sub(shim.lost) + simWindow
	}
	f.next = now.Add(500 * time.Millisecond)
}

// push makes the shim's change known at once.
func (e *simEndpoint) push(now time.Time) {
	for i := range e.follower {
		e.follower[i].next = earlier(e.follower[i].next, now.Add(simRTT))
	}
}

func (s *simShim) say(mode, reason string, now time.Time) {
	s.mode, s.reason, s.lost = mode, reason, time.Time{}
	switch reason {
	case "no-quorum", "no-leader", "unreachable":
		s.lost = now
	}
}

// set changes how a member behaves.
func (e *simEndpoint) set(facet, value string, now time.Time) error {
	word, arg, _ := strings.Cut(value, ":")
	switch facet {
	case "path":
		e.path = word
	case "host": // everything on it
		e.path = word
		if word == "dead" {
			e.shim.mode = "silent"
		}
	case "leader":
		e.leader = word == "yes"
	case "learner":
		e.learner = word == "yes"
	case "proof":
		e.proof = word
	case "slow", "lag":
		d, err := time.ParseDuration(value)
		if err != nil {
			return err
		}
		if facet == "slow" {
			e.slow = d
		} else {
			e.lag = d
		}
	case "shim":
		changed := e.shim.mode != word
		e.shim.say(word, arg, now)
		if changed { // another reason alone is not pushed
			e.push(now)
		}
	case "in-process":
		e.inproc.say(word, arg, now)
		e.push(now)
	case "shim-member":
		n, err := strconv.ParseUint(value, 16, 64)
		e.shim.id.Member = n
		return err
	case "cluster":
		n, err := membership.ParseID(value)
		e.self.Cluster = n
		return err
	case "term":
		n, err := strconv.ParseUint(value, 10, 64)
		e.self.Term, e.shim.id.Term = n, n
		return err
	default:
		return fmt.Errorf("facet %q is not one of a script's", facet)
	}
	return nil
}

// script is one file of testdata: a claim in prose, then lines
//
//	endpoints NAME...            all of them have the address of a shim
//	TIME NAME|all FACET VALUE    how a member behaves from then on
//	TIME client paused-for DURATION
//	TIME NAME|all prove -        a user's call is overdue
//	TIME NAME|all no-leader -    a user's call was answered so
//	TIME end
//
// and after "trace" every change of a grade that must follow, no other.
func runScript(t *testing.T, path string) (s *sim, want []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tracing := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0, strings.HasPrefix(fields[0], "#"):
		case tracing:
			want = append(want, strings.Join(fields, " "))
		case fields[0] == "endpoints":
			s = newSim(t, fields[1:])
		case fields[0] == "trace":
			tracing = true
		default:
			if err := s.line(fields); err != nil {
				t.Fatalf("%s: %q: %v", path, lines.Text(), err)
			}
		}
	}
	return s, want
}

func (s *sim) line(fields []string) error {
	d, err := time.ParseDuration(fields[0])
	if err != nil {
		return err
	}
	s.until(s.at(d))
	switch {
	case fields[1] == "end":
		return nil
	case len(fields) < 4:
		return fmt.Errorf("want TIME NAME FACET VALUE")
	case fields[1] == "client":
		pause, err := time.ParseDuration(fields[3])
		s.now = s.now.Add(pause)
		for _, e := range s.ends {
			for i := range e.flying { // the network stood still as well
				e.flying[i].at = e.flying[i].at.Add(pause)
			}
		}
		return err
	}
	for _, e := range s.ends {
		if e.name != fields[1] && fields[1] != "all" {
			continue
		}
		switch fields[2] {
		case "prove":
			e.gather.demand()
			e.due = s.now
			for _, o := range s.ends {
				o.gather.compare(s.now, nil)
				o.due = s.now
			}
		case "no-leader":
			s.judge.noLeader(e.name, s.now)
			e.gather.demand()
			e.due = s.now
			s.rule()
		default:
			if err := e.set(fields[2], fields[3], s.now); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestScriptsHoldTheirTrace(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".txt") {
			continue
		}
		t.Run(strings.TrimSuffix(f.Name(), ".txt"), func(t *testing.T) {
			t.Parallel()
			s, want := runScript(t, "testdata/"+f.Name())
			if !slices.Equal(s.trace, want) {
				t.Errorf("the grades did not change as the script claims (see its prose)\ngot:\n  %s\nwant:\n  %s",
					strings.Join(s.trace, "\n  "), strings.Join(want, "\n  "))
			}
		})
	}
}
