//go:build linux

package realetcd

import (
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/servershim/cmd/quorumshim/command"
)

// Programs that this binary runs as on members' hosts.
const (
	sidecarProgram = "realetcd-quorumshim"
	memberProgram  = "realetcd-member"
)

// Register makes this binary able to run as a sidecar and as a member with a shim
// inside. Call it before nethosts.Enter; calling it again does nothing.
func Register() { register() }

var register = sync.OnceFunc(func() {
	nethosts.Register(sidecarProgram, func() int { return command.Run(os.Args[1:]) })
	nethosts.Register(memberProgram, func() int { return runEmbedded(os.Args[1:]) })
})

// environment is what members and sidecars get: nothing that changes their flags behind our back,
// and no proxy, which etcd would send what it tells its peers to.
func environment(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "ETCD_") || strings.HasPrefix(name, "QUORUMSHIM_") || strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
}
