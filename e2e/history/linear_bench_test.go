package history

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// What one scenario's histories cost: about 20,000 operations, by how they are spread.
func BenchmarkLinearizable(b *testing.B) {
	for _, c := range []crowd{
		{groups: 120, callers: 5, ops: 34, keys: 3, unknown: 0.05},
		{groups: 120, callers: 5, ops: 34, keys: 3, unknown: 0.3},
		{groups: 12, callers: 20, ops: 85, keys: 3, unknown: 0.1},
		{groups: 1, callers: 8, ops: 2500, keys: 3, unknown: 0.02},
	} {
		b.Run(fmt.Sprintf("groups=%d/callers=%d/unknown=%v", c.groups, c.callers, c.unknown), func(b *testing.B) {
			ops, truth := c.play(rand.New(rand.NewPCG(1, 2)))
			b.ReportMetric(float64(len(ops)), "ops")
			for b.Loop() {
				if got := Linearizable(ops, truth, time.Minute); !got.Decided || len(got.Violations) > 0 {
					b.Fatalf("decided %v, %q", got.Decided, got.Violations)
				}
			}
		})
	}
}

// Finding and drawing one wrong answer among many.
func BenchmarkIllustration(b *testing.B) {
	ops, truth := crowd{groups: 1, callers: 5, ops: 800, keys: 3, unknown: 0.05}.play(rand.New(rand.NewPCG(1, 2)))
	for i := range ops[2000:] {
		if op := &ops[2000+i]; op.finds() {
			op.Found[0] = "wrong"
			break
		}
	}
	for b.Loop() {
		if got := Linearizable(ops, truth, time.Minute); len(got.Violations) == 0 {
			b.Fatal("the wrong answer was not found")
		}
	}
}

// A watch that has seen everything.
func BenchmarkCheckStream(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	_, truth := crowd{groups: 20, callers: 5, ops: 200, keys: 3}.play(rng)
	s := watched(rng, Stream{Name: "w", Key: "g", End: "h", From: 2, Puts: true, Deletes: true, PrevKV: true}, truth)
	b.ReportMetric(float64(len(truth.Changes)), "changes")
	for b.Loop() {
		if bad := CheckStream(s, truth); len(bad) > 0 {
			b.Fatal(bad)
		}
	}
}
