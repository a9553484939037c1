package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumwise/quorumwise/client"
)

// silences are the ages at which a silent watch is told of.
var silences = []time.Duration{loud, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second}

// narrator turns successive pictures, and what moved between them, into events. It
// is a pure core: one goroutine owns it.
type narrator struct {
	last   picture
	silent map[silence]int           // how many silences of the watch were told
	most   map[string]int            // highest number of blocked calls told, by client
	failed map[string]int            // failed calls told, by client
	peak   map[silence]time.Duration // longest silence of a watch that is silent now
}

// silence names a watch: its client, and its place among the client's watches.
type silence struct {
	client string
	watch  int
}

// moved is one call or stream that our client ended, and the member that it left.
type moved struct {
	move   client.Move
	member string
}

func newNarrator() *narrator {
	return &narrator{
		silent: make(map[silence]int), most: make(map[string]int),
		failed: make(map[string]int), peak: make(map[silence]time.Duration),
	}
}

// next tells what is new. The first picture is what both begin with.
func (n *narrator) next(p picture, moves []moved) []event {
	var told []event
	if len(n.last.members) == 0 {
		told = append(told, event{0, "both clients read, write, watch and keep leases on every member", plain})
	}
	for i, m := range p.members {
		if i < len(n.last.members) {
			told = append(told, n.member(p.at, n.last.members[i], m)...)
		}
	}
	told = append(told, moveEvents(p.at, moves)...)
	for i, c := range p.clients {
		var before clientState
		if i < len(n.last.clients) {
			before = n.last.clients[i]
		}
		told = append(told, n.client(p.at, before, c)...)
	}
	n.last = p
	return inOrder(told)
}

// inOrder sorts events by when they happened.
func inOrder(told []event) []event {
	slices.SortStableFunc(told, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return told
}

func (n *narrator) member(at time.Duration, was, is memberState) []event {
	var told []event
	if is.leads && !was.leads {
		told = append(told, event{at, is.name + " is the leader now", warn})
	}
	if is.shim.tone != was.shim.tone { // the reason may change: no news
		told = append(told, event{n.since(is.said, at), fmt.Sprintf("shim of %s: %s", is.name, is.shim.text), is.shim.tone})
	}
	if gradeOf(is) != gradeOf(was) {
		told = append(told, event{n.since(is.graded, at), fmt.Sprintf("ours: %s is %s", is.name, is.grade.text), is.grade.tone})
	}
	return told
}

// gradeOf is the grade without the reason in brackets.
func gradeOf(m memberState) string {
	grade, _, _ := strings.Cut(m.grade.text, " (")
	return grade
}

// since is when a change happened: between the last picture and this one.
func (n *narrator) since(when, at time.Duration) time.Duration {
	if when < n.last.at || when > at {
		return at
	}
	return when
}

// moveEvents tells of what left one member for one reason, a line for each kind.
func moveEvents(at time.Duration, moves []moved) []event {
	type group struct{ member, reason string }
	var order []group
	counts := make(map[group]map[string]int)
	for _, m := range moves {
		g := group{m.member, m.move.Reason}
		if counts[g] == nil {
			counts[g] = make(map[string]int)
			order = append(order, g)
		}
		counts[g][m.move.Class]++
	}
	var told []event
	for _, g := range order {
		for _, text := range departures(counts[g], g.member) {
			told = append(told, event{at, fmt.Sprintf("ours: %s (%s)", text, g.reason), warn})
		}
	}
	return told
}

// departures says what becomes of each kind of call that leaves a member.
func departures(n map[string]int, member string) []string {
	var said, streams []string
	if k := n["read"]; k > 0 {
		said = append(said, fmt.Sprintf("%s on %s sent again elsewhere", count(k, "read"), member))
	}
	for _, s := range []struct{ class, noun string }{{"lease", "lease stream"}, {"watch", "watch"}, {"stream", "stream"}} {
		if k := n[s.class]; k > 0 {
			streams = append(streams, count(k, s.noun))
		}
	}
	if len(streams) > 0 {
		said = append(said, fmt.Sprintf("%s moved away from %s", strings.Join(streams, " and "), member))
	}
	if k := n["mutation"]; k > 0 {
		said = append(said, fmt.Sprintf("%s on %s given up, outcome unknown", count(k, "Put"), member))
	}
	return said
}

func (n *narrator) client(at time.Duration, was, is clientState) []event {
	told := n.watches(at, is)
	if is.lost > was.lost {
		told = append(told, event{at, fmt.Sprintf("%s: lease LOST (%d of %d)", short(is.name), is.lost, is.leases), bad})
	}
	// Calls begin to block together: told when their number has come to rest.
	if is.waiting > n.most[is.name] && is.waiting == was.waiting {
		n.most[is.name] = is.waiting
		told = append(told, event{at, fmt.Sprintf("%s: %s blocked for more than a second", short(is.name), count(is.waiting, "call")), bad})
	}
	if is.failed > 0 && is.failed >= 2*n.failed[is.name] {
		n.failed[is.name] = is.failed
		told = append(told, event{at, fmt.Sprintf("%s: %s ended in an error so far", short(is.name), count(is.failed, "call")), warn})
	}
	return told
}

// watches tells of silences when they reach the next age, and of their end.
func (n *narrator) watches(at time.Duration, c clientState) []event {
	var told []event
	for i, w := range c.watches {
		key := silence{c.name, i}
		if w.silent >= loud {
			n.peak[key] = w.silent
		} else if peak, ok := n.peak[key]; ok {
			told = append(told, event{at, fmt.Sprintf("%s: watch delivers again after %s%s", short(c.name), seconds(peak), w.where(", on ")), good})
			delete(n.peak, key)
			delete(n.silent, key)
		}
		reached := n.silent[key]
		for reached < len(silences) && w.silent >= silences[reached] {
			reached++
		}
		if reached > n.silent[key] {
			n.silent[key] = reached
			told = append(told, event{at, fmt.Sprintf("%s: watch%s silent for %s", short(c.name), w.where(" on "), seconds(w.silent)), bad})
		}
	}
	return told
}

// short is how the story calls a client.
func short(name string) string {
	if name == oursName {
		return "ours"
	}
	return name
}
