package prober

import (
	"strconv"
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

// line is the evidence for people. Every prober writes one for every change, and hardly anybody
// reads it: the text itself is all that is allocated.
func line(c *condition, now time.Time) string {
	b := make([]byte, 0, 256)
	b = append(b, c.state.String()...)
	b = append(b, " by "...)
	b = append(b, c.source.String()...)
	if c.reason != "" {
		b = append(b, " ("...)
		b = append(b, c.reason...)
		b = append(b, ')')
	}
	b = append(b, " for "...)
	b = appendShort(b, now.Sub(c.since))
	b = append(b, "; path answered "...)
	b = appendAgo(b, c.answered, now)
	b = append(b, "; quorum proved "...)
	b = appendAgo(b, c.proven, now)
	if c.term != 0 {
		b = append(b, "; leader "...)
		b = append(b, c.leader.String()...)
		b = append(b, " at term "...)
		b = strconv.AppendUint(b, c.term, 10)
	}
	return string(b)
}

func appendAgo(b []byte, t, now time.Time) []byte {
	if t.IsZero() {
		return append(b, "never"...)
	}
	return append(appendShort(b, now.Sub(t)), " ago"...)
}

func appendShort(b []byte, d time.Duration) []byte {
	return append(b, d.Round(time.Millisecond).String()...)
}

// same reports whether two verdicts say the same; times that move with every answer
// do not count.
func same(a, b Verdict) bool {
	a.ProofAge, a.RoundTrip, a.Evidence = b.ProofAge, b.RoundTrip, b.Evidence
	return a == b
}
