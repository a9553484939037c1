package history

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"
)

// Records cross from another process as JSON.
func FuzzCheckersSurviveAnyRecord(f *testing.F) {
	type all struct {
		Ops      []Op
		Truth    Truth
		Stream   Stream
		Sections []Section
		Reigns   []Reign
		Counts   []Count
		Arrived  map[string]int
	}
	add := func(a all) {
		data, err := json.Marshal(a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	ops, truth := crowd{groups: 2, callers: 2, ops: 4, keys: 2, unknown: 0.3, refused: 0.1}.play(rng)
	add(all{Ops: ops, Truth: truth, Stream: watched(rng, anyStream(rng, truth), truth)})
	ops, truth = plant()
	add(all{Ops: ops, Truth: truth, Stream: watch(), Arrived: map[string]int{"a/0": 1}})
	sections, truth := stays()
	add(all{Sections: sections, Reigns: reignsOf(sections), Truth: truth})
	counts, truth := counted(rng)
	add(all{Counts: counts, Truth: truth})
	f.Add([]byte(`{"Ops":[{},{"Kind":"swap","Outcome":"unknown","Keys":["k","k"],"Values":["",""]}],"Truth":{"Upto":9,"Changes":[{},{"Key":"k"}]},"Stream":{"Responses":[{},{"Changes":[{}]}]},"Sections":[{"Entered":1}],"Reigns":[{"Elected":1}],"Counts":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var a all
		if json.Unmarshal(data, &a) != nil {
			t.Skip("no record")
		}
		for _, bad := range [][]string{
			Linearizable(a.Ops, a.Truth, 100*time.Millisecond).Violations,
			CheckOnce(a.Ops, a.Truth, a.Arrived),
			CheckStream(a.Stream, a.Truth),
			CheckLocks(a.Sections, a.Truth, time.Second),
			CheckElections(a.Reigns, a.Truth, time.Second),
			CheckCounters(a.Counts, a.Truth),
		} {
			judgeLines(t, bad)
		}
	})
}
