//go:build linux

package realetcd

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestTrackPutsStatesAndWordsToTheirOwnMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
		until := func(ms int) { time.Sleep(time.Until(at(ms))) }
		tr := &track{member: "m1"}

		tr.hear(ShimServing) // before the first sight
		tr.see(sighting{at(0), Quorum, 7, 2})
		tr.see(sighting{at(100), Quorum, 7, 2}) // nothing new
		until(300)
		tr.hear("not-serving (no-quorum)") // while a question that began at 200 waits
		until(450)
		tr.see(sighting{at(200), NoQuorum, 7, 2})
		until(600)
		tr.hear("not-serving (no-quorum)")      // nothing new
		tr.see(sighting{at(600), Quorum, 7, 3}) // another term
		until(900)
		tr.hear(ShimServing)
		until(1000)
		tr.end()

		want := []Sample{
			{at(0), "m1", Quorum, 7, 2, ShimServing},
			{at(200), "m1", NoQuorum, 7, 2, ShimServing},
			{at(300), "m1", NoQuorum, 7, 2, "not-serving (no-quorum)"},
			{at(600), "m1", Quorum, 7, 3, "not-serving (no-quorum)"},
			{at(900), "m1", Quorum, 7, 3, ShimServing},
			{at(1000), "m1", Quorum, 7, 3, ShimServing},
		}
		if got := tr.samples(); !slices.Equal(got, want) {
			t.Errorf("samples %s; want %s: a judge would blame the wrong moment", states(got), states(want))
		}
	})
}

func TestTrackWithoutASightHasNoSample(t *testing.T) {
	tr := &track{member: "m1"}
	tr.hear(ShimServing)
	tr.end()
	if got := tr.samples(); len(got) > 0 {
		t.Errorf("samples %v; want none", got)
	}
}
