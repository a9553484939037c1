//go:build linux

package suites

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// remarks are what a step would have said.
func remarks(say func(*Stage)) (all []string) {
	st := &Stage{Log: slog.New(slog.DiscardHandler)}
	say(st)
	for _, n := range st.notes {
		all = append(all, n.text)
	}
	return all
}

// found demands that just one claim is broken, late or not shown, and that it says what it
// should; or that none is, where want is empty.
func found(t *testing.T, said []string, want string) {
	t.Helper()
	bad := slices.DeleteFunc(slices.Clone(said), func(text string) bool {
		return !slices.ContainsFunc([]string{brokenClaim, lateClaim, notShown}, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
	})
	if want == "" && len(bad) > 0 {
		t.Errorf("%q; want no claim broken", bad)
	}
	if want != "" && (len(bad) != 1 || !strings.Contains(bad[0], want)) {
		t.Errorf("%q; want one broken claim, with %q", bad, want)
	}
}

// spread are n moments with the same time between them.
func spread(n int, from, to time.Time) (all []time.Time) {
	for i := range n {
		all = append(all, from.Add(to.Sub(from)*time.Duration(i)/time.Duration(n)))
	}
	return all
}

func TestArrivalsFindWhatIsPlanted(t *testing.T) {
	const clients = 100
	gone := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	freed := gone.Add(refusing)
	again := func(a *arrivals, n int, at time.Duration) { // and no others within 100 ms
		at0 := gone.Add(at)
		a.began = slices.DeleteFunc(a.began, func(b time.Time) bool { return b.Sub(at0).Abs() < 100*time.Millisecond })
		a.began = append(a.began, spread(n, at0, at0.Add(99*time.Millisecond))...)
		slices.SortFunc(a.began, time.Time.Compare)
	}
	often := func(each int) []time.Time { // most of it before they are mixed
		return append(spread((each-10)*clients, gone.Add(time.Millisecond), gone.Add(mixed)), spread(10*clients, gone.Add(mixed), freed)...)
	}
	for _, c := range []struct {
		name  string
		plant func(*arrivals)
		want  string
	}{
		{"spread", func(*arrivals) {}, ""},
		{"all ask at once when their member goes", func(a *arrivals) { again(a, clients, 0) }, ""},
		{"20 times each", func(a *arrivals) { a.began = often(20) }, ""},
		{"21 times each", func(a *arrivals) { a.began = often(21) }, "opened watch streams 2100 times"},
		{"70 to 30", func(a *arrivals) { a.carried = map[string]int{"m1": 70, "m3": 30} }, ""},
		{"71 to 29", func(a *arrivals) { a.carried = map[string]int{"m1": 71, "m3": 29} }, lateClaim + "m3 carries 29 of 100"},
		{"all on one", func(a *arrivals) { a.carried = map[string]int{"m1": 0, "m3": 100} }, lateClaim + "m1 carries 0 of 100"},
		{"two fifths at a time", func(a *arrivals) { again(a, clients*2/5, 5*time.Second) }, ""},
		{"in step while refused", func(a *arrivals) { again(a, clients*2/5+1, 5*time.Second) }, lateClaim + "41 of 100 clients"},
		{"in step when accepted again", func(a *arrivals) { again(a, clients, refusing+time.Second) }, lateClaim + "100 of 100 clients"},
		{"a fifth twice", func(a *arrivals) {
			again(a, clients/5, 5*time.Second)
			again(a, clients/5, 7*time.Second)
		}, ""},
		{"in step as far as a fifth, wave by wave", func(a *arrivals) {
			again(a, clients/5+1, 5*time.Second)
			again(a, clients/5+1, 7*time.Second)
		}, lateClaim + "more than 20 of 100 clients came within 100ms, 5s and 7s after"},
		{"one crowd, and who was behind it", func(a *arrivals) {
			again(a, clients/5+1, 5*time.Second)
			again(a, clients/5+1, 5*time.Second+900*time.Millisecond)
		}, ""},
		{"nothing was written meanwhile", func(a *arrivals) { a.written = 0 }, notShown + herdKey + " was counted up 0 times"},
		{"hardly anything was written meanwhile", func(a *arrivals) { a.written = 24 }, notShown + herdKey + " was counted up 24 times"},
		{"an event came twice", func(a *arrivals) {
			h := herdOf(clients)
			for _, v := range []int64{1, 2, 2, 3} {
				h.grazers[7].take(comes(v).Events[0])
			}
			a.wrong = h.wrong()
		}, brokenClaim + "what 1 of 100 clients saw is wrong: client 7: version 2 came, want 3"},
		{"events were left out while it was refused", func(a *arrivals) {
			h := herdOf(clients)
			for _, g := range h.grazers {
				g.take(comes(1).Events[0])
				g.take(comes(51).Events[0])
			}
			a.wrong = h.wrong()
		}, brokenClaim + "what 100 of 100 clients saw is wrong: client 0: version 51 came, want 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := arrivals{clients: clients, gone: gone, freed: freed, written: 50, carried: map[string]int{"m1": 52, "m3": 48}}
			a.began = spread(6*clients, gone.Add(time.Millisecond), freed.Add(2*time.Second)) // five in 100 ms
			c.plant(&a)
			found(t, remarks(func(st *Stage) { st.judgeArrivals(a) }), c.want)
		})
	}
}

