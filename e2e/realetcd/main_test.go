//go:build linux

package realetcd

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

func TestMain(m *testing.M) {
	Register()
	// Workers of a fuzzing run are talked to by descriptors that a new process would not have.
	fuzzing := slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "-test.fuzz=") || arg == "-test.fuzzworker" })
	if !fuzzing {
		nethosts.EnterTests()
	}
	os.Exit(m.Run())
}
