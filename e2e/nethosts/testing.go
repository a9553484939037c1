//go:build linux

package nethosts

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// required is the value of -lab and of labEnv with which tests that find no lab
// fail; with off all of them are skipped.
const (
	required = "required"
	off      = "off"
	labEnv   = "QUORUMWISE_LAB"
	turnEnv  = "QUORUMWISE_LAB_TURN"
)

// tests is what EnterTests found: written there, read by tests.
var tests struct {
	entered bool
	turn    *os.File // held while the process lives
	need    *string
	missing *MissingError
}

// EnterTests is [Enter] for TestMain, as its first line:
//
//	func TestMain(m *testing.M) {
//		nethosts.EnterTests()
//		os.Exit(m.Run())
//	}
//
// Where there can be no lab, the tests that call [Need] are skipped with the
// reason. With the flag -lab=required, or QUORUMWISE_LAB=required in the
// environment (for many packages at once, of which some do not know the flag),
// they fail. With "off" they are skipped everywhere: for runs that are about
// something else.
func EnterTests() {
	tests.entered = true
	tests.need = flag.String("lab", os.Getenv(labEnv), `"required": tests that need a lab of hosts fail where there is none, instead of being skipped; "off": they are skipped`)
	if slices.ContainsFunc(os.Args, isFuzzWorker) {
		tests.missing = &MissingError{What: []string{"a lab for a fuzz worker: fuzz what needs none"}}
		return
	}
	err := Enter()
	switch {
	case errors.As(err, &tests.missing):
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case os.Getenv(labEnv) != off && os.Getenv(turnEnv) == "":
		tests.turn = takeTurn()
		_ = os.Setenv(turnEnv, "taken") // programs that the tests start are part of it
	}
}

// takeTurn waits until no other test program of this user has a lab: go test runs
// packages side by side, and what labs show about time is worth nothing on a machine
// that is busy with other labs. The turn ends with the process. Where it cannot be
// had, because there is no home directory for example, tests go on without.
func takeTurn() *os.File {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	dir := filepath.Join(cache, "quorumwise")
	if os.MkdirAll(dir, 0o755) != nil {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, "lab.lock"), os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		fmt.Fprintf(os.Stderr, "nethosts: waiting until the tests that hold %s have ended\n", f.Name())
		for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		}
	}
	return f // with an error too: closed or not, it is no turn
}

// isFuzzWorker knows the flag of a process that go test -fuzz starts. It speaks
// with that through descriptors which would not come along.
func isFuzzWorker(arg string) bool {
	return strings.TrimLeft(arg, "-") == "test.fuzzworker"
}

// TestMain is the whole of TestMain for a package whose tests need a lab and
// nothing else.
func TestMain(m interface{ Run() int }) {
	EnterTests()
	os.Exit(m.Run())
}

// Need skips a test that needs a lab where there is none, with what is missing as
// the reason, or fails it if labs are required.
func Need(t testing.TB) {
	t.Helper()
	switch {
	case !tests.entered:
		t.Fatal("nethosts: TestMain has to call EnterTests first")
	case *tests.need == off:
		t.Skip("labs are switched off by -lab or " + labEnv)
	case tests.missing == nil:
	case *tests.need == required:
		t.Fatal(tests.missing)
	default:
		t.Skip(tests.missing)
	}
}

// ForTest is a lab for one test, closed at its end. The test is skipped or fails
// as [Need] says.
func ForTest(t testing.TB, cfg Config) *Lab {
	t.Helper()
	Need(t)
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}
