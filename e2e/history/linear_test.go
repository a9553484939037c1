package history

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// dice are random numbers whose seed a failure prints.
func dice(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

func TestHistoryOfACorrectStoreIsLinearizable(t *testing.T) {
	rng := dice(t)
	for range 60 {
		c := crowd{groups: 1 + rng.IntN(6), callers: 1 + rng.IntN(6), ops: 30, keys: 1 + rng.IntN(4), unknown: 0.4 * rng.Float64(), refused: 0.1}
		ops, truth := c.play(rng)
		got := Linearizable(ops, truth, time.Minute)
		if !got.Decided || len(got.Violations) > 0 || got.Illustration != nil {
			t.Fatalf("%+v: decided %v, violations %q, %d bytes of illustration; want a clean history passed, or every run cries wolf",
				c, got.Decided, got.Violations, len(got.Illustration))
		}
		if bad := CheckOnce(ops, truth, nil); len(bad) > 0 {
			t.Fatalf("%+v: %q, want a clean history passed", c, bad)
		}
	}
}

func TestSearchAgreesWithTheOracleThatTriesEverything(t *testing.T) {
	wrong := 0
	rng := dice(t)
	for n := range 1500 {
		c := crowd{groups: 1, callers: 3, ops: 2, keys: 2, unknown: 0.4}
		ops, truth := c.play(rng)
		for range n % 3 * 2 {
			garble(rng, ops)
		}
		want := explained(ops)
		free := Linearizable(ops, Truth{}, 0)
		if got := len(free.Violations) == 0; got != want {
			t.Fatalf("linearizable without the truth: %v, the oracle says %v\n%s%q", got, want, listed(ops), free.Violations)
		}
		helped := Linearizable(ops, truth, 0)
		if len(helped.Violations) == 0 && !want {
			t.Fatalf("the truth made the search accept what no order explains:\n%s", listed(ops))
		}
		if n%3 == 0 && len(helped.Violations) > 0 {
			t.Fatalf("clean history: %q\n%s", helped.Violations, listed(ops))
		}
		if !want {
			wrong++
		}
	}
	if wrong < 200 || wrong > 1300 {
		t.Errorf("%d of 1500 histories were wrong: the test compares too little of one kind", wrong)
	}
}

// garble changes one answer in whatever way.
func garble(rng *rand.Rand, ops []Op) {
	op := &ops[rng.IntN(len(ops))]
	switch rng.IntN(4) {
	case 0:
		if len(op.Found) > 0 {
			other := ops[rng.IntN(len(ops))]
			op.Found[0] = ""
			if len(other.Values) > 0 {
				op.Found[0] = other.Values[0]
			}
		}
	case 1:
		op.Revision = max(1, op.Revision+rng.Int64N(5)-2)
	case 2:
		d := time.Duration(rng.Int64N(int64(6 * time.Millisecond)))
		op.Call, op.Return = op.Call+d, op.Return+d
	case 3:
		if op.Kind == Swap && op.Outcome == Done {
			op.Swapped = !op.Swapped
			op.Found = slices.Repeat([]string{""}, len(op.Keys))
		}
	}
}

func listed(ops []Op) string {
	var b strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&b, "%+v\n", op)
	}
	return b.String()
}

// The two judges, the search and the walk along the store's own history, do not know
// of each other.
func TestWhatTheSearchRejectsTheWalkExplains(t *testing.T) {
	rejected := 0
	rng := dice(t)
	for range 400 {
		ops, truth := crowd{groups: 1, callers: 4, ops: 8, keys: 3, unknown: 0.2}.play(rng)
		garble(rng, ops)
		for _, line := range Linearizable(ops, truth, 0).Violations {
			rejected++
			if strings.Contains(line, "no order of its") {
				t.Fatalf("%q: want the operation named that is wrong\n%s", line, listed(ops))
			}
		}
	}
	if rejected < 50 {
		t.Errorf("only %d violations in 400 garbled histories: the test compares too little", rejected)
	}
}

