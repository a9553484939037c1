//go:build linux

package app

import (
	"os"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// programEnv makes the test binary the application's program, without a lab.
const programEnv = "QUORUMWISE_APP_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		os.Exit(Main())
	}
	Register()
	realetcd.Register()
	nethosts.EnterTests()
	os.Exit(m.Run())
}
