//go:build linux

package realetcd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// script puts an executable shell script named name into dir.
func script(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// withGo makes a script the only Go tool; the cache is empty.
func withGo(t *testing.T, text string) (cache string) {
	t.Helper()
	bin, cache := t.TempDir(), t.TempDir()
	if text != "" {
		script(t, bin, "go", text)
	}
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	t.Setenv("XDG_CACHE_HOME", cache)
	return filepath.Join(cache, "quorumwise")
}

// fakeGo builds a "server" that tells the version that was asked for.
const fakeGo = `
case "$1" in
list) echo "v3.5.0 v3.6.2 v3.6.10 v3.7.0-rc.0" ;;
get) echo "${2##*@v}" > version ;;
build)
	[ -n "$BUILDS" ] && echo . >> "$BUILDS"
	for last; do [ "$prev" = -o ] && out=$last; prev=$last; done
	printf '#!/bin/sh\necho "etcd Version: %s"\n' "$(cat version)" > "$out"; chmod +x "$out" ;;
esac`

func TestBuildKeepsOneBinaryForEachVersion(t *testing.T) {
	cache := withGo(t, fakeGo)
	builds := filepath.Join(t.TempDir(), "builds")
	t.Setenv("BUILDS", builds)
	var failed atomic.Int32
	done := make(chan struct{})
	const callers = 4
	for range callers {
		go func() {
			defer func() { done <- struct{}{} }()
			if path, err := Build(t.Context(), "3.6"); err != nil || path != filepath.Join(cache, "etcd-3.6.10") {
				t.Errorf("Build(3.6) = %s, %v; want the newest patch in %s", path, err, cache)
				failed.Add(1)
			}
		}()
	}
	for range callers {
		<-done
	}
	if failed.Load() > 0 {
		t.FailNow()
	}
	if got, _ := os.ReadFile(builds); len(got) != len(".\n") {
		t.Errorf("%d builds; want 1: runs at the same time share it", len(got)/2)
	}
	if v, err := Version(t.Context(), filepath.Join(cache, "etcd-3.6.10")); err != nil || v != "3.6.10" {
		t.Errorf("Version = %q, %v; want 3.6.10", v, err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, ".*build*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestBuildSaysWhatIsWrongAndWhatCanBeDone(t *testing.T) {
	for name, tc := range map[string]struct {
		goTool, version string
		want            []string
	}{
		"a version that is none":       {fakeGo, "newest", []string{`"newest"`, "such as 3.6"}},
		"too old a version":            {fakeGo, "3.4", []string{"3.4", "3.5"}},
		"a patch that does not exist":  {`[ "$1" = get ] && echo "403 Forbidden" >&2 && exit 1` + fakeGo, "3.6.99", []string{"3.6.99", "3.6.2, 3.6.10"}},
		"a minor that does not exist":  {fakeGo, "3.9", []string{"3.9", "3.5.0, 3.6.10"}},
		"a proxy that refuses":         {`echo "dial tcp: lookup proxy: no such host" >&2; exit 1`, "3.6.2", []string{"no such host", "GOPROXY", "before nethosts.Enter"}},
		"a Go tool that is too old":    {`echo "requires go >= 1.99" >&2; exit 1`, "3.6.2", []string{"newer Go", "GOTOOLCHAIN"}},
		"a binary of another version":  {strings.Replace(fakeGo, `"${2##*@v}"`, "3.6.1", 1), "3.6.2", []string{"3.6.2", "3.6.1"}},
		"a build that does not finish": {`[ "$1" = build ] && echo "undefined: x" >&2 && exit 1` + fakeGo, "3.6.2", []string{"undefined: x"}},
	} {
		t.Run(name, func(t *testing.T) {
			cache := withGo(t, tc.goTool)
			_, err := Build(t.Context(), tc.version)
			if err == nil {
				t.Fatal("it was built")
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(cache, "etcd-*[0-9]")); len(left) > 0 {
				t.Errorf("%v was left in the cache: the next run would take it for good", left)
			}
		})
	}
	t.Run("no Go tool", func(t *testing.T) {
		withGo(t, "")
		t.Setenv("PATH", t.TempDir())
		if _, err := Build(t.Context(), "3.6.2"); err == nil || !strings.Contains(err.Error(), "install Go") {
			t.Errorf("Build = %v; want a word on how to get the Go tool", err)
		}
	})
	t.Run("no such version is told by type", func(t *testing.T) {
		withGo(t, fakeGo)
		var unknown *UnknownVersionError
		if _, err := Build(t.Context(), "3.9"); !errors.As(err, &unknown) || unknown.Version != "3.9" {
			t.Errorf("Build(3.9) = %v; want an UnknownVersionError", err)
		}
	})
}

// Inside a lab there is no proxy: the newest patch is then the newest that was built before.
func TestBuildWithoutAProxyTakesTheNewestThatIsThere(t *testing.T) {
	cache := withGo(t, fakeGo)
	want, err := Build(t.Context(), "3.6")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(want, filepath.Join(cache, "etcd-3.6.9999")); err != nil {
		t.Fatal(err)
	}
	script(t, strings.Split(os.Getenv("PATH"), ":")[0], "go", "echo no network >&2; exit 1")
	if got, err := Build(t.Context(), "3.6"); err != nil || got != filepath.Join(cache, "etcd-3.6.9999") {
		t.Errorf("Build(3.6) = %s, %v; want the one in the cache", got, err)
	}
}

func TestBuildWaitsForAnotherRunNoLongerThanItsContext(t *testing.T) {
	cache := withGo(t, fakeGo)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := lock(t.Context(), filepath.Join(cache, "etcd.lock"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Build(ctx, "3.6.2"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another run") {
		t.Errorf("Build = %v; want the deadline, and who holds the lock", err)
	}
	unlock()
	if _, err := Build(t.Context(), "3.6.2"); err != nil {
		t.Errorf("Build after the other run = %v", err)
	}
}

func TestVersionOfWhatIsNoServer(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "missing"), script(t, dir, "other", "echo hello"), script(t, dir, "failing", "exit 3")} {
		if v, err := Version(t.Context(), path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Version(%s) = %q, %v; want an error that names it", path, v, err)
		}
	}
}