// plant is a small history to spoil: one group, two callers, all known.
func plant() ([]Op, Truth) {
	ms := time.Millisecond
	op := func(caller int, id string, kind Kind, from, to time.Duration, revision int64) Op {
		return Op{Caller: caller, Group: "g", ID: id, Kind: kind, Keys: []string{"k"}, Call: from * ms, Return: to * ms, Outcome: Done, Revision: revision}
	}
	put := op(1, "a", Put, 0, 10, 5)
	put.Values = []string{"a/0"}
	pair := op(1, "b", Put, 20, 30, 6)
	pair.Keys, pair.Values = []string{"k", "l"}, []string{"b/0", "b/1"}
	get := op(2, "c", Get, 40, 50, 7)
	get.Keys, get.Found = []string{"k", "l"}, []string{"b/0", "b/1"}
	swap := op(1, "d", Swap, 60, 70, 8)
	swap.Expect, swap.Values, swap.Swapped = "b/0", []string{"d/0"}, true
	missed := op(2, "e", Swap, 80, 90, 8)
	missed.Expect, missed.Values, missed.Found = "b/0", []string{"e/0"}, []string{"d/0"}
	gone := op(1, "f", Delete, 100, 110, 9)
	none := op(2, "h", Delete, 120, 130, 9)
	truth := Truth{From: 1, Upto: 12, Changes: []Change{
		{Revision: 5, Key: "k", Value: "a/0", Create: 5, Version: 1},
		{Revision: 6, Key: "k", Value: "b/0", Create: 5, Version: 2},
		{Revision: 6, Key: "l", Value: "b/1", Create: 6, Version: 1},
		{Revision: 8, Key: "k", Value: "d/0", Create: 5, Version: 3},
		{Revision: 9, Key: "k", Deleted: true},
	}}
	return []Op{put, pair, get, swap, missed, gone, none}, truth
}

// late is an operation that gets no answer, after all others.
func late(id string, kind Kind) Op {
	op := Op{Caller: 3, Group: "g", ID: id, Kind: kind, Keys: []string{"l"}, Outcome: Unknown, Error: "deadline exceeded", Call: 140 * time.Millisecond, Return: 150 * time.Millisecond}
	if op.writes() {
		op.Values = []string{id + "/0"}
	}
	return op
}

