package servershim

import (
	"context"

	"github.com/quorumwise/quorumwise/membership"
)

// Source asks one etcd member. A *membership.Remote is one, and so is the source
// of package membership/inproc.
//
// Every method is called from goroutines of the shim's own, Prove from up to 32
// at once. Each must return soon after its context ends; one that does not keeps
// its goroutine, and delays the end of Run by at most a second.
type Source interface {
	// Prove completes a linearizable read through the member.
	Prove(ctx context.Context) error
	// Read completes a serializable read on the member.
	Read(ctx context.Context) error
	// Observe returns what the member says of itself.
	Observe(ctx context.Context) (membership.Observation, error)
}
