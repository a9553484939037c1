package scenario

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/workload"
)

func TestClusterStoodStillWhereNoEventCameForTooLong(t *testing.T) {
	const most = int(stillMost / time.Millisecond)
	events := func(at ...int) (all []workload.Event) {
		for _, n := range at {
			all = append(all, workload.Event{At: ms(n)})
		}
		return all
	}
	for _, tc := range []struct {
		name string
		at   []int // of the events, from 0 to 10000
		want spans
	}{
		{"never", []int{3000, 6000, 9000}, nil},
		{"as long as may be", []int{1000, 1000 + most, 7000}, nil},
		{"in between", []int{1000, 1002 + most, 7000}, spans{{ms(1000), ms(1002 + most)}}},
		{"at both ends", []int{4000, 6000, 15000}, spans{{ms(0), ms(4000)}, {ms(6000), ms(10000)}}},
		{"always", nil, spans{{ms(0), ms(10000)}}},
	} {
		if got := standstills(events(tc.at...), ms(0), ms(10000)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v; want %v", tc.name, got, tc.want)
		}
	}
	stood := spans{{ms(0), ms(4000)}, {ms(6000), ms(10000)}}
	if got, want := stood.between(ms(3000), ms(7500)), 2500*time.Millisecond; got != want {
		t.Errorf("from 3 s to 7.5 s it stood still for %v; want %v", got, want)
	}
}
