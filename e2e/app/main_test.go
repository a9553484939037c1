package app

import (
	"os"
	"testing"
)

// programEnv makes the test binary the application's program.
const programEnv = "QUORUMWISE_APP_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}