func TestLinearizableCatchesPlantedViolations(t *testing.T) {
	const put, pair, get, swap, missed, gone, none = 0, 1, 2, 3, 4, 5, 6
	type history struct {
		ops   []Op
		truth Truth
	}
	for _, c := range []struct {
		name  string
		spoil func(*history)
		want  string // in one of the lines; "": it is no violation
	}{
		{"nothing", func(h *history) {}, ""},
		{"a read finds a value that was overwritten before it began", func(h *history) { h.ops[get].Found[0] = "a/0" },
			`group g: get "c" of caller 2 found "a/0" in "k" at revision 7, where the store held "b/0"`},
		{"a read finds half of a transaction", func(h *history) { h.ops[get].Found[1] = "" },
			`group g: get "c" of caller 2 found nothing in "l" at revision 7, where the store held "b/1"`},
		{"a read answers for an older store than one before it", func(h *history) { h.ops[get].Revision, h.ops[get].Found = 5, []string{"a/0", ""} },
			`group g: get "c" of caller 2, called at 40ms, has revision 5, though put "b" of caller 1 had returned at 30ms with revision 6: it went back in time`},
		{"an acknowledged put is lost", func(h *history) { h.truth.Changes = h.truth.Changes[1:] },
			`group g: put "a" of caller 1 was acknowledged at revision 5 and is not in the store's history`},
		{"an acknowledged put has another revision in the store", func(h *history) { h.truth.Changes[0].Revision = 4 },
			`group g: put "a" of caller 1 was acknowledged at revision 5 and stands in the store's history at revision 4`},
		{"a put is applied twice", func(h *history) {
			h.truth.Changes = append(h.truth.Changes, Change{Revision: 11, Key: "k", Value: "a/0", Create: 11, Version: 1})
		}, `group g: what put "a" of caller 1 wrote stands at revisions [5 11]: it was applied twice, or not as one transaction`},
		{"a transaction is split", func(h *history) { h.truth.Changes[2].Revision = 7 },
			`group g: what put "b" of caller 1 wrote stands at revisions [6 7]: it was applied twice, or not as one transaction`},
		{"a transaction is applied in part", func(h *history) { h.truth.Changes = slices.Delete(h.truth.Changes, 2, 3) },
			`group g: revision 6 wrote ["k"], a part of the keys ["k" "l"] of put "b" of caller 1`},
		{"a put lands on another key", func(h *history) { h.truth.Changes[0].Key = "l" },
			`group g: revision 5 wrote "a/0" to "l", where put "a" of caller 1 did not want it`},
		{"two operations share a revision", func(h *history) { h.truth.Changes[0].Revision = 6 },
			`group g: revision 6 holds writes of put "a" of caller 1 and of put "b" of caller 1`},
		{"a swap succeeds on another value than it expects", func(h *history) { h.ops[swap].Expect = "a/0" },
			`group g: swap "d" of caller 1 swapped at revision 8 though "k" held "b/0", not "a/0"`},
		{"a swap fails though it finds what it expects", func(h *history) { h.ops[missed].Expect = "d/0" },
			`group g: swap "e" of caller 2 did not swap at revision 8 though it found "d/0" in "k", as it expected`},
		{"a swap is told that it failed and happens", func(h *history) {
			h.truth.Changes = append(h.truth.Changes, Change{Revision: 11, Key: "k", Value: "e/0", Create: 11, Version: 1})
		}, `group g: swap "e" of caller 2 was told that it did not swap and stands in the store's history at revision 11`},
		{"a refused put happens", func(h *history) { h.ops[put].Outcome, h.ops[put].Error = Refused, "no space" },
			`group g: put "a" of caller 1 was refused (no space) and stands in the store's history at revision 5`},
		{"a refused put happens at the very end", func(h *history) {
			op := late("z", Put)
			op.Outcome = Refused
			h.ops = append(h.ops, op)
			h.truth.Changes = append(h.truth.Changes, Change{Revision: 12, Key: "l", Value: "z/0", Create: 6, Version: 2})
		}, `group g: put "z" of caller 3 was refused (deadline exceeded) and stands in the store's history at revision 12`},
		{"an acknowledged delete does nothing", func(h *history) { h.truth.Changes = h.truth.Changes[:4] },
			`group g: delete "f" of caller 1 was acknowledged at revision 9, where the store still held "d/0" in "k"`},
		{"a key vanishes", func(h *history) {
			h.truth.Changes = append(h.truth.Changes, Change{Revision: 11, Key: "l", Deleted: true})
		}, `group g: revision 11 deleted ["l"], which no operation can have done`},
		{"a value appears that nobody wrote", func(h *history) {
			h.truth.Changes = append(h.truth.Changes, Change{Revision: 11, Key: "l", Value: "?", Create: 6, Version: 2})
		}, `group g: revision 11 left "?" in "l", which no operation wrote`},
		{"a deletion without an answer explains a vanished key", func(h *history) {
			h.ops = append(h.ops, late("z", Delete))
			h.truth.Changes = append(h.truth.Changes, Change{Revision: 11, Key: "l", Deleted: true})
		}, ""},
		{"a deletion without an answer cannot explain two", func(h *history) {
			h.ops = append(h.ops, late("z", Delete), late("y", Put))
			h.truth.Changes = append(h.truth.Changes, Change{Revision: 10, Key: "l", Deleted: true}, Change{Revision: 11, Key: "l", Value: "y/0", Create: 11, Version: 1}, Change{Revision: 12, Key: "l", Deleted: true})
		}, `group g: revision 12 deleted ["l"], which no operation can have done`},
		{"a deletion without an answer happened before its call", func(h *history) {
			h.ops = append(h.ops, late("z", Delete))
			h.truth.Changes[4] = Change{Revision: 8, Key: "l", Deleted: true}
			h.truth.Changes[3].Revision = 7
		}, `group g: revision 8 deleted ["l"], which no operation can have done`},
		{"a put without an answer happens later", func(h *history) {
			h.ops = append(h.ops, late("z", Put))
			h.truth.Changes = append(h.truth.Changes, Change{Revision: 12, Key: "l", Value: "z/0", Create: 6, Version: 2})
		}, ""},
		{"a put without an answer never happens", func(h *history) { h.ops = append(h.ops, late("z", Put)) }, ""},
		{"a put without an answer stands before its call", func(h *history) {
			h.ops = append(h.ops, late("z", Put))
			h.truth.Changes = slices.Insert(h.truth.Changes, 3, Change{Revision: 7, Key: "l", Value: "z/0", Create: 6, Version: 2})
			h.ops[get].Found[1] = "z/0"
		}, `group g: put "z" of caller 3, called at 140ms, has revision 7, though delete "f" of caller 1 had returned at 110ms with revision 9: it went back in time`},
		{"a swap without an answer overwrites what it did not expect", func(h *history) {
			op := late("z", Swap)
			op.Expect = "other"
			h.ops = append(h.ops, op)
			h.truth.Changes = append(h.truth.Changes, Change{Revision: 12, Key: "l", Value: "z/0", Create: 6, Version: 2})
		}, `group g: swap "z" of caller 3 swapped at revision 12 though "l" held "b/1", not "other"`},
		{"two deletions at one revision, the later one first", func(h *history) {
			h.ops[gone].Call, h.ops[gone].Return = h.ops[none].Call, h.ops[none].Return
		}, ""},
		{"the truth ends too early", func(h *history) { h.truth.Upto = 8 },
			`group g: delete "f" of caller 1 was answered at revision 9, outside the store's history that is known, 1 to 8`},
		{"a value is written by two", func(h *history) { h.ops[swap].ID, h.ops[swap].Values[0] = "a", "a/0" },
			`group g: value "a/0" is written by put "a" of caller 1 and by swap "a" of caller 1: values must be unique`},
		{"a key is in two groups", func(h *history) { h.ops[put].Group = "f" },
			`touches key "k" of group f: groups must not share keys`},
		{"a record is malformed", func(h *history) { h.ops[get].Found = nil },
			`group g: the record of get "c" of caller 2 cannot be judged: 0 values found for 2 keys`},
		{"a record has no outcome", func(h *history) { h.ops[get].Outcome = "" },
			`group g: the record of get "c" of caller 2 cannot be judged: outcome "" is none of done, refused, unknown`},
		{"a record ends before it begins", func(h *history) { h.ops[get].Call = time.Hour },
			`group g: the record of get "c" of caller 2 cannot be judged: it returned at 50ms, before its call at 1h0m0s`},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			var h history
			h.ops, h.truth = plant()
			c.spoil(&h)
			got := Linearizable(h.ops, h.truth, time.Minute)
			if !got.Decided {
				t.Error("undecided, want seven operations decided in a minute")
			}
			judge(t, got.Violations, c.want)
		})
	}
}

