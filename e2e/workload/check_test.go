package workload

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

var t0 = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// at is a moment, in milliseconds after the start.
func at(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }

func events(revisions ...int64) []Event {
	var es []Event
	for _, r := range revisions {
		es = append(es, Event{Revision: r, Value: fmt.Sprint("v", r), At: at(int(r) * 10)})
	}
	return es
}

// mustSay checks that exactly one violation was found, and which.
func mustSay(t *testing.T, got []string, want string) {
	t.Helper()
	if want == "" {
		if len(got) > 0 {
			t.Errorf("found %q where all is well", got)
		}
		return
	}
	if len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("found %q; want one violation with %q: a checker that misses it proves nothing", got, want)
	}
}

func TestCheckWatchCatchesEveryKindOfPlantedViolation(t *testing.T) {
	want := events(4, 5, 7, 8)
	changed := events(4, 5, 7, 8)
	changed[2].Value = "other"
	for _, tc := range []struct {
		name string
		got  []Event
		say  string
	}{
		{"all is well", events(4, 5, 7, 8), ""},
		{"one lost", events(4, 5, 8), "never delivered revision 7"},
		{"the last lost", events(4, 5, 7), "never delivered revision 8"},
		{"one doubled", events(4, 5, 5, 7, 8), "revision 5 twice"},
		{"two swapped", events(4, 7, 5, 8), "5 after 7: out of order"},
		{"one that never happened", events(4, 5, 6, 7, 8), "revision 6 (\"v6\"), which never happened"},
		{"another value", changed, `value "other", want "v7"`},
	} {
		t.Run(tc.name, func(t *testing.T) { mustSay(t, CheckWatch("w", tc.got, want), tc.say) })
	}
}

func TestCheckOnceCatchesARepeatedAndALostPut(t *testing.T) {
	acked := Op{ID: "a", Began: at(0), Ended: at(1)}
	failed := Op{ID: "a", Began: at(0), Ended: at(1), Err: errors.New("unavailable")}
	open := Op{ID: "a", Began: at(0)}
	for _, tc := range []struct {
		name             string
		put              Op
		applied, arrived int
		say              string
	}{
		{"acknowledged, applied once", acked, 1, 1, ""},
		{"failed, applied once", failed, 1, 1, ""},
		{"failed, not applied", failed, 0, 0, ""},
		{"open, applied once", open, 1, 1, ""},
		{"open, not applied", open, 0, 1, ""},
		{"applied twice", acked, 2, 1, "applied 2 times"},
		{"failed and applied twice", failed, 2, 1, "applied 2 times"},
		{"sent twice", acked, 1, 2, "reached servers 2 times"},
		{"acknowledged and lost", acked, 0, 1, "not in the history"},
		{"acknowledged, and nobody counted", acked, 1, 0, "counts say nothing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := CheckOnce([]Op{tc.put}, map[string]int{"a": tc.applied}, map[string]int{"a": tc.arrived})
			mustSay(t, got, tc.say)
		})
	}
}

func TestCheckReadsCatchesAReadThatGoesBack(t *testing.T) {
	put := Op{ID: "p", Began: at(0), Ended: at(10), Revision: 7}
	read := func(began, ended int, revision int64) Op {
		return Op{Began: at(began), Ended: at(ended), Revision: revision}
	}
	for _, tc := range []struct {
		name string
		gets []Op
		say  string
	}{
		{"after the put, sees it", []Op{read(11, 12, 7)}, ""},
		{"overlaps the put, does not see it", []Op{read(5, 12, 6)}, ""},
		{"failed", []Op{{Began: at(11), Ended: at(12), Err: errors.New("x")}}, ""},
		{"not returned", []Op{{Began: at(11)}}, ""},
		{"after the put, does not see it", []Op{read(11, 12, 6)}, "saw revision 6, after 7"},
		{"after a newer read, does not see it", []Op{read(11, 12, 9), read(13, 14, 8)}, "saw revision 8, after 9"},
	} {
		t.Run(tc.name, func(t *testing.T) { mustSay(t, CheckReads(tc.gets, []Op{put}), tc.say) })
	}
}

func TestCheckLeaseCatchesALostLease(t *testing.T) {
	alive := []TTL{{At: at(0), Remaining: 5 * time.Second}, {At: at(500), Remaining: time.Second}}
	for _, tc := range []struct {
		name  string
		lease LeaseRecord
		say   string
		lost  time.Time
	}{
		{"kept", LeaseRecord{TTLs: alive}, "", time.Time{}},
		{"less than a second left", LeaseRecord{TTLs: append(alive, TTL{At: at(900)})}, "", time.Time{}},
		{"channel closed", LeaseRecord{TTLs: alive, ClosedAt: at(600)}, "channel closed at 12:00:00.600; no keepalive had been answered, and 1s or more were left at 12:00:00.500", at(600)},
		{"never looked at", LeaseRecord{ClosedAt: at(600), Answers: []time.Time{at(100), at(400), at(700)}}, "closed at 12:00:00.600; the last keepalive was answered at 12:00:00.400", at(600)},
		{"gone at the server", LeaseRecord{TTLs: append(alive, TTL{At: at(900), Remaining: -time.Second})}, "was gone at 12:00:00.900", at(900)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mustSay(t, CheckLease(tc.lease), tc.say)
			if got := tc.lease.LostAt(); got != tc.lost {
				t.Errorf("lost at %v, want %v", got, tc.lost)
			}
		})
	}
}

func TestRevokedEarlyTellsARevocationFromAnExpiry(t *testing.T) {
	gone := TTL{At: at(900), Remaining: -time.Second}
	for _, tc := range []struct {
		name  string
		lease LeaseRecord
		left  time.Duration
	}{
		{"kept", LeaseRecord{TTLs: []TTL{{At: at(0), Remaining: 5 * time.Second}}}, 0},
		{"revoked", LeaseRecord{TTLs: []TTL{{At: at(400), Remaining: 3 * time.Second}, gone}}, 2500 * time.Millisecond},
		{"expired", LeaseRecord{TTLs: []TTL{{At: at(400), Remaining: 0}, gone}}, 0},
		{"about to expire", LeaseRecord{TTLs: []TTL{{At: at(0), Remaining: time.Second}, gone}}, 0},
		{"given up by its client before", LeaseRecord{ClosedAt: at(300), TTLs: []TTL{{At: at(400), Remaining: 3 * time.Second}, gone}}, 0},
		{"never seen alive", LeaseRecord{TTLs: []TTL{gone}}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			when, left := RevokedEarly(tc.lease)
			if left != tc.left || (left > 0) != when.Equal(at(900)) {
				t.Errorf("gone at %v with %v left, want %v left", when, left, tc.left)
			}
		})
	}
}

func TestManyViolationsAreCounted(t *testing.T) {
	got := CheckWatch("w", nil, events(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13))
	if len(got) != 11 || got[10] != "and 3 more of the kind" {
		t.Errorf("got %d lines, the last %q; want ten and the count of the rest", len(got), got[len(got)-1])
	}
}
