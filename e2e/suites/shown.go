//go:build linux

package suites

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// A scenario that harms nobody passes just as well where nothing is done at all. What was to be
// done must show in what the sampler saw, or in the time that it took to answer.

// gone says that a shim said nothing: it is silent, or there is none.
func gone(s realetcd.Sample) bool {
	return s.Shim == realetcd.ShimSilent || s.Shim == realetcd.ShimAbsent
}

// shimGone says that a member's shim came to say nothing while a hurt lasted.
func (e *Evidence) shimGone(h Hurt) bool {
	during := e.samples(h.Member, h.From, e.until(h))
	return len(during) > 1 && slices.ContainsFunc(during[1:], gone)
}

// shimsCame says of which member it was not seen that it had no shim and later one that serves.
func shimsCame(e *Evidence) string {
	for _, m := range e.Members {
		none, came := false, false
		for _, s := range truthOf(e.Samples)[m.Name] {
			none = none || s.Shim == realetcd.ShimAbsent
			came = came || none && s.Shim == realetcd.ShimServing
		}
		if !came {
			return fmt.Sprintf("%s was not seen without a shim and later with one that serves: no shim was rolled out there", m.Name)
		}
	}
	return ""
}

// everybodyWaits says that the user of the official client did not have to wait for so long,
// though all members were to be late.
func everybodyWaits(least time.Duration) func(*Evidence) string {
	return func(e *Evidence) string {
		if longest := e.longestWait(e.Control); longest < least {
			return fmt.Sprintf("nobody noticed that all members were late: the official client waited for %v at most, want at least %v", shown(longest), least)
		}
		return ""
	}
}
