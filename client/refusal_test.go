package client

import (
	"testing"
	"time"
)

func TestRefusedWatchesWaitLongerAndLongerAndNotForEver(t *testing.T) {
	var r refusals
	now := time.Unix(1_000_000, 0)
	for _, tt := range []struct {
		after  time.Duration // since the one before
		random float64
		want   time.Duration
		again  bool
	}{
		{0, 0, 50 * time.Millisecond, true},
		{0, 1, 150 * time.Millisecond, true},
		{400 * time.Millisecond, 0.5, 400 * time.Millisecond, true},
		{400 * time.Millisecond, 0, 400 * time.Millisecond, true},
		{9 * time.Second, 0, time.Second, true},
		{0, 1, 3 * time.Second, true},
		{9 * time.Second, 0.5, refusalWaitMax, true},
		{9 * time.Second, 0.5, refusalWaitMax, true},
		{9 * time.Second, 0.5, refusalWaitMax, true},
		{9 * time.Second, 0.5, refusalWaitMax, true},
		{9 * time.Second, 0.5, refusalWaitMax, true},
		{9 * time.Second, 0.5, refusalWaitMax, false},
		{9 * time.Second, 0.5, refusalWaitMax, false},
		// Those who were refused have gone: this is another time.
		{refusalRow + 1, 0.5, refusalWait, true},
	} {
		now = now.Add(tt.after)
		if got, again := r.refused(now, tt.random); got != tt.want || again != tt.again {
			t.Errorf("%v later, random %v: wait %v, again %v; want %v, %v", tt.after, tt.random, got, again, tt.want, tt.again)
		}
	}
	r.accepted()
	if got, again := r.refused(now, 0.5); got != refusalWait || !again {
		t.Errorf("after one was accepted: wait %v, again %v; want %v: the row is over", got, again, refusalWait)
	}
}
