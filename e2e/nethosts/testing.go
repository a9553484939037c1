package nethosts

import (
	"os"
	"testing"
)

// EnterTests is the first line of TestMain in a package whose tests need a lab.
// It is Enter with the flag -lab=required.
func EnterTests() {}

// TestMain is the whole of TestMain for a package whose tests need a lab.
func TestMain(m interface{ Run() int }) {
	EnterTests()
	os.Exit(m.Run())
}

// Need skips a test that needs a lab where there is none, and says what is
// missing. With -lab=required (or QUORUMWISE_LAB=required) it fails instead.
func Need(t testing.TB) { t.Helper() }
