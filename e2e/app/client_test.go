//go:build linux

package app

import (
	"slices"
	"testing"
)

func TestTheObserverStaysOnWhatIsLeftOfItsMembers(t *testing.T) {
	for _, test := range []struct {
		name                  string
		before, members, want []string
	}{
		{"one of two is removed", []string{"b", "c"}, []string{"a", "c", "d"}, []string{"c"}},
		{"a member is added", []string{"b", "c"}, []string{"a", "b", "c", "d"}, []string{"b", "c"}},
		{"all are replaced", []string{"b", "c"}, []string{"d", "e"}, []string{"d", "e"}},
	} {
		if got := observed(test.before, test.members); !slices.Equal(got, test.want) {
			t.Errorf("%s: it observes %v, want %v", test.name, got, test.want)
		}
	}
}
