package main

import (
	"testing"

	"github.com/quorumwise/quorumwise/e2e/relay"
)

func held(pairs ...string) []relay.Direction {
	var ds []relay.Direction
	for i := 0; i < len(pairs); i += 2 {
		ds = append(ds, relay.Direction{From: pairs[i], To: pairs[i+1]})
	}
	return ds
}

func TestTruthComesFromTheNetworkNotTheMember(t *testing.T) {
	both := held("m2", "m1", "m2", "m3", "m1", "m2", "m3", "m2")
	for _, c := range []struct {
		name       string
		leader     string
		stopped    string
		held       []relay.Direction
		m1, m2, m3 string
	}{
		{name: "nothing held", leader: "m1", m1: "leader", m2: "follower", m3: "follower"},
		{name: "election", m1: "no leader", m2: "no leader", m3: "no leader"},
		{name: "cut both ways", leader: "m1", held: both, m1: "leader", m2: "cut off", m3: "follower"},
		{name: "the old leader, cut", leader: "m3", held: both, m1: "follower", m2: "cut off", m3: "leader"},
		{name: "frozen", leader: "m1", held: append(held("ours", "m2", "m2", "ours"), both...), m1: "leader", m2: "frozen", m3: "follower"},
		{name: "unheard", leader: "m1", held: both[:2], m1: "leader", m2: "follower, unheard", m3: "follower"},
		{name: "deaf", leader: "m1", held: both[2:], m1: "leader", m2: "follower, deaf", m3: "follower"},
		{name: "one link", leader: "m1", held: held("m1", "m2", "m2", "m1"), m1: "leader, cut from m2", m2: "follower, cut from m1", m3: "follower"},
		{name: "only from us", leader: "m1", held: held("ours", "m3", "m3", "ours"), m1: "leader", m2: "follower", m3: "follower, cut from us"},
		{name: "stopped", leader: "m1", stopped: "m3", m1: "leader", m2: "follower", m3: "stopped"},
		{name: "all apart", held: append(held("m1", "m3", "m3", "m1"), both...), m1: "cut off", m2: "cut off", m3: "cut off"},
	} {
		s := situation{members: []string{"m1", "m2", "m3"}, leader: c.leader, view: "ours", held: c.held, stopped: []string{c.stopped}}
		for member, want := range map[string]string{"m1": c.m1, "m2": c.m2, "m3": c.m3} {
			if got := s.truth(member).text; got != want {
				t.Errorf("%s: %s is %q, want %q", c.name, member, got, want)
			}
		}
	}
}
