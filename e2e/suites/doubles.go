//go:build linux

package suites

import (
	"context"
	"time"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// doubles are two faults at once, on the target and on a second follower of five.
func doubles() []Scenario {
	double := func(name, does string, role Role, shim realetcd.Shim, steps ...Step) Scenario {
		return Scenario{
			Name: name + "-" + shimWord(shim), Suite: "doubles", Does: does, Fault: name, Members: 5, Shim: shim,
			Target: role, Second: true, Control: Stuck, Steps: append(steps, mend(afterwards)),
		}
	}
	var scs []Scenario
	for _, shim := range shims {
		cut, frozen := FaultNamed("cut").Budget(shim), FaultNamed("freeze").Budget(shim)
		for _, sc := range []Scenario{
			double("two-cut", "of five members two followers lose their peers, each other too", Follower, shim,
				onBoth("cut", "cut", faultLasts)),
			double("leader-and-follower-cut", "of five members the leader and a follower lose their peers, each other too", Leader, shim,
				onBoth("cut", "cut", faultLasts)),
			double("one-cut-one-frozen", "of five members one follower loses its peers and another one is frozen", Follower, shim,
				onBoth("cut", "freeze", faultLasts)),
		} {
			sc.Budget = cut
			if sc.Fault == "one-cut-one-frozen" {
				sc.Budget = frozen
			}
			scs = append(scs, sc)
		}
		scs = append(scs, double("second-during-return", "a follower is cut and comes back; as it returns another one is cut", Follower, shim,
			Step{Text: "cut the first", Mark: Inflicted, Wait: faultLasts, Do: on(first, "cut")},
			Step{Text: "heal the first and cut the second at once", Mark: Noted, Wait: faultLasts, Do: relay}))
		scs[len(scs)-1].Budget = cut
	}
	return scs
}

func first(st *Stage) *realetcd.Member  { return st.Target }
func second(st *Stage) *realetcd.Member { return st.Second }

// on inflicts a fault of the table on one member.
func on(which func(*Stage) *realetcd.Member, fault string) func(context.Context, *Stage) error {
	f := FaultNamed(fault)
	return func(ctx context.Context, st *Stage) error { return st.Inflict(ctx, f, which(st)) }
}

// onBoth inflicts one fault on the target and one on the second member.
func onBoth(a, b string, wait time.Duration) Step {
	return Step{Text: a + " and " + b, Mark: Inflicted, Wait: wait, Do: func(ctx context.Context, st *Stage) error {
		if err := on(first, a)(ctx, st); err != nil {
			return err
		}
		return on(second, b)(ctx, st)
	}}
}

// relay heals the target and cuts the second member 300 ms later: the first has not been
// good for long enough to be trusted again.
func relay(ctx context.Context, st *Stage) error {
	if err := st.Lift(ctx); err != nil {
		return err
	}
	if err := sleep(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	return on(second, "cut")(ctx, st)
}
