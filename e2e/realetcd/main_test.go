package realetcd

import (
	"os"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

func TestMain(m *testing.M) {
	Register()
	nethosts.EnterTests()
	os.Exit(m.Run())
}
