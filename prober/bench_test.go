package prober

import (
	"fmt"
	"log/slog"
	"testing"
	"time"
)

// BenchmarkTurn is what one prober of five endpoints pays for one change at any of them: the
// cost that 2,000 probers of a process pay each. At steady state nobody pays it.
func BenchmarkTurn(b *testing.B) {
	j, now := newJudge(scaled(Config{})), time.Unix(1000, 0)
	var seen []sight
	for i := range 5 {
		seen = append(seen, sight{fmt.Sprintf("10.0.0.%d:2379", i), &condition{state: stateGood, since: now, proven: now, answered: now}})
	}
	bad := &condition{state: stateBad, kind: kindQuorum, since: now, from: now}
	good := seen[0].c
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		seen[0].c = good
		if i%2 == 0 {
			seen[0].c = bad
		}
		now = now.Add(time.Millisecond)
		j.rule(now, seen)
	}
}

// BenchmarkFlip is what one prober of five endpoints pays when one of them goes on being suspect
// for another reason, up to the snapshot that says so: as a member that is slow does all the time.
func BenchmarkFlip(b *testing.B) {
	now := time.Unix(1000, 0)
	p := &Prober{log: slog.New(slog.DiscardHandler)}
	p.newest.Store(&Snapshot{At: now})
	t := bench{Prober: p, judge: newJudge(scaled(Config{})), seats: make([]seat, 5)}
	var seen []sight
	for i := range 5 {
		seen = append(seen, sight{fmt.Sprintf("10.0.0.%d:2379", i), &condition{state: stateBad, kind: kindQuorum, reason: "no-quorum", since: now, from: now, proven: now, answered: now, leader: 1 << 60, term: 7}})
	}
	denies, settles := *seen[0].c, *seen[0].c
	settles.reason = "settling"
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		seen[0].c = &denies
		if i%2 == 0 {
			seen[0].c = &settles
		}
		now = now.Add(time.Millisecond)
		t.publish(now, t.judge.rule(now, seen), seen)
	}
}

// BenchmarkStep is what one probe pays for one answer, however many probers share it.
func BenchmarkStep(b *testing.B) {
	g, d := newGather(scaled(Config{}), true, func() float64 { return 0 }), detector{expire: time.Second}
	now := time.Unix(1000, 0)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(500 * time.Millisecond)
		for _, o := range g.tick(now) {
			if o.do == doCheck {
				g.done(o.id, outcome{result: resultAnswered, answer: answerOK}, now)
			}
		}
		d.step(&g.ev, now)
	}
}