// judge fails unless the violations hold the wanted one; "" wants none.
func judge(t *testing.T, got []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("got %q, want none: it is no violation", got)
	case want != "" && !slices.ContainsFunc(got, func(l string) bool { return strings.Contains(l, want) }):
		t.Errorf("got %q\nwant a line with %q: the planted violation must be caught and named", got, want)
	}
	judgeLines(t, got)
}

// judgeLines fails unless there are ten lines at most, each of them one.
func judgeLines(t *testing.T, got []string) {
	t.Helper()
	for _, line := range got {
		if strings.ContainsAny(line, "\n\r") {
			t.Errorf("%q is more than one line", line)
		}
	}
	if len(got) > most {
		t.Errorf("%d lines, want at most %d", len(got), most)
	}
}

func TestAnySpoiltHistoryIsCaught(t *testing.T) {
	rng := dice(t)
	caught := make(map[string]int)
	ways := []string{"drop", "repeat", "split", "reorder", "refuse", "misread", "mislead"}
	for n := 0; n < 400 || len(caught) < len(ways); n++ { // chance may leave out a rare one for long
		if n == 10_000 {
			t.Fatalf("caught %v, want all of %q tried", caught, ways)
		}
		ops, truth := crowd{groups: 2, callers: 3, ops: 8, keys: 2, unknown: 0.2}.play(rng)
		op := &ops[rng.IntN(len(ops))]
		at := slices.IndexFunc(truth.Changes, func(c Change) bool { return op.writes() && c.Value == op.Values[0] })
		acked := op.Outcome == Done && at >= 0
		what := ways[rng.IntN(len(ways))]
		switch {
		case what == "drop" && acked:
			truth.Changes = slices.DeleteFunc(truth.Changes, func(c Change) bool { return c.Revision == op.Revision })
		case what == "repeat" && at >= 0:
			truth.Upto++
			again := truth.Changes[at]
			again.Revision = truth.Upto
			truth.Changes = append(truth.Changes, again)
		case what == "split" && at >= 0 && len(op.Keys) > 1:
			truth.Upto++
			half := truth.Changes[at]
			half.Revision = truth.Upto
			truth.Changes = append(slices.Delete(truth.Changes, at, at+1), half)
		case what == "reorder" && acked:
			i := slices.IndexFunc(ops, func(o Op) bool {
				return o.Outcome == Done && o.Kind == Put && o.Group == op.Group && o.Revision != op.Revision
			})
			if i < 0 {
				continue
			}
			op.Revision, ops[i].Revision = ops[i].Revision, op.Revision
		case what == "refuse" && at >= 0:
			op.Outcome = Refused
		case what == "misread" && op.finds():
			op.Found[rng.IntN(len(op.Found))] += "?"
		case what == "mislead" && op.Kind == Swap && op.Outcome == Done:
			op.Swapped = !op.Swapped
			op.Found = slices.Repeat([]string{op.Expect + "?"}, len(op.Keys))
		default:
			continue
		}
		if got := Linearizable(ops, truth, time.Minute); len(got.Violations) == 0 || got.Illustration == nil {
			t.Fatalf("%s of %+v: %q, %d bytes of illustration, want it caught and drawn\n%s%+v", what, *op, got.Violations, len(got.Illustration), listed(ops), truth)
		}
		caught[what]++
	}
}

