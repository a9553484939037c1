//go:build linux

package suites

import (
	"fmt"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// minors are the versions of the server that are supported, each in its newest patch.
// previousMinor is the one that clusters are upgraded from.
var minors = []string{"3.5", "3.6", "3.7"}

const previousMinor = "3.6"

// core is what of the matrix is played on every version: one of each kind of fault.
var core = []struct {
	fault string
	role  Role
}{
	{"cut", Follower}, {"cut", Leader}, {"freeze", Follower}, {"link", Follower}, {"client-cut", Follower},
}

// versions are the core of the matrix on every supported version of the server, with
// sidecars and without shims, and a change of leader on healthy members.
func versions() []Scenario {
	var scs []Scenario
	for _, version := range minors {
		for _, shim := range []realetcd.Shim{realetcd.ShimSidecar, realetcd.ShimNone} {
			for _, c := range core {
				sc := FaultNamed(c.fault).scenario(c.role, 3, shim)
				sc.Name = fmt.Sprintf("%s-%s-%s-%s", version, c.fault, c.role, shimWord(shim))
				scs = append(scs, onVersion(version, sc))
			}
			scs = append(scs, onVersion(version, Scenario{
				Name: fmt.Sprintf("%s-leadership-transferred-%s", version, shimWord(shim)), Fault: "leadership-transferred", Members: 3, Shim: shim, Control: Unharmed,
				Does:  fmt.Sprintf("of 3 members the leader hands over three times; shim: %v", shim),
				Steps: []Step{repeated("transfer leadership", 3, transferTakes, transferLeadership)},
			}))
		}
	}
	return scs
}

func onVersion(version string, sc Scenario) Scenario {
	sc.Suite, sc.Version, sc.Quick = "versions", version, false
	sc.Does = fmt.Sprintf("etcd %s: %s", version, sc.Does)
	return sc
}
