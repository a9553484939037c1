//go:build linux

package suites

import (
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/workload"
)

// arrivals are what a herd did after its member was gone.
type arrivals struct {
	clients     int
	gone, freed time.Time
	began       []time.Time    // of every watch stream, in order, whether refused or not
	carried     map[string]int // streams at the end, by member that is left
	written     int            // how often herdKey was counted up between gone and freed
	wrong       lines          // with what clients saw
}

func (h *herd) arrivals(st *Stage, gone, freed time.Time, done []time.Time) arrivals {
	a := arrivals{clients: len(h.grazers), gone: gone, freed: freed, carried: make(map[string]int), wrong: h.wrong()}
	for _, opened := range h.trace.Attempts(func(one workload.Attempt) bool { return one.Method == workload.MethodWatch && one.Began.After(gone) }) {
		a.began = append(a.began, opened.Began)
	}
	open := h.trace.Open(workload.MethodWatch)
	for _, m := range st.Others(st.Target) {
		a.carried[m.Name()] = 0
		for _, address := range open {
			if address == m.Endpoint() {
				a.carried[m.Name()]++
			}
		}
	}
	for _, at := range done {
		if at.After(gone) && at.Before(freed) {
			a.written++
		}
	}
	return a
}

// Bounds on the herd. asksMost is how often a client that is refused may ask on average in
// the time of refusal: one that doubles its pauses asks about six times, one that does
// not some hundred times.
const (
	asksMost    = 20
	leastPart   = 0.3 // of the streams, on each of the two members that are left
	leastWrites = int(refusing / herdEvery / 2)

	// Those who lose their member together ask together at first. Each then waits about as
	// long as it has been refused, half as much more or less, so that two seconds later a
	// tenth of them at most come within one instant, and in step all, each time. A process of a
	// thousand clients that stands still for some 300 ms lets those come together who were due
	// then: that is one crowd. A crowd keeps the processors busy itself, so that another one
	// counts when it came apart from it, and only what stood still before that one excuses it.
	mixed        = 2 * time.Second
	instant      = 100 * time.Millisecond
	apart        = time.Second
	crowdAtMost  = 0.4 // of the clients, in one instant
	crowdsAtMost = 0.2 // likewise, in each of two instants
)

// judgeArrivals claims that the herd asked seldom and not in step, arrived at both members, and
// missed nothing of what was written meanwhile.
func (st *Stage) judgeArrivals(a arrivals) {
	asked := 0
	for _, at := range a.began {
		if at.Before(a.freed) {
			asked++
		}
	}
	st.claim(asked <= asksMost*a.clients, "%d clients that were refused opened watch streams %d times in %v; want at most %d times each: they should ask later each time", a.clients, asked, refusing, asksMost)
	from, n := a.crowd()
	most, each := crowdAtMost*float64(a.clients), crowdsAtMost*float64(a.clients)
	if crowds := a.crowds(each); len(crowds) > 1 {
		st.noteAt(crowds[1], lateClaim+"more than %.0f of %d clients came within %v, %v and %v after their member was gone; want that once at most: they should not come in step", each, a.clients, instant, shown(crowds[0].Sub(a.gone)), shown(crowds[1].Sub(a.gone)))
	} else if float64(n) > most {
		st.noteAt(from, lateClaim+"%d of %d clients came within %v, %v after their member was gone; want at most %.0f: they should not come in step", n, a.clients, instant, shown(from.Sub(a.gone)), most)
	}
	for _, name := range sorted(a.carried) {
		n, least := a.carried[name], leastPart*float64(a.clients)
		st.claimTiming(float64(n) >= least, "%s carries %d of %d streams; want at least %.0f: the two that are left share them", name, n, a.clients, least)
	}
	st.premise(a.written >= leastWrites, "%s was counted up %d times while the clients were refused; want at least %d: else there is nothing to miss", herdKey, a.written, leastWrites)
	st.claim(len(a.wrong) == 0, "what %d of %d clients saw is wrong: %s", len(a.wrong), a.clients, a.wrong.join("; ", 3))
	st.Note("while refused the clients asked %d times, later at most %d in %v; afterwards the members carry %v", asked, n, instant, a.carried)
}

// crowd is the instant in which most came, once they were mixed.
func (a arrivals) crowd() (from time.Time, most int) {
	later, first := a.later(), 0
	for i, at := range later {
		for at.Sub(later[first]) >= instant {
			first++
		}
		if n := i - first + 1; n > most {
			from, most = later[first], n
		}
	}
	return from, most
}

// crowds are the instants in which more came than most, once they were mixed, each apart from
// the one before.
func (a arrivals) crowds(most float64) (froms []time.Time) {
	later, first := a.later(), 0
	for i, at := range later {
		for at.Sub(later[first]) >= instant {
			first++
		}
		from := later[first]
		if float64(i-first+1) > most && (len(froms) == 0 || from.Sub(froms[len(froms)-1]) >= apart) {
			froms = append(froms, from)
		}
	}
	return froms
}

// later are the streams that began once they were mixed.
func (a arrivals) later() []time.Time {
	start, _ := slices.BinarySearchFunc(a.began, a.gone.Add(mixed), time.Time.Compare)
	return a.began[start:]
}