func TestSearchAloneRejectsWhatNoOrderExplains(t *testing.T) {
	ops, _ := plant()
	ops[2].Found[0] = "a/0"
	got := Linearizable(ops, Truth{}, 0)
	judge(t, got.Violations, "group g: no order of its 7 operations explains every answer")
	if !bytes.Contains(got.Illustration, []byte("b/1")) {
		t.Error("the illustration does not show the values")
	}
}

func TestIllustrationShowsOperationsAndViolation(t *testing.T) {
	ops, truth := plant()
	ops[2].Found[0] = "a/0"
	got := Linearizable(ops, truth, 0)
	for _, want := range []string{"<html", "put k := ", `if k = \"b/0\" put k := \"e/0\": no, found k = \"d/0\" @8`, "where the store held"} {
		if !bytes.Contains(got.Illustration, []byte(want)) {
			t.Errorf("the illustration has no %q", want)
		}
	}
}

func TestIllustrationOfALongGroupShowsTheViolation(t *testing.T) {
	rng := dice(t)
	ops, truth := crowd{groups: 1, callers: 5, ops: 800, keys: 3, unknown: 0.02}.play(rng)
	i := slices.IndexFunc(ops[3000:], func(o Op) bool { return o.Kind == Get && o.Outcome == Done && o.Found[0] != "" }) + 3000
	ops[i].Found[0] = "wrong"
	got := Linearizable(ops, truth, time.Minute)
	if !bytes.Contains(got.Illustration, []byte(`= \"wrong\"`)) || len(got.Illustration) > 4<<20 {
		t.Errorf("%d bytes of illustration, want the wrong operation, beside the violation, in a picture that a browser can draw", len(got.Illustration))
	}
	judge(t, got.Violations, `found "wrong"`)
}

func TestSearchGivesUpInTime(t *testing.T) {
	// Without the truth, two dozen operations that may or may not have happened are too many.
	var ops []Op
	for n := range 24 {
		op := late(fmt.Sprintf("u%d", n), Put)
		op.Call = 0
		ops = append(ops, op)
	}
	get := Op{Group: "g", ID: "x", Kind: Get, Keys: []string{"l"}, Found: []string{"never"}, Outcome: Done, Revision: 9, Return: time.Second}
	began := time.Now()
	got := Linearizable(append(ops, get), Truth{}, 100*time.Millisecond)
	if took := time.Since(began); got.Decided || took > 20*time.Second {
		t.Errorf("decided %v after %v, want undecided soon after 100ms", got.Decided, took)
	}
}

func TestTwentyThousandOperationsAreDecidedInSeconds(t *testing.T) {
	rng := dice(t)
	for _, c := range []crowd{
		{groups: 120, callers: 5, ops: 34, keys: 3, unknown: 0.25}, // some 40 unknown ones in each group
		{groups: 12, callers: 20, ops: 85, keys: 3, unknown: 0.1},
	} {
		ops, truth := c.play(rng)
		began := time.Now()
		got := Linearizable(ops, truth, time.Minute)
		took := time.Since(began)
		if !got.Decided || len(got.Violations) > 0 || took > 20*time.Second {
			t.Errorf("%+v: decided %v, %q in %v, want decided in seconds", c, got.Decided, got.Violations, took)
		}
		t.Logf("%d operations of %+v in %v", len(ops), c, took)
	}
}
