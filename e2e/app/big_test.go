//go:build linux

package app

import (
	"testing"

	"github.com/quorumwise/quorumwise/e2e/workload"
)

// A transaction that nobody can count where it arrives could arrive twice.
func TestBigTransactionsAreCountedByTheirID(t *testing.T) {
	b := &big{site: &site{cfg: Config{Name: "ours"}}}
	for _, id := range []string{"ours-big-1", "ours-big-2"} {
		op, puts := b.next()
		counted := 0
		for i, v := range op.Values {
			if string(puts[i].ValueBytes()) != v || string(puts[i].KeyBytes()) != op.Keys[i] {
				t.Errorf("%s: put %d is not what is filed", id, i)
			}
			if workload.Identifies(v) {
				counted++
			}
		}
		if op.ID != id || op.Values[0] != id || counted != 1 || len(puts) != bigKeys+1 {
			t.Errorf("%s: id %s, %d puts, %d of them counted where they arrive; want its ID to be, and %d ballast", id, op.ID, len(puts), counted, bigKeys)
		}
	}
}