// The first of two crowds makes the process stand still itself: it is the second that the machine
// may be the reason of.
func TestArrivalsInStepAreDatedAtTheSecondCrowd(t *testing.T) {
	gone := time.Now().Add(-time.Minute)
	first, second := gone.Add(5*time.Second), gone.Add(8*time.Second)
	a := arrivals{clients: 10, gone: gone, freed: gone.Add(refusing), written: 50}
	for _, crowd := range []time.Time{first, second} {
		a.began = append(a.began, spread(10, crowd, crowd.Add(50*time.Millisecond))...)
	}
	st := &Stage{Log: slog.New(slog.DiscardHandler)}
	st.judgeArrivals(a)
	if i := slices.IndexFunc(st.notes, func(n note) bool { return strings.Contains(n.text, "in step") }); i < 0 || !st.notes[i].at.Equal(second) {
		t.Errorf("%+v; want the claim of those who came in step, of %v", st.notes, second)
	}
}

// A remark that is late for something that happened earlier says so: it is then that the
// machine may have stood still.
func TestArrivalsInStepAreDatedWhenTheyCame(t *testing.T) {
	gone := time.Now().Add(-time.Minute)
	crowd := gone.Add(5 * time.Second)
	a := arrivals{clients: 10, gone: gone, freed: gone.Add(refusing), written: 50, began: spread(10, crowd, crowd.Add(50*time.Millisecond))}
	st := &Stage{Log: slog.New(slog.DiscardHandler)}
	st.judgeArrivals(a)
	for _, n := range st.notes {
		if strings.HasPrefix(n.text, lateClaim) {
			if !n.at.Equal(crowd) {
				t.Errorf("%q is dated %v; want %v", n.text, n.at, crowd)
			}
			return
		}
	}
	t.Error("no claim was late; want the one of those who came in step")
}

func herdOf(clients int) *herd {
	h := new(herd)
	for range clients {
		h.grazers = append(h.grazers, new(grazer))
	}
	return h
}

func TestHerdIsCaughtUpWhenTheLastClientIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := herdOf(3)
		for v := range int64(4) {
			for i, g := range h.grazers {
				if i != 1 || v < 3 {
					g.take(comes(v + 1).Events[0])
				}
			}
		}
		if err := h.caughtUp(t.Context(), 3, time.Second); err != nil {
			t.Errorf("%v; want none: all have seen version 3", err)
		}
		if err := h.caughtUp(t.Context(), 4, time.Second); err == nil || !strings.Contains(err.Error(), "1 of 3 clients have not seen version 4") {
			t.Errorf("%v; want that one has not seen version 4", err)
		}
		go func() {
			time.Sleep(9 * time.Second)
			h.grazers[1].take(comes(4).Events[0])
		}()
		if err := h.caughtUp(t.Context(), 4, 10*time.Second); err != nil {
			t.Errorf("%v; want none: the last one sees it in time", err)
		}
	})
}
