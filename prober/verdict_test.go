package prober

import (
	"testing"
	"time"
)

func TestEvidenceIsOneLineForPeople(t *testing.T) {
	now := time.Unix(1000, 0)
	for want, c := range map[string]condition{
		"nothing by none (checking) for 1m30.5s; path answered never; quorum proved never": {
			reason: ReasonChecking, since: now.Add(-90500 * time.Millisecond),
		},
		"bad by shim (no-quorum) for 310ms; path answered 12ms ago; quorum proved 560ms ago; leader 8e9e05c52164694d at term 7": {
			state: stateBad, reason: "no-quorum", source: SourceShim, since: now.Add(-310 * time.Millisecond),
			answered: now.Add(-12*time.Millisecond - 100*time.Microsecond), proven: now.Add(-560 * time.Millisecond),
			leader: 0x8e9e05c52164694d, term: 7,
		},
		"good by stock for 0s; path answered 0s ago; quorum proved 0s ago": {
			state: stateGood, source: SourceStock, since: now, answered: now, proven: now,
		},
	} {
		if got := line(&c, now); got != want {
			t.Errorf("the evidence reads\n%s\nwant\n%s", got, want)
		}
	}
}

// Each of the probers of a process writes the evidence of every change, which hardly anybody reads.
func TestEvidenceCostsItsTextAlone(t *testing.T) {
	now := time.Unix(1000, 0)
	c := condition{state: stateBad, reason: "no-quorum", source: SourceShim, since: now.Add(-310 * time.Millisecond),
		answered: now.Add(-12 * time.Millisecond), proven: now.Add(-560 * time.Millisecond), leader: 0x8e9e05c52164694d, term: 7}
	if n := testing.AllocsPerRun(100, func() { _ = line(&c, now) }); n > 2 {
		t.Errorf("a line of evidence takes %v allocations, want its text, and room to write at most", n)
	}
}
