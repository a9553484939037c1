package prober

import (
	"fmt"
	"strings"
	"time"
)

// verdict writes down a standing with the evidence that it rests on.
func verdict(st *standing, s sight, now time.Time) Verdict {
	c := s.c
	v := Verdict{
		Address: s.address, Grade: st.grade, Reason: st.reason, Since: st.since, Source: c.source,
		Cluster: c.cluster, Member: c.member, Leader: c.leader, Term: c.term, RoundTrip: c.rtt,
	}
	if !c.proven.IsZero() {
		v.ProofAge = now.Sub(c.proven)
	}
	return v
}

// line is the evidence for people.
func line(c *condition, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s by %s", c.state, c.source)
	if c.reason != "" {
		fmt.Fprintf(&b, " (%s)", c.reason)
	}
	fmt.Fprintf(&b, " for %s; path answered %s; quorum proved %s", short(now.Sub(c.since)), ago(c.answered, now), ago(c.proven, now))
	if c.term != 0 {
		fmt.Fprintf(&b, "; leader %s at term %d", c.leader, c.term)
	}
	return b.String()
}

func ago(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return short(now.Sub(t)) + " ago"
}

func short(d time.Duration) string { return d.Round(time.Millisecond).String() }

// same reports whether two verdicts say the same; times that move with every answer
// do not count.
func same(a, b Verdict) bool {
	a.ProofAge, a.RoundTrip, a.Evidence = b.ProofAge, b.RoundTrip, b.Evidence
	return a == b
}
