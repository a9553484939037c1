//go:build linux

package suites

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// soak is random faults for as long as told. The faults that need disks of their own
// make every write synchronous: they have a scenario of their own.
func soak() []Scenario {
	of := func(name, does string, faults []Fault, cluster func(*realetcd.Config)) Scenario {
		return Scenario{
			Name: name, Suite: "soak", Shim: realetcd.ShimSidecar, Control: Harmless, Endless: true, Does: does, Cluster: cluster,
			Steps: []Step{{Text: "random faults, one or two at a time", Mark: Noted, Wait: 5 * time.Second, Do: func(ctx context.Context, st *Stage) error {
				return st.suffer(ctx, faults, schedule(st.Rand, faults, len(st.Cluster.Members()), st.Duration))
			}}},
		}
	}
	return []Scenario{
		of("soak", "random faults of networks, processes and hosts from a seed, for as long as told", soakable(false), nil),
		of("soak-on-disks", "likewise with disks that are slow or hang", soakable(true), onDisks),
	}
}

// soakable are the faults that a soak draws from. A clock that can be stepped needs a
// special build.
func soakable(disks bool) []Fault {
	return slices.DeleteFunc(Faults(), func(f Fault) bool { return f.Clock || f.Disks && !disks })
}

// suffer plays bouts. What this machine cannot do is left out, and said.
func (st *Stage) suffer(ctx context.Context, faults []Fault, bouts []bout) error {
	for n, b := range bouts {
		began := time.Now()
		st.Note("bout %d: %v", n+1, b)
		for _, bl := range b.Blows {
			if err := sleep(ctx, bl.After-time.Since(began)); err != nil {
				return errors.Join(err, st.Lift(context.WithoutCancel(ctx)))
			}
			if err := st.strike(ctx, faults, bl); err != nil {
				return errors.Join(err, st.Lift(ctx))
			}
		}
		if err := errors.Join(sleep(ctx, b.Lasts-time.Since(began)), st.Lift(context.WithoutCancel(ctx))); err != nil {
			return err
		}
		if err := sleep(ctx, b.Quiet); err != nil {
			return err
		}
		if err := st.settled(ctx, time.Second); err != nil {
			return fmt.Errorf("after bout %d, %v: %w", n+1, b, err)
		}
	}
	return nil
}

// strike inflicts one blow, knowing who leads where that makes a difference. A link to the
// leader that is cut is nothing when the leader itself is hit: then it loses its peers.
func (st *Stage) strike(ctx context.Context, faults []Fault, bl blow) error {
	f := faults[slices.IndexFunc(faults, func(f Fault) bool { return f.Name == bl.Fault })]
	m := st.Cluster.Members()[bl.Member]
	if f.OnlyFollower || f.Spreads {
		leader, err := st.Cluster.Leader(ctx)
		if err != nil {
			return err
		}
		if st.Leader = leader; leader == m && f.OnlyFollower {
			f = FaultNamed("cut")
		}
	}
	err := st.Inflict(ctx, f, m)
	if unavailable := (*nethosts.UnavailableError)(nil); errors.As(err, &unavailable) {
		st.Note("left out: %v", err)
		return nil
	}
	return err
}

// A bout is one stretch of the soak: one fault or two, then quiet.
type bout struct {
	Blows []blow
	Lasts time.Duration // from the first blow until everything is lifted
	Quiet time.Duration // afterwards
}

// A blow is one fault of a bout.
type blow struct {
	Fault  string        // of the table
	Member int           // index among the members in order of name
	After  time.Duration // since the bout began; less than Bout.Lasts
}

// Bounds of what is drawn. A bout that leaves no client a majority ends before leases
// of 5 s do, also when an election follows. One that leaves a majority may last as long
// as leases and requests do, and longer. Quiet outlasts the return of a member.
const (
	shortestBout   = time.Second
	longestBout    = 12 * time.Second
	longestOutage  = 1500 * time.Millisecond
	shortestQuiet  = 3 * time.Second
	longestQuiet   = 8 * time.Second
	oneInSoManyTwo = 3 // bouts of two faults
)

// draw makes the next bout of a cluster of so many members. It uses nothing but its
// arguments: the same randomness gives the same bout.
func draw(r *rand.Rand, faults []Fault, members int) bout {
	one, onto := faults[r.IntN(len(faults))], r.IntN(members)
	b := bout{Blows: []blow{{Fault: one.Name, Member: onto}}}
	if r.IntN(oneInSoManyTwo) == 0 {
		if other, to := faults[r.IntN(len(faults))], r.IntN(members); to != onto || one.fits(other) {
			b.Blows = append(b.Blows, blow{Fault: other.Name, Member: to})
		}
	}
	longest := longestBout
	if b.hit(faults, members) > members-majority(members) {
		longest = longestOutage
	}
	b.Lasts = between(r, shortestBout, longest)
	b.Quiet = between(r, shortestQuiet, longestQuiet)
	if len(b.Blows) == 2 {
		b.Blows[1].After = between(r, 0, b.Lasts/2)
	}
	return b
}

// fits says that one member can suffer both faults at once, whichever comes first: a
// process that was killed cannot be frozen, a member that is cut off never starts to serve,
// and one whose disk hangs does not die.
func (f Fault) fits(other Fault) bool {
	return f.Name != other.Name && !f.Halts && !other.Halts
}

// hit is how many members may be of no use to some client while the bout lasts. Who leads
// then is not known yet: a fault that spreads from a leader may hit all.
func (b bout) hit(faults []Fault, members int) int {
	hit := make(map[int]bool)
	for _, bl := range b.Blows {
		f := faults[slices.IndexFunc(faults, func(f Fault) bool { return f.Name == bl.Fault })]
		switch {
		case f.Everybody, f.Spreads:
			return members
		case f.Effect == Spares:
		default:
			hit[bl.Member] = true
		}
	}
	return len(hit)
}

// schedule draws bouts until they fill so much time. The last one ends in time.
func schedule(r *rand.Rand, faults []Fault, members int, whole time.Duration) []bout {
	var bouts []bout
	for left := whole; ; {
		b := draw(r, faults, members)
		if left -= b.Lasts + b.Quiet; left < 0 {
			return bouts
		}
		bouts = append(bouts, b)
	}
}

func majority(members int) int { return members/2 + 1 }

// between draws a duration in whole milliseconds, both ends included.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64((most-least)/time.Millisecond)+1))*time.Millisecond
}

// String is the bout as the timeline shows it.
func (b bout) String() string {
	var parts []string
	for _, bl := range b.Blows {
		part := fmt.Sprintf("%s on m%d", bl.Fault, bl.Member+1)
		if bl.After > 0 {
			part += fmt.Sprintf(" after %v", bl.After)
		}
		parts = append(parts, part)
	}
	return fmt.Sprintf("%s, for %v", strings.Join(parts, " and "), b.Lasts)
}
