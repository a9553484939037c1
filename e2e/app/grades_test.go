//go:build linux

package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorumwise/quorumwise/client"
)

func TestGradesAreFiledWhereTheyChange(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	see := func(pairs ...string) *client.Snapshot {
		s := new(client.Snapshot)
		for i := 0; i < len(pairs); i += 3 {
			s.Endpoints = append(s.Endpoints, client.EndpointHealth{Address: pairs[i], Grade: pairs[i+1], Reason: pairs[i+2]})
		}
		return s
	}
	var g grades
	g.add(at(1), see("a", "unknown", "checking", "b", "healthy", ""))
	g.add(at(2), see("a", "unknown", "checking", "b", "healthy", ""))
	g.add(at(3), see("a", "healthy", "", "b", "healthy", ""))
	g.add(at(4), see("a", "suspect", "late", "b", "healthy", ""))
	g.add(at(5), see("a", "suspect", "no-quorum"))
	g.add(at(6), see("a", "suspect", "no-quorum"))
	g.add(at(7), see("a", "suspect", "no-quorum", "b", "healthy", ""))
	want := []Grade{
		{at(1), "a", "unknown", "checking"}, {at(1), "b", "healthy", ""},
		{at(3), "a", "healthy", ""},
		{at(4), "a", "suspect", "late"},
		{at(5), "a", "suspect", "no-quorum"}, {at(5), "b", "", ""}, // taken out
		{at(7), "b", "healthy", ""}, // and back
	}
	if d := cmp.Diff(want, g.all); d != "" {
		t.Errorf("grades (-want +got):\n%s", d)
	}
}
