package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorumwise/quorumwise/e2e/relay"
)

// situation is the network and the cluster at one moment, as no member can see it.
type situation struct {
	members []string
	stopped []string
	leader  string // named by a majority; "" in an election
	view    string // of our application
	held    []relay.Direction
}

// truth says in a word or two how a member really is.
func (s situation) truth(member string) word {
	if slices.Contains(s.stopped, member) {
		return word{"stopped", bad}
	}
	var outLost, inLost, links []string
	for _, other := range s.members {
		if other == member {
			continue
		}
		if s.isolated(other) && !s.isolated(member) {
			continue // its trouble, not this member's
		}
		out, in := s.lost(member, other), s.lost(other, member)
		if out {
			outLost = append(outLost, other)
		}
		if in {
			inLost = append(inLost, other)
		}
		if out || in {
			links = append(links, other)
		}
	}
	peers := len(s.members) - 1
	away := s.lost(s.view, member) && s.lost(member, s.view)
	switch {
	case peers > 0 && len(outLost) == peers && len(inLost) == peers && away:
		return word{"frozen", bad}
	case peers > 0 && len(outLost) == peers && len(inLost) == peers:
		return word{"cut off", bad}
	case peers > 0 && len(outLost) == peers:
		return word{s.role(member) + ", unheard", bad}
	case peers > 0 && len(inLost) == peers:
		return word{s.role(member) + ", deaf", bad}
	case len(links) > 0:
		return word{fmt.Sprintf("%s, cut from %s", s.role(member), strings.Join(links, " ")), warn}
	case away:
		return word{s.role(member) + ", cut from us", warn}
	case s.leader == "":
		return word{s.role(member), warn}
	default:
		return word{s.role(member), good}
	}
}

func (s situation) role(member string) string {
	switch s.leader {
	case member:
		return "leader"
	case "":
		return "no leader"
	default:
		return "follower"
	}
}

// isolated says whether a member has no way to any peer in one direction at least.
func (s situation) isolated(member string) bool {
	deaf, unheard := true, true
	for _, other := range s.members {
		if other != member {
			deaf = deaf && s.lost(other, member)
			unheard = unheard && s.lost(member, other)
		}
	}
	return deaf || unheard
}

func (s situation) lost(from, to string) bool {
	return slices.Contains(s.held, relay.Direction{From: from, To: to})
}
