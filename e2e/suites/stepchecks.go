//go:build linux

package suites

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// judgeSnapshot wants a member to have applied a snapshot: without one its scenario has shown
// nothing.
func (st *Stage) judgeSnapshot(member, log string) {
	st.premise(strings.Contains(log, "applied snapshot"), "%s caught up without a snapshot: the cut was too short, or its peers kept too many entries", member)
}

// judgeAbsence wants defragmenting to have taken long enough.
func (st *Stage) judgeAbsence(took time.Duration) {
	st.Note("defragmenting took %v", took.Round(time.Millisecond))
	st.premise(took > absence, "defragmenting took %v; want more than %v, else it takes nobody away", took, absence)
}

// judgeFollower claims of a client that was told nothing while all members were replaced that
// it knows those that there are, and that nothing is wrong with its watch.
func (st *Stage) judgeFollower(knows, members []string, wrong string) {
	got, want := slices.Sorted(slices.Values(knows)), slices.Sorted(slices.Values(members))
	st.claimTiming(slices.Equal(got, want), "a client that follows by AutoSync alone knows %v; want %v: it would be left without endpoints", got, want)
	st.claim(wrong == "", "the watch of a client that follows by AutoSync alone: %s", wrong)
}

// asker asks a shim which of its services are SERVING.
type asker = func(context.Context) (map[string]bool, error)

// saysWithin is how soon a shim must say what has become of its member's store.
const saysWithin = 2 * time.Second

// claimSays claims that each member's shim comes to say the same, in time.
func (st *Stage) claimSays(ctx context.Context, asks map[string]asker, want map[string]bool) error {
	deadline := time.Now().Add(saysWithin)
	for {
		late := time.Now().After(deadline)
		for _, name := range sorted(asks) {
			got, err := asks[name](ctx)
			if err != nil {
				return err
			}
			if !late && maps.Equal(got, want) {
				delete(asks, name)
				continue
			}
			st.claimTiming(!late, "the shim of %s says %v; want %v within %v", name, got, want, saysWithin)
		}
		if late || len(asks) == 0 {
			return nil
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
