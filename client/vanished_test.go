package client

import (
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/prober"
)

func TestConnectionThatBytesVanishedOnIsReplacedWhenItsMemberReturns(t *testing.T) {
	type word struct {
		grade  prober.Grade
		reason string
		after  time.Duration
	}
	const unreachable = prober.ReasonUnreachable
	for _, c := range []struct {
		name string
		said []word
		want bool // of the last word
	}{
		{"given up", []word{{suspect, unreachable, 0}, {unhealthy, unreachable, 300 * time.Millisecond}, {healthy, "", 100 * time.Millisecond}}, true},
		{"given up, then settling", []word{{unhealthy, unreachable, 0}, {unhealthy, prober.ReasonSettling, 0}, {healthy, "", 0}}, true},
		{"all were away, none was given up", []word{{suspect, unreachable, 0}, {suspect, unreachable, 2 * time.Second}, {healthy, "", 0}}, true},
		{"for a moment", []word{{suspect, unreachable, 0}, {healthy, "", 500 * time.Millisecond}}, false},
		{"given up, and in reach", []word{{unhealthy, "no-quorum", 0}, {healthy, "", 5 * time.Second}}, false},
		{"for a moment, before an election", []word{{suspect, unreachable, 0}, {suspect, "no-leader", 100 * time.Millisecond}, {healthy, "", 1500 * time.Millisecond}}, false},
		{"for long, before an election", []word{{suspect, unreachable, 0}, {suspect, "no-leader", 1500 * time.Millisecond}, {healthy, "", 100 * time.Millisecond}}, true},
		{"once only", []word{{unhealthy, unreachable, 0}, {healthy, "", 0}, {healthy, "", time.Second}}, false},
	} {
		l, now, got := make(vanished), time.Unix(1000, 0), false
		for _, w := range c.said {
			now = now.Add(w.after)
			got = l.returned(prober.Verdict{Address: "a", Grade: w.grade, Reason: w.reason}, now)
		}
		if got != c.want {
			t.Errorf("%s: a new connection is taken: %v, want %v", c.name, got, c.want)
		}
		if len(l) != 0 {
			t.Errorf("%s: %v is remembered of a member that is back, want nothing", c.name, l)
		}
	}
}
