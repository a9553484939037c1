//go:build linux

package suites

import (
	"fmt"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// cells are those that there have to be, written down by themselves: the flags in the table of faults
// are what is tested.
func cells() map[string]Scenario {
	all := []realetcd.Shim{realetcd.ShimSidecar, realetcd.ShimInProcess, realetcd.ShimNone}
	both := []Role{Follower, Leader}
	want := make(map[string]Scenario)
	for _, of := range []struct {
		faults []string
		roles  []Role
		shims  []realetcd.Shim
	}{
		{[]string{"cut", "one-way-in", "one-way-out", "loss", "delay", "rate", "freeze", "kill", "kill-restart", "disk-hang", "disk-slow", "memory", "cpu", "client-cut"}, both, all},
		{[]string{"freeze-shim", "freeze-both", "kill-shim"}, both, all[:1]}, // elsewhere there is no such process
		{[]string{"link"}, both[:1], all},                                    // a leader has no link to itself
		{[]string{"client-cut-all", "clock-step"}, []Role{Nobody}, all},
	} {
		for _, fault := range of.faults {
			for _, role := range of.roles {
				for _, members := range []int{3, 5} {
					for _, shim := range of.shims {
						sc := Scenario{Suite: "matrix", Fault: fault, Target: role, Members: members, Shim: shim}
						sc.Name = fmt.Sprintf("%s-%d-%s", fault, members, map[realetcd.Shim]string{all[0]: "sidecar", all[1]: "in-process", all[2]: "none"}[shim])
						if role != Nobody {
							sc.Name, sc.Fault = string(role)+"-"+sc.Name, string(role)+" "+fault
						}
						want[sc.Name] = sc
					}
				}
			}
		}
	}
	return want
}

func TestMatrixHasEachFaultOnEachKindOfMemberClusterAndShimOnce(t *testing.T) {
	missing := cells()
	if len(missing) != 198 {
		t.Fatalf("%d cells are wanted; there are 198", len(missing))
	}
	for _, got := range matrix() {
		want, ok := missing[got.Name]
		if !ok {
			t.Errorf("%s is there twice, or should not be there", got.Name)
			continue
		}
		delete(missing, got.Name)
		if got.Suite != want.Suite || got.Fault != want.Fault || got.Target != want.Target || got.Members != want.Members || got.Shim != want.Shim {
			t.Errorf("%s: suite %s, fault %q, target %q, %d members, shim %v; want what its name says", got.Name, got.Suite, got.Fault, got.Target, got.Members, got.Shim)
		}
	}
	for name := range missing {
		t.Errorf("%s is missing", name)
	}
}
