//go:build linux

package nethosts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// A clock step is a fault of one program, not of the machine: other runs share
// the machine's wall clock, and a time namespace offsets only the clocks that
// never step. So the program is built with a Go runtime whose wall clock has an
// offset. What it reads of the monotonic clock, and its timers, are the
// machine's, as after a real step.

// stepTag is the build tag of programs whose wall clock can be stepped.
const stepTag = "quorumwise_stepclock"

// ErrNoStep is returned by [StepWallClock] in a program that was built with the
// ordinary runtime.
var ErrNoStep = errors.New("nethosts: this program's wall clock cannot be stepped: it was built with the ordinary Go runtime, build it with SteppedBinary")

// StepWallClock moves the wall clock of this process by d, back where d is
// negative. Steps add up. Only a program built by [SteppedBinary] can; elsewhere
// it is ErrNoStep.
func StepWallClock(d time.Duration) error {
	if !canStep {
		return ErrNoStep
	}
	stepWallClock(int64(d))
	return nil
}

// SteppedBinary builds the main package pkg (an import path, or a path relative
// to the working directory) into cacheDir with a runtime whose wall clock
// [StepWallClock] can move, and returns the program's path. The first build
// compiles the standard library anew, a minute on two cores; later ones find it
// in Go's build cache. It is an [UnavailableError] where there is no Go tool
// chain, or one whose runtime reads the clock in a way that is not known here;
// or where the go command
// does not find the package from the working directory; one that does not compile is an
// ordinary error.
func SteppedBinary(ctx context.Context, pkg, cacheDir string) (string, error) {
	goroot, err := goRoot(ctx)
	if err != nil {
		return "", noStep(err.Error())
	}
	if err := findable(ctx, pkg); err != nil {
		return "", noStep(err.Error())
	}
	overlay, err := stepOverlay(os.DirFS(goroot), goroot, runtime.GOARCH)
	if err != nil {
		return "", noStep(err.Error())
	}
	work, remove, err := workDirectory(cacheDir)
	if err != nil {
		return "", fmt.Errorf("nethosts: a program with a stepped clock: %w", err)
	}
	defer remove()
	// Builds at once do not meet: each writes elsewhere and renames.
	built := filepath.Join(work, "program")
	if err := buildStepped(ctx, pkg, built, work, overlay); err != nil {
		return "", err
	}
	path := filepath.Join(cacheDir, steppedName(pkg))
	if err := os.Rename(built, path); err != nil {
		return "", fmt.Errorf("nethosts: a program with a stepped clock: %w", err)
	}
	return path, nil
}

// workPrefix begins the name of every directory that something is built in.
const workPrefix = "build-"

// workDirectory makes a directory in cacheDir for one build. Its lock says that the
// build lives: directories without one are left of builds that were killed, and go.
func workDirectory(cacheDir string) (dir string, remove func(), err error) {
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return "", nil, err
	}
	dead, err := filepath.Glob(filepath.Join(cacheDir, workPrefix+"*"))
	if err != nil {
		return "", nil, err
	}
	for _, old := range dead {
		if lock, _ := lockDirectory(old); lock != nil { // what cannot be locked stays
			_ = os.RemoveAll(old)
			lock.Close()
		}
	}
	for {
		if dir, err = os.MkdirTemp(cacheDir, workPrefix); err != nil {
			return "", nil, err
		}
		lock, err := lockDirectory(dir)
		if err != nil {
			return "", nil, errors.Join(err, os.Remove(dir))
		}
		if lock != nil {
			return dir, func() { _ = os.RemoveAll(dir); lock.Close() }, nil
		}
		// Another build took it for a dead one before it had its lock: once more.
	}
}

func noStep(why string) error {
	return &UnavailableError{What: "a step of the wall clock", Why: why}
}

// steppedName is readable and differs for packages whose last element is equal.
func steppedName(pkg string) string {
	sum := sha256.Sum256([]byte(pkg))
	return fmt.Sprintf("%s-stepclock-%x", filepath.Base(pkg), sum[:4])
}

