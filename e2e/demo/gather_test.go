package main

import (
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
)

func TestRateIsThatOfTheLastSecond(t *testing.T) {
	var r rate
	start := time.Now()
	var gets, puts float64
	for i := range 30 { // two seconds of 100 Gets and 50 Puts a second, then nothing
		busy := min(i, 20)
		gets, puts = r.next(sample{start.Add(ms(100 * i)), 10 * busy, 5 * busy})
		if i == 20 && (gets != 100 || puts != 50) {
			t.Errorf("after two busy seconds %v and %v; want 100 and 50", gets, puts)
		}
	}
	if gets > 11 || puts > 6 {
		t.Errorf("0.9 s after the last call %v and %v; want about a tenth of before", gets, puts)
	}
	if g, p := new(rate).next(sample{start, 7, 7}); g != 0 || p != 0 {
		t.Errorf("one sample alone gives %v and %v; want no rate", g, p)
	}
}

func TestWatchIsOnItsNewestStream(t *testing.T) {
	open := []stream{{"a", "m1"}, {"b", "m2"}, {"", "m1"}, {"a", "m3"}}
	if got := carrier("a", open); got != "m3" {
		t.Errorf("watch a is on %q, want m3: the stream opened last", got)
	}
	if got := carrier("c", open); got != "" {
		t.Errorf("watch c is on %q, want nowhere: it has no stream", got)
	}
	if got := streamsOn("m1", open); got != 2 {
		t.Errorf("%d streams on m1, want 2: a watch and a keepalive", got)
	}
}

func TestShimsAreShownAsTheyAreHeard(t *testing.T) {
	for _, c := range []struct {
		news healthsvc.News
		want string
	}{
		{healthsvc.News{}, "no answer"},
		{healthsvc.News{Status: healthsvc.StatusServing}, "serving"},
		{healthsvc.News{Status: healthsvc.StatusServing, Missed: 1}, "serving"},
		{healthsvc.News{Status: healthsvc.StatusServing, Missed: 2}, "no answer"},
		{healthsvc.News{Status: healthsvc.StatusNotServing, Reason: healthsvc.ReasonNoQuorum}, "no-quorum"},
		{healthsvc.News{Status: healthsvc.StatusNotServing}, "not serving"},
		{healthsvc.News{Status: healthsvc.StatusAbsent, Missed: 0}, "there is none"},
	} {
		if got := shimWord(c.news).text; got != c.want {
			t.Errorf("%+v is shown as %q, want %q", c.news, got, c.want)
		}
	}
}
