//go:build linux

package suites

import (
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// seconds is a moment of the made-up scenario.
func seconds(s float64) time.Time { return at(time.Duration(s * float64(time.Second))) }

// made is a truth of three members: m1 leads until 2 s and is cut then; m2 and m3 have no
// leader from 2.2 s to 3.5 s and from 2.2 s to 3.8 s; m1 is well again at 6 s.
func made() truth {
	e := new(Evidence)
	for _, s := range []struct {
		at     float64
		member string
		state  realetcd.State
	}{
		{0, "m1", realetcd.Leader}, {2, "m1", realetcd.NoQuorum}, {3.2, "m1", realetcd.NoLeader}, {6, "m1", realetcd.Quorum},
		{0.1, "m2", realetcd.Quorum}, {2.2, "m2", realetcd.NoLeader}, {3.5, "m2", realetcd.Leader},
		{0.1, "m3", realetcd.Quorum}, {2.2, "m3", realetcd.NoLeader}, {3.8, "m3", realetcd.Quorum},
	} {
		e.sample(time.Duration(s.at*float64(time.Second)), s.member, s.state)
	}
	return truthOf(e.Samples)
}

func TestTruthHoldsUntilItChanges(t *testing.T) {
	for _, row := range []struct {
		member   string
		from, to float64
		want     bool
	}{
		{"m1", 0, 1.9, true},
		{"m1", 0, 2, false},
		{"m2", 0, 1, false}, // not seen yet
		{"m2", 3.5, 100, true},
		{"m2", 3.4, 100, false},
		{"m4", 1, 2, false},
	} {
		if got := made().goodThrough(row.member, seconds(row.from), seconds(row.to)); got != row.want {
			t.Errorf("%s served from %v s to %v s: %v, want %v", row.member, row.from, row.to, got, row.want)
		}
	}
	serves := func(s realetcd.Sample) bool { return good(s.State) }
	for when, want := range map[float64]time.Time{1: seconds(0), 4: {}, 8: seconds(6)} {
		if got := made().since("m1", seconds(when), serves); !got.Equal(want) {
			t.Errorf("at %v s m1 had served since %v, want %v", when, got, want)
		}
	}
}

func TestMemberIsWorseOnlyWhileAnotherServes(t *testing.T) {
	for _, row := range []struct {
		member   string
		from, to float64
		want     time.Duration
	}{
		{"m1", 0, 10, 2500 * time.Millisecond}, // 3.5 to 6
		{"m1", 0, 3, 200 * time.Millisecond},   // 2 to 2.2
		{"m3", 0, 10, 300 * time.Millisecond},  // 3.5 to 3.8
		{"m2", 0, 10, 100 * time.Millisecond},  // before it was first seen
		{"m2", 1, 10, 0},
	} {
		if got := made().worse(row.member, seconds(row.from), seconds(row.to)); got != row.want {
			t.Errorf("between %v s and %v s %s was worse than another one for %v, want %v", row.from, row.to, row.member, got, row.want)
		}
	}
}

func TestElectionEndsWhenAWellMemberServes(t *testing.T) {
	cut := Hurt{Member: "m1", Effect: Isolates, From: seconds(2), To: seconds(6)}
	for _, row := range []struct {
		name  string
		hurt  Hurt
		hurts []Hurt
		want  time.Duration
	}{
		{"the leader is cut", cut, []Hurt{cut}, 1500 * time.Millisecond},
		{"a fault that begins later has its own election", Hurt{Member: "m1", Effect: Isolates, From: seconds(3)}, []Hurt{cut}, 500 * time.Millisecond},
		{"a fault after it has none", Hurt{Member: "m1", Effect: Isolates, From: seconds(4)}, []Hurt{cut}, 0},
		{"the heal ends it", Hurt{Member: "m1", Effect: Isolates, From: seconds(2), To: seconds(3)}, []Hurt{cut}, time.Second},
		{"the first to serve is hurt too", cut, []Hurt{cut, {Member: "m2", Effect: Silences, From: seconds(2), To: seconds(6)}}, 1800 * time.Millisecond},
		{"the first to serve is spared", cut, []Hurt{cut, {Member: "m2", Effect: Spares, From: seconds(2), To: seconds(6)}}, 1500 * time.Millisecond},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := made().election(row.hurt, row.hurts); got != row.want {
				t.Errorf("the election took %v from the fault on, want %v", got, row.want)
			}
		})
	}
}

// What lasts from 2.2 s to 3.5 s, until somebody serves, begins within the bound of a fault at
// 2 s, and long after that of one at 1 s.
func TestOnlyAnElectionThatBeginsInTimeExtendsABound(t *testing.T) {
	for _, row := range []struct {
		from   float64
		within time.Duration
		want   float64
	}{
		{2, 400 * time.Millisecond, 3.9},
		{1, 400 * time.Millisecond, 1.4},
		{1, 2 * time.Second, 5.5},
		{4, 400 * time.Millisecond, 4.4},
	} {
		h := Hurt{Member: "m1", Effect: Isolates, From: seconds(row.from), To: seconds(6)}
		if got := made().due(h, []Hurt{h}, row.within); !got.Equal(seconds(row.want)) {
			t.Errorf("what a fault at %v s bounds to %v is due at %v, want %v s", row.from, row.within, got.Sub(zero), row.want)
		}
	}
}

func TestElectionsAreFirstSeenTerms(t *testing.T) {
	e := sound()
	if got := truthOf(e.Samples).elections(); got != nil {
		t.Errorf("elections at %v, want none: the term stayed", got)
	}
	e.elect(5 * time.Second)
	if got := truthOf(e.Samples).elections(); len(got) != 1 || !got[0].Equal(at(5*time.Second)) {
		t.Errorf("elections at %v, want one at 5 s", got)
	}
}

func TestCallIsServableByAMemberInReach(t *testing.T) {
	cut := Hurt{Member: "m2", What: "client-cut", Effect: Silences, From: seconds(4)}
	for _, row := range []struct {
		name     string
		hurts    []Hurt
		from, to float64
		want     bool
	}{
		{"before anything happened", nil, 1, 1.1, true},
		{"while nobody has a leader", nil, 2.3, 3.3, false},
		{"by the last second of a long call", nil, 2.3, 4.6, true},
		{"of a long call whose last second is not served", nil, 0, 3, false},
		{"by the other one", []Hurt{cut}, 4.5, 5, true},
		{"by nobody in reach", []Hurt{cut, {Member: "m3", Effect: Silences, From: seconds(4)}}, 4.5, 5, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := made().servable(row.hurts, seconds(row.from), seconds(row.to)); got != row.want {
				t.Errorf("a call from %v s to %v s was servable: %v, want %v", row.from, row.to, got, row.want)
			}
		})
	}
}

func TestFaultOfAllMembersCausesNoElection(t *testing.T) {
	e := sound()
	e.seen("m1", cutAt, cutAt+time.Second, realetcd.NoLeader)
	e.seen("m3", cutAt, cutAt+time.Second, realetcd.NoLeader)
	if got := e.election(); got != time.Second {
		t.Errorf("the others had no leader for %v, want 1s", got)
	}
	e.Hurts = nil
	for _, m := range []string{"m1", "m2", "m3"} {
		e.Hurts = append(e.Hurts, Hurt{Member: m, What: "slow", Effect: Slows, From: at(cutAt), To: at(healedAt)})
	}
	if got := e.election(); got != 0 {
		t.Errorf("with all members hurt the others had no leader for %v, want 0: there are no others", got)
	}
}
