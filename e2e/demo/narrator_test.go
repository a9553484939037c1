package main

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/client"
)

// member is a member at rest.
func member(name string) memberState {
	return memberState{name: name, truth: word{"follower", good}, shim: word{"serving", good}, grade: word{"healthy", good}}
}

func texts(events []event) []string {
	var ts []string
	for _, e := range events {
		ts = append(ts, e.lines(0)[0].text(0))
	}
	return ts
}

// Each step is a picture and what the narrator says of it.
func TestNarratorTellsEveryChangeOnce(t *testing.T) {
	n := newNarrator()
	m, leader := member("m2"), member("m1")
	at := func(t int) picture { return picture{at: ms(t), members: []memberState{leader, m}} }
	step := func(when int, change func(), moves []moved, want ...string) {
		t.Helper()
		change()
		if got := texts(n.next(at(when), moves)); !slices.Equal(got, want) {
			t.Errorf("at %d ms:\n got %q\nwant %q", when, got, want)
		}
	}
	step(100, func() {}, nil, "  0.0s  both clients read, write, watch and keep leases on every member")
	step(3000, func() {}, nil)
	step(3200, func() {
		m.grade, m.graded = word{"suspect (no-quorum)", warn}, ms(3140)
		m.shim, m.said = word{"no-quorum", bad}, ms(3120)
	}, []moved{left("read", "no-quorum"), left("read", "no-quorum")},
		"  3.1s  shim of m2: no-quorum",
		"  3.1s  ours: m2 is suspect (no-quorum)",
		"  3.2s  ours: 2 reads on m2 sent again elsewhere (no-quorum)")
	step(3300, func() {}, nil)
	step(3500, func() { m.grade, m.graded = word{"unhealthy (no-quorum)", bad}, ms(3440) },
		[]moved{left("watch", "no-quorum"), left("lease", "no-quorum"), left("mutation", "no-quorum"), left("watch", "no-quorum")},
		"  3.4s  ours: m2 is unhealthy (no-quorum)",
		"  3.5s  ours: 1 lease stream and 2 watches moved away from m2 (no-quorum)",
		"  3.5s  ours: 1 Put on m2 given up, outcome unknown (no-quorum)")
	// The reason behind a grade may change: that is no news.
	step(3600, func() { m.grade, m.shim = word{"unhealthy (no-leader)", bad}, word{"no-leader", bad} }, nil)
	step(3700, func() { leader.leads = true }, nil, "  3.7s  m1 is the leader now")
	step(3800, func() {}, nil)
}

func left(class, reason string) moved {
	return moved{client.Move{Class: class, Reason: reason}, "m2"}
}

func TestNarratorFollowsTheSilenceOfAWatch(t *testing.T) {
	n := newNarrator()
	var got []string
	for now := 0; now <= 7000; now += 100 {
		silent := time.Duration(0)
		if now <= 6000 {
			silent = ms(now)
		}
		c := clientState{name: officialName, watches: []watchState{{"m2", silent}}}
		got = append(got, texts(n.next(picture{at: ms(now), members: []memberState{member("m1")}, clients: []clientState{c}}, nil))...)
	}
	want := []string{
		"  0.0s  both clients read, write, watch and keep leases on every member",
		"  1.0s  official: watch on m2 silent for 1.0 s",
		"  2.0s  official: watch on m2 silent for 2.0 s",
		"  5.0s  official: watch on m2 silent for 5.0 s",
		"  6.1s  official: watch delivers again after 6.0 s, on m2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNarratorTellsOfBlockedCallsWhenTheirNumberRests(t *testing.T) {
	n := newNarrator()
	var got []string
	for i, waiting := range []int{0, 1, 5, 6, 6, 6, 0, 0, 6, 6} {
		c := clientState{name: officialName, waiting: waiting}
		got = append(got, texts(n.next(picture{at: ms(100 * i), members: []memberState{member("m1")}, clients: []clientState{c}}, nil))...)
	}
	want := []string{
		"  0.0s  both clients read, write, watch and keep leases on every member",
		"  0.4s  official: 6 calls blocked for more than a second",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q: 1 and 5 were on the way to 6, and the second 6 is no news", got, want)
	}
}

func TestNarratorTellsOfLostLeasesAndErrors(t *testing.T) {
	n := newNarrator()
	var got []string
	for i, c := range []clientState{{}, {lost: 1, failed: 1}, {lost: 1, failed: 1}, {lost: 2, failed: 2}, {lost: 2, failed: 3}, {lost: 2, failed: 4}} {
		c.name, c.leases = officialName, 3
		got = append(got, texts(n.next(picture{at: ms(100 * i), members: []memberState{member("m1")}, clients: []clientState{c}}, nil))...)
	}
	want := []string{
		"  0.0s  both clients read, write, watch and keep leases on every member",
		"  0.1s  official: lease LOST (1 of 3)",
		"  0.1s  official: 1 call ended in an error so far",
		"  0.3s  official: lease LOST (2 of 3)",
		"  0.3s  official: 2 calls ended in an error so far",
		"  0.5s  official: 4 calls ended in an error so far",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
