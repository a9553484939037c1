//go:build linux

package suites

import (
	"testing"
	"time"
)

// What comes before the first step that the timeline shows is no part of what happens.
func TestPlayRemembersWhenItFirstActed(t *testing.T) {
	p := &play{zero: zero}
	for i, mark := range []Mark{Plain, Noted, Inflicted, Noted, Inflicted, Mended} {
		p.mark(Step{Text: "something", Mark: mark}, at(time.Duration(i)*time.Second))
	}
	if want := at(1 * time.Second); !p.acted.Equal(want) {
		t.Errorf("it first acted at %v; want %v, the first step with a mark", p.acted, want)
	}
	if want := at(2 * time.Second); !p.cut.Equal(want) {
		t.Errorf("the fault began at %v; want %v", p.cut, want)
	}
}
