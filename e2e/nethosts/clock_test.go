//go:build linux

package nethosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestWallClockOfASteppedProgramStepsAndItsMonotonicClockDoesNot(t *testing.T) {
	program, err := SteppedBinary(t.Context(), "./testdata/stepclock", t.TempDir())
	var unavailable *UnavailableError
	if errors.As(err, &unavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []time.Duration{time.Hour, -time.Hour, 1500 * time.Millisecond, -700 * time.Millisecond} {
		out, err := exec.Command(program, step.String()).CombinedOutput()
		if err != nil {
			t.Fatalf("a program that steps by %v: %v: %s", step, err, out)
		}
		var wall, mono, timer time.Duration
		if _, err := fmt.Sscan(string(out), &wall, &mono, &timer); err != nil {
			t.Fatalf("reading %q: %v", out, err)
		}
		// What passed meanwhile is in both: a busy machine may stop the program there.
		if off := (wall - mono - step).Abs(); off > 20*time.Millisecond {
			t.Errorf("stepped by %v the wall clock went %v and the monotonic one %v, want the step between them", step, wall, mono)
		}
		if mono < 0 || mono > 10*time.Second { // nor was it stepped with the other: there would be nothing between them
			t.Errorf("stepped by %v the monotonic clock went %v, want it untouched", step, mono)
		}
		if timer < 50*time.Millisecond || timer > 10*time.Second {
			t.Errorf("after a step by %v a timer of 50ms took %v, want timers untouched", step, timer)
		}
	}
}

func TestOrdinaryProgramSaysThatItsClockCannotBeStepped(t *testing.T) {
	if err := StepWallClock(time.Hour); !errors.Is(err, ErrNoStep) {
		t.Errorf("got %v, want ErrNoStep: a silent no would pass for a step", err)
	}
}

func TestPackageThatIsNotFoundIsUnavailable(t *testing.T) {
	const pkg = "github.com/quorumwise/quorumwise/e2e/nethosts/testdata/stepclock"
	t.Chdir(t.TempDir())
	_, err := SteppedBinary(t.Context(), pkg, t.TempDir())
	if u := new(UnavailableError); !errors.As(err, &u) || !strings.Contains(err.Error(), "start it in a checkout") {
		t.Errorf("got %v, want an UnavailableError that tells the way out", err)
	}
}

func TestPackageThatDoesNotCompileIsNoMissingClock(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.go")
	if err := os.WriteFile(broken, []byte("package main\n\nfunc main() { missing() }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := SteppedBinary(t.Context(), broken, t.TempDir())
	if u := new(UnavailableError); err == nil || errors.As(err, &u) {
		t.Errorf("got %v, want an error that does not read as unavailable: the scenario would be skipped", err)
	}
}

func TestRuntimeThatIsNotAsExpectedIsToldSo(t *testing.T) {
	goroot, err := goRoot(t.Context())
	if err != nil {
		t.Skip(err)
	}
	root := os.DirFS(goroot)
	for arch, files := range stepEdits {
		whole := fstest.MapFS{}
		for name := range files {
			content, err := fs.ReadFile(root, name)
			if err != nil {
				t.Fatal(err)
			}
			whole[name] = &fstest.MapFile{Data: content}
		}
		if overlay, err := stepOverlay(whole, "/go", arch); err != nil || len(overlay) != len(files) {
			t.Errorf("%s: this tool chain's runtime gives %d files and %v, want %d and no error", arch, len(overlay), err, len(files))
		}
		for name, edits := range files {
			content := whole[name].Data
			for _, e := range edits {
				whole[name].Data = bytes.ReplaceAll(content, []byte(e.old), nil)
				if _, err := stepOverlay(whole, "/go", arch); err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("%s: %s without %q: got %v, want an error that names the file", arch, name, e.old, err)
				}
			}
			whole[name].Data = content
		}
	}
	if _, err := stepOverlay(root, "/go", "riscv64"); err == nil || !strings.Contains(err.Error(), "riscv64") {
		t.Errorf("got %v, want an error that names the architecture", err)
	}
}

// Ctrl-C in the middle of a build kills it.
func TestWhatKilledBuildsHaveLeftGoesWithTheNext(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	alive, remove, err := workDirectory(cache)
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(cache, workPrefix+"dead")
	if err := os.MkdirAll(filepath.Join(dead, "program"), 0o755); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(cache, "stepped-stepclock-1234")
	if err := os.WriteFile(kept, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	mine, removeMine, err := workDirectory(cache)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{alive: true, dead: false, kept: true, mine: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
	remove()
	removeMine()
	if left, err := os.ReadDir(cache); len(left) != 1 || err != nil {
		t.Errorf("in the end there are %v, %v; want only the program", left, err)
	}
}

func TestNoToolChainIsUnavailable(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := SteppedBinary(context.Background(), ".", t.TempDir())
	if u := new(UnavailableError); !errors.As(err, &u) || !strings.Contains(err.Error(), "install Go") {
		t.Errorf("got %v, want an UnavailableError that tells the way out", err)
	}
}