// goRoot asks the go command: the program itself may have been built elsewhere.
func goRoot(ctx context.Context) (string, error) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return "", errors.New("the program must be built for it and there is no `go` in PATH: install Go (https://go.dev/dl)")
	}
	out, err := exec.CommandContext(ctx, goCommand, "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("`go env GOROOT` failed: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// findable says what to do where the go command cannot find a package: the program may
// have been started outside the module that it was built from.
func findable(ctx context.Context, pkg string) error {
	if out, err := exec.CommandContext(ctx, "go", "list", "-find", pkg).CombinedOutput(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the go command does not find %s from the working directory (%s): start it in a checkout of the module", pkg, bytes.TrimSpace(out))
	}
	return nil
}

// buildStepped runs the go command with the overlay, whose files lie in work.
func buildStepped(ctx context.Context, pkg, output, work string, overlay map[string][]byte) error {
	replace := map[string]string{}
	for original, content := range overlay {
		file := filepath.Join(work, filepath.Base(original))
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return fmt.Errorf("nethosts: a program with a stepped clock: %w", err)
		}
		replace[original] = file
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return fmt.Errorf("nethosts: a program with a stepped clock: %w", err)
	}
	listFile := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(listFile, list, 0o644); err != nil {
		return fmt.Errorf("nethosts: a program with a stepped clock: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", listFile, "-tags", stepTag, "-o", output, pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nethosts: building %s with a stepped clock: %w\n%s", pkg, err, bytes.TrimSpace(out))
	}
	return nil
}

// stepOverlay returns the changed files of the runtime by their full name. root
// holds the tree at goroot.
func stepOverlay(root fs.FS, goroot, arch string) (map[string][]byte, error) {
	files, ok := stepEdits[arch]
	if !ok || runtime.GOOS != "linux" {
		return nil, fmt.Errorf("the edits of the Go runtime that it takes are known for linux on amd64 and arm64, not for %s on %s: run it there", runtime.GOOS, arch)
	}
	overlay := map[string][]byte{}
	for name, edits := range files {
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, fmt.Errorf("this Go tool chain's runtime is not as expected (%w): use the version that go.mod names", err)
		}
		for _, e := range edits {
			if n := bytes.Count(content, []byte(e.old)); n != 1 {
				return nil, fmt.Errorf("this Go tool chain's runtime is not as expected (%s has %q %d times, not once): use the version that go.mod names",
					filepath.Join(goroot, name), strings.TrimSpace(e.old), n)
			}
			content = bytes.Replace(content, []byte(e.old), []byte(e.new), 1)
		}
		overlay[filepath.Join(goroot, name)] = content
	}
	return overlay, nil
}

// edit replaces what must stand in a file exactly once.
type edit struct{ old, new string }

// stepEdits are the edits to the runtime's files, by architecture. On amd64
// time.now is assembly, which gets another name; elsewhere it is Go.
var stepEdits = map[string]map[string][]edit{
	"amd64": {
		"src/runtime/time_linux_amd64.s": {
			{"TEXT time·now<ABIInternal>(SB)", "TEXT runtime·readClocks<ABIInternal>(SB)"},
		},
		"src/runtime/timeasm.go": {
			{"import _ \"unsafe\"\n", stepImports},
			{"func time_now() (sec int64, nsec int32, mono int64)\n", `func time_now() (sec int64, nsec int32, mono int64) {
	sec, nsec, mono = readClocks()
	sec, nsec = stepped(sec, nsec)
	return sec, nsec, mono
}

func readClocks() (sec int64, nsec int32, mono int64)
` + stepCode},
		},
	},
	"arm64": {
		"src/runtime/timestub.go": {
			{"import _ \"unsafe\"", stepImports},
			{"\tsec, nsec = walltime()\n\treturn sec, nsec, nanotime()\n}\n", `	sec, nsec = walltime()
	sec, nsec = stepped(sec, nsec)
	return sec, nsec, nanotime()
}
` + stepCode},
		},
	},
}

const stepImports = `import (
	"internal/runtime/atomic"
	_ "unsafe"
)
`

// stepCode is added to the runtime. The offset changes at any time from any
// goroutine; a reader sees one or the other.
const stepCode = `
var wallOffset atomic.Int64

//go:linkname stepWallClock github.com/quorumwise/quorumwise/e2e/nethosts.stepWallClock
func stepWallClock(d int64) { wallOffset.Add(d) }

func stepped(sec int64, nsec int32) (int64, int32) {
	offset := wallOffset.Load()
	sec += offset / 1e9
	nsec += int32(offset % 1e9)
	if nsec < 0 {
		return sec - 1, nsec + 1e9
	}
	if nsec >= 1e9 {
		return sec + 1, nsec - 1e9
	}
	return sec, nsec
}
`
