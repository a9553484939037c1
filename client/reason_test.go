package client

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// A shim may say anything; what it says must not fill the client's memory, nor its metrics.
func TestMovesForAnyWordOfAShimAreCountedInOneRow(t *testing.T) {
	var l moveLog
	for i := range 1000 {
		l.add(Move{Class: "watch", Reason: fmt.Sprintf("word-%d", i)}, i == 0)
		l.add(Move{Class: "watch", Reason: "no-quorum"}, false)
	}
	got := l.all()
	if want := (MoveKind{"watch", "other"}); got[want] != 1000 || got[MoveKind{"watch", "no-quorum"}] != 1000 || len(got) != 2 {
		t.Errorf("after 1000 moves, each for another word, and 1000 for a known one there are %d rows (other: %d), want one row each", len(got), got[want])
	}
	if told := l.take(); len(told) != 1 || told[0].Reason != "word-0" {
		t.Errorf("the user is told %v, want the shim's own word", told)
	}
}

// Whoever adds a reason, here or to the packages that verdicts come from, finds out that it is
// to be counted.
func TestEveryReasonOfOursIsCountedByItsName(t *testing.T) {
	for _, file := range []string{"config.go", "../prober/reason.go", "../healthsvc/reason.go"} {
		n := 0
		for name, reason := range reasonsIn(t, file) {
			n++
			if got := countedReason(reason); got != reason {
				t.Errorf("%s: moves for %s are counted as %q, want %q", file, name, got, reason)
			}
		}
		if n < 4 {
			t.Errorf("%s: %d reasons found, want all", file, n)
		}
	}
}

// reasonsIn returns the constants of a file whose name begins with Reason and that are spelt out.
func reasonsIn(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
			if out[spec.Names[0].Name], err = strconv.Unquote(lit.Value); err != nil {
				t.Fatal(err)
			}
		}
		return true
	})
	return out
}
