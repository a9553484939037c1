package main

import "time"

// picture is everything that is shown of one moment. It holds no pointer into the
// running stage.
type picture struct {
	fault   string // name of the scenario
	does    string
	at      time.Duration // since both clients run
	members []memberState
	clients []clientState // ours, then the official one
}

// memberState is one member, seen by the network, by its shim and by our client.
type memberState struct {
	name     string
	leads    bool // in truth
	truth    word
	shim     word
	said     time.Duration // when the shim began to say so
	grade    word
	graded   time.Duration // when the grade began
	ours     int           // watch and lease streams of each client on it
	official int
}

// clientState is what one application's user sees.
type clientState struct {
	name       string
	gets, puts float64 // returned in the last second
	waiting    int     // calls that have waited for longer than workload.Slow
	oldest     time.Duration
	failed     int // so far
	watches    []watchState
	leases     int
	lost       int
	ttl        time.Duration // the shortest that is left; negative: not known
}

// watchState is one watch.
type watchState struct {
	on     string // the member that carries its stream; "" while there is none
	silent time.Duration
}

func (w watchState) tone() tone {
	if w.silent >= loud {
		return bad
	}
	return good
}

// where names the member after a preposition, "" while no member carries the watch.
func (w watchState) where(preposition string) string {
	if w.on == "" {
		return ""
	}
	return preposition + w.on
}

// worst is the watch that has been silent for longest.
func (c clientState) worst() watchState {
	var worst watchState
	for _, w := range c.watches {
		if w.silent >= worst.silent {
			worst = w
		}
	}
	return worst
}

// event is one line of the story.
type event struct {
	at   time.Duration
	text string
	tone tone
}

// Names of the two clients on the screen.
const (
	oursName     = "quorumwise"
	officialName = "official"
)

// loud is the silence from which a watch is marked: events come every 20 ms.
const loud = time.Second
