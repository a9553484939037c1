package workload

import (
	"fmt"
	"slices"
	"time"
)

// CheckWatch compares what a watch delivered with what happened: every revision
// once, in order, with its own value. It returns one line for each violation, the
// first ten.
func CheckWatch(name string, got, want []Event) []string {
	var bad lines
	values := make(map[int64]string, len(want))
	for _, e := range want {
		values[e.Revision] = e.Value
	}
	seen := make(map[int64]bool, len(got))
	last := int64(0)
	for _, e := range got {
		value, happened := values[e.Revision]
		switch {
		case !happened:
			bad.add("watch %s delivered revision %d (%q), which never happened", name, e.Revision, e.Value)
		case seen[e.Revision]:
			bad.add("watch %s delivered revision %d twice", name, e.Revision)
		case e.Revision < last:
			bad.add("watch %s delivered revision %d after %d: out of order", name, e.Revision, last)
		case e.Value != value:
			bad.add("watch %s delivered revision %d with value %q, want %q", name, e.Revision, e.Value, value)
		}
		seen[e.Revision] = true
		last = max(last, e.Revision)
	}
	for _, e := range want {
		if !seen[e.Revision] {
			bad.add("watch %s never delivered revision %d (%q)", name, e.Revision, e.Value)
		}
	}
	return bad.all
}

// CheckOnce compares the Puts of a load with how often each was applied (by the
// store's history) and how often it reached a server: never more than once, and
// exactly once when it was acknowledged. arrived is nil where nobody counted; counts of
// other things than these Puts prove nothing, and are told.
func CheckOnce(puts []Op, applied, arrived map[string]int) []string {
	var bad lines
	acks, counted := 0, false
	for _, p := range puts {
		if n := applied[p.ID]; n > 1 {
			bad.add("put %s was applied %d times: a mutation was sent again", p.ID, n)
		}
		if n := arrived[p.ID]; n > 1 {
			bad.add("put %s reached servers %d times: a mutation was sent again", p.ID, n)
		}
		acked := !p.Ended.IsZero() && p.Err == nil
		if acked && applied[p.ID] == 0 {
			bad.add("put %s was acknowledged and is not in the history", p.ID)
		}
		if acked {
			acks++
		}
		counted = counted || arrived[p.ID] > 0
	}
	if arrived != nil && acks > 0 && !counted {
		bad.add("none of %d acknowledged puts was counted where it arrived: the servers' counts say nothing", acks)
	}
	return bad.all
}

// CheckReads looks for linearizable reads that went back in time: one that began
// after another call of the same load had returned must not see an older store.
func CheckReads(gets, puts []Op) []string {
	var bad lines
	done := slices.DeleteFunc(slices.Concat(gets, puts), func(o Op) bool { return o.Ended.IsZero() || o.Err != nil })
	slices.SortFunc(done, func(a, b Op) int { return a.Ended.Compare(b.Ended) })
	newest := make([]int64, len(done)) // highest revision among done[:i+1]
	for i, o := range done {
		newest[i] = o.Revision
		if i > 0 {
			newest[i] = max(newest[i], newest[i-1])
		}
	}
	for _, g := range gets {
		if g.Ended.IsZero() || g.Err != nil {
			continue
		}
		n, _ := slices.BinarySearchFunc(done, g.Began, func(o Op, t time.Time) int { return o.Ended.Compare(t) })
		if n > 0 && g.Revision < newest[n-1] {
			bad.add("get begun at %s saw revision %d, after %d had been seen: a read went back in time", g.Began.Format(clock), g.Revision, newest[n-1])
		}
	}
	return bad.all
}

// CheckLease says how a lease was lost, if it was.
func CheckLease(l LeaseRecord) []string {
	var bad lines
	if !l.ClosedAt.IsZero() {
		bad.add("lease %s (%x): its keepalive channel closed at %s; %s", l.Name, l.ID, l.ClosedAt.Format(clock), l.until(l.ClosedAt))
	}
	for _, ttl := range l.TTLs {
		if ttl.Remaining < 0 { // whole seconds: 0 is less than one left
			bad.add("lease %s (%x) was gone at %s; %s", l.Name, l.ID, ttl.At.Format(clock), l.until(ttl.At))
			break
		}
	}
	return bad.all
}

// until is what was known of a lease before a moment.
func (l LeaseRecord) until(at time.Time) string {
	text := "no keepalive had been answered"
	for _, answer := range l.Answers {
		if answer.Before(at) {
			text = "the last keepalive was answered at " + answer.Format(clock)
		}
	}
	seen := ""
	for _, ttl := range l.TTLs {
		if ttl.At.Before(at) && ttl.Remaining >= 0 {
			seen = fmt.Sprintf(", and %v or more were left at %s", ttl.Remaining, ttl.At.Format(clock))
		}
	}
	return text + seen
}

// RevokedEarly returns when a lease was found gone and how much of its life was left
// by then, by what an unaffected member had said last. No client can lose a lease that
// way: a server revoked it. (etcd does so when a leader that was stopped runs on: for
// it, all leases have expired meanwhile, and it proposes to revoke them in the moment
// in which it learns that another member leads.)
func RevokedEarly(l LeaseRecord) (gone time.Time, left time.Duration) {
	const grain = 500 * time.Millisecond // of looking
	for i, ttl := range l.TTLs {
		if ttl.Remaining >= 0 || i == 0 {
			continue
		}
		before := l.TTLs[i-1]
		if left = before.Remaining - ttl.At.Sub(before.At); left >= grain && (l.ClosedAt.IsZero() || l.ClosedAt.After(before.At)) {
			return ttl.At, left
		}
		break
	}
	return time.Time{}, 0
}

// clock is how lines show a time of day.
const clock = "15:04:05.000"

// lines keeps the first ten violations and counts the rest.
type lines struct {
	all  []string
	more int
}

func (l *lines) add(format string, args ...any) {
	const most = 10
	if len(l.all) < most {
		l.all = append(l.all, fmt.Sprintf(format, args...))
		return
	}
	l.more++
	l.all = append(l.all[:most], fmt.Sprintf("and %d more of the kind", l.more))
}
