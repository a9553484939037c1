package history

import (
	"strings"
	"testing"
)

func TestCheckOnceCatchesPlantedViolations(t *testing.T) {
	const put = 0
	again := func(revision int64, value string) Change {
		return Change{Revision: revision, Key: "k", Value: value, Create: revision, Version: 1}
	}
	for _, c := range []struct {
		name  string
		spoil func(ops []Op, t *Truth, arrived map[string]int)
		want  string
	}{
		{"nothing", func([]Op, *Truth, map[string]int) {}, ""},
		{"applied twice", func(_ []Op, t *Truth, _ map[string]int) { t.Changes = append(t.Changes, again(11, "a/0")) },
			`put "a" of caller 1 was applied at revisions [5 11]: a mutation was sent again`},
		{"one of unknown outcome applied twice", func(ops []Op, t *Truth, _ map[string]int) {
			ops[put].Outcome = Unknown
			t.Changes = append(t.Changes, again(11, "a/0"))
		}, `put "a" of caller 1 was applied at revisions [5 11]: a mutation was sent again`},
		{"a transaction applied twice", func(_ []Op, t *Truth, _ map[string]int) {
			t.Changes = append(t.Changes, again(11, "b/0"), again(11, "b/1"))
		}, `put "b" of caller 1 was applied at revisions [6 11]: a mutation was sent again`},
		{"acknowledged and lost", func(_ []Op, t *Truth, _ map[string]int) { drop(t, 0) }, `put "a" of caller 1 was acknowledged at revision 5 and is not in the store's history`},
		{"a swap acknowledged and lost", func(_ []Op, t *Truth, _ map[string]int) { drop(t, 3) }, `swap "d" of caller 1 was acknowledged at revision 8 and is not in the store's history`},
		{"unknown and lost", func(ops []Op, t *Truth, _ map[string]int) { ops[put].Outcome = Unknown; drop(t, 0) }, ""},
		{"refused and applied", func(ops []Op, _ *Truth, _ map[string]int) { ops[put].Outcome, ops[put].Error = Refused, "no space" },
			`put "a" of caller 1 was refused (no space) and stands in the store's history at revision 5`},
		{"missed and applied", func(_ []Op, t *Truth, _ map[string]int) { t.Changes = append(t.Changes, again(11, "e/0")) },
			`swap "e" of caller 2 was told that it did not swap, and stands in the store's history at revision 11`},
		{"arrived twice", func(_ []Op, _ *Truth, arrived map[string]int) { arrived["b/1"] = 2 }, `put "b" of caller 1 reached servers 2 times with value "b/1": a mutation was sent again`},
		{"nothing was counted", func(_ []Op, _ *Truth, arrived map[string]int) { clear(arrived) },
			`none of 4 answered operations was counted where it arrived: the servers' counts say nothing`},
		{"a refused one arrived", func(ops []Op, t *Truth, arrived map[string]int) { ops[put].Outcome = Refused; drop(t, 0) }, ""},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			ops, truth := plant()
			arrived := map[string]int{"a/0": 1, "b/0": 1, "b/1": 1, "d/0": 1, "e/0": 1}
			c.spoil(ops, &truth, arrived)
			judge(t, CheckOnce(ops, truth, arrived), c.want)
		})
	}
}
