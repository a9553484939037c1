package history

import (
	"maps"
	"math"
	"slices"
	"time"
)

// CheckElections judges the leaderships of concurrency.Election. truth must cover the
// keys below each Election. The rules:
//
//   - Who was elected has a key that the store created at its fence.
//   - Nobody is elected while a key with a lower fence stands for good.
//   - From Elected to Resigned nobody with a higher fence is elected, if the leader's
//     session outlived its key: where it did not, the lease may have ended unnoticed
//     (see queue.exclusive). So reigns follow each other by fence.
//   - Hand-over. Where the leader resigned or learnt that its session had ended, or
//     nobody led, the next candidate is elected within bound; 0: not judged.
func CheckElections(reigns []Reign, truth Truth, bound time.Duration) []string {
	var bad findings
	byElection := make(map[string][]*stay)
	for i := range reigns {
		r := &reigns[i]
		byElection[r.Election] = append(byElection[r.Election], r.stay())
	}
	for _, name := range slices.Sorted(maps.Keys(byElection)) {
		q := newQueue("election "+name, "was elected", name, byElection[name], truth)
		q.sound(&bad)
		// A candidate does not look for its own key in the end, and nothing tells at
		// which revision it was elected: later than any key before its own was gone.
		q.turn(&bad, func(*stay) int64 { return math.MaxInt64 - 1 })
		q.exclusive(&bad)
		q.handOver(&bad, bound)
	}
	return bad.list()
}

func (r *Reign) stay() *stay {
	s := &stay{who: r.Leader, key: r.Key, fence: r.Fence, asked: r.Asked, began: r.Elected, ended: r.Resigned, released: r.Resigned != 0 && r.Error == "" && !r.Lost, lost: r.Lost}
	if r.Lost {
		s.ended = r.LostAt
	}
	return s
}
