package healthsvc

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestDeadlineFollowsTheRoundTrip(t *testing.T) {
	tests := []struct {
		name    string
		samples []time.Duration
		strikes int
		want    time.Duration
	}{
		{"nothing known", nil, 0, 150 * ms},
		{"LAN", []time.Duration{ms, ms, ms}, 0, 150 * ms},
		{"first sample of a slow path", []time.Duration{100 * ms}, 0, 300 * ms},
		{"slower than the ceiling", []time.Duration{3 * time.Second}, 0, 2 * time.Second},
		{"one miss", []time.Duration{ms}, 1, 150 * ms},
		{"two misses", []time.Duration{ms}, 2, 300 * ms},
		{"many misses", []time.Duration{ms}, 1 << 20, 2 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := patience{floor: 150 * ms}
			for _, s := range tt.samples {
				p.sample(s)
			}
			p.strikes = tt.strikes
			if got := p.deadline(); got != tt.want {
				t.Errorf("deadline() = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestDeadlineCanLearnAPathSlowerThanItself(t *testing.T) {
	p := patience{floor: 150 * ms}
	for range 100 {
		p.sample(ms)
	}
	const path = 700 * ms
	for polls := 0; p.deadline() < path; polls++ {
		if polls == 6 {
			t.Fatalf("after %d misses the deadline is %v, want more than the new round trip of %v", polls, p.deadline(), path)
		}
		p.strike()
	}
	p.sample(path)
	if got := p.deadline(); got < path/2 {
		t.Errorf("deadline() = %v after one sample of %v: the deviation should cover most of it", got, path)
	}
}
