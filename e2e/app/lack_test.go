//go:build linux

package app

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// whole is a record of a few seconds in which every part of everything did one thing.
func whole(c Config) Record {
	began := time.Now()
	rec := Record{
		Name: c.Name, Official: c.Official,
		Load: workload.Record{
			Began: began, Ended: began.Add(3 * time.Second),
			Gets: make([]workload.Op, 1), Puts: make([]workload.Op, 1),
			Watches: []workload.WatchRecord{{Events: make([]workload.Event, 1)}},
			Leases:  []workload.LeaseRecord{{TTLs: make([]workload.TTL, 1)}},
		},
		Attempts:  make([]workload.Attempt, 1),
		Histories: []history.Op{{Outcome: history.Done}, {Outcome: history.Done, Caller: bigCaller}, {Outcome: history.Done, Caller: bigCaller}, {Outcome: history.Done, Caller: bigCaller}},
		Fragments: 1,
		Sections:  []history.Section{{Entered: 1}},
		Reigns:    []history.Reign{{Elected: 1}},
		Counts:    []history.Count{{Acked: []string{"1"}}},
		Grades:    make([]Grade, 1),
		Leaks:     Leaks{Goroutines: [2]int{5, 5}, Descriptors: [2]int{7, 7}},
	}
	for _, w := range c.wanted() {
		rec.Streams = append(rec.Streams, history.Stream{Name: c.Name + "/" + w.name, Responses: make([]history.Response, 1)})
	}
	return rec
}

func everyPart(official bool) Config {
	return Config{
		Name: "a", Endpoints: []string{"10.0.0.1:2379"}, Official: official,
		Histories: true, Watches: true, Big: time.Second, ManyWatchers: 3, Locks: true, Elections: true, Counters: true,
	}.withDefaults()
}

func TestARecordOfEveryPartLacksNothing(t *testing.T) {
	for _, official := range []bool{false, true} {
		c := everyPart(official)
		rec := whole(c)
		if official {
			rec.Grades = nil
		}
		if lacks := c.lacks(rec); len(lacks) > 0 {
			t.Errorf("official %t: it lacks %q; want nothing", official, lacks)
		}
	}
}

// What was switched on and recorded nothing would pass every checker.
func TestAPartThatRecordedNothingIsLacking(t *testing.T) {
	for what, spoil := range map[string]func(*Record){
		"operation of the histories": func(r *Record) {
			r.Histories[0].Outcome = history.Unknown
			r.Histories = append(r.Histories, history.Op{Outcome: history.Refused})
		},
		"big transaction": func(r *Record) { r.Histories = r.Histories[:1] },
		"fragment":        func(r *Record) { r.Fragments = 0 },
		"mutex":           func(r *Record) { r.Sections[0].Entered = 0 },
		"leader":          func(r *Record) { r.Reigns = nil },
		"increment":       func(r *Record) { r.Counts[0].Acked = nil },
		"watch a/shared-puts": func(r *Record) {
			r.Streams = slices.DeleteFunc(r.Streams, func(s history.Stream) bool { return s.Name == "a/shared-puts" })
		},
		"watch a/many-2": func(r *Record) {
			r.Streams = slices.DeleteFunc(r.Streams, func(s history.Stream) bool { return s.Name == "a/many-2" })
		},
		"answer": func(r *Record) {
			for i := range r.Streams {
				r.Streams[i].Responses = nil
			}
		},
		"event":            func(r *Record) { r.Load.Watches[0].Events = nil },
		"time to live":     func(r *Record) { r.Load.Leases[0].TTLs = nil },
		"Get":              func(r *Record) { r.Load.Gets = nil },
		"Put":              func(r *Record) { r.Load.Puts = nil },
		"attempt":          func(r *Record) { r.Attempts = nil },
		"grade":            func(r *Record) { r.Grades = nil },
		"begin and end":    func(r *Record) { r.Load.Began = time.Time{} },
		"count of gorout":  func(r *Record) { r.Leaks.Goroutines = [2]int{} },
		"count of open fi": func(r *Record) { r.Leaks.Descriptors = [2]int{} },
	} {
		c := everyPart(false)
		rec := whole(c)
		spoil(&rec)
		if lacks := c.lacks(rec); len(lacks) != 1 || !strings.HasPrefix(lacks[0], what) {
			t.Errorf("without any %s: it lacks %q; want just that", what, lacks)
		}
	}
}

func TestWhatWasNotAskedForIsNotLacking(t *testing.T) {
	c := Config{Name: "a", Quiet: true}.withDefaults()
	rec := whole(c)
	rec.Load.Gets, rec.Load.Puts, rec.Histories, rec.Sections, rec.Reigns, rec.Counts = nil, nil, nil, nil, nil, nil
	if lacks := c.lacks(rec); len(lacks) > 0 {
		t.Errorf("a quiet load of nothing else lacks %q; want nothing", lacks)
	}
	c = everyPart(false)
	rec = whole(c)
	rec.Histories, rec.Fragments = rec.Histories[:3], 0
	if lacks := c.lacks(rec); len(lacks) > 0 {
		t.Errorf("after two big transactions, of which the last may not have arrived, it lacks %q; want nothing", lacks)
	}
	short := Record{Load: workload.Record{Began: rec.Load.Began, Ended: rec.Load.Began.Add(time.Second)}, Leaks: rec.Leaks}
	if lacks := c.lacks(short); len(lacks) > 0 {
		t.Errorf("a load that was stopped after a second lacks %q; want nothing: it had no time", lacks)
	}
}

func TestALackSaysWhatIsMissingAndWhereToLook(t *testing.T) {
	err := error(&LackError{App: "ours", Lacks: []string{"Get", "mutex that was entered"}, Log: "/the/log"})
	for _, part := range []string{"ours", "no Get", "no mutex that was entered", "/the/log"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q; want %q in it", err, part)
		}
	}
	var lack *LackError
	if !errors.As(err, &lack) {
		t.Error("a LackError is not found by errors.As")
	}
}
