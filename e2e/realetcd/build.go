//go:build linux

package realetcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

const serverModule = "go.etcd.io/etcd/server/v3"

// Build returns the path of an etcd server of a version, such as 3.6.16, or 3.6 for
// its newest patch; "" is the version that this module uses. What is not yet in the
// cache, quorumwise/etcd-VERSION below os.UserCacheDir, is built there with the Go
// tool from source that comes through the module proxy. An error is an
// [UnknownVersionError] when there is no such version.
//
// Inside a lab the Go tool runs in the network outside, see nethosts.Outside. Where
// that is not allowed, which is so without root, call Build before nethosts.Enter as
// well: inside, the same call finds the cache.
func Build(ctx context.Context, want string) (path string, err error) {
	if want == "" {
		want = version.Version
	}
	r, err := parseRelease(want)
	if err != nil {
		return "", err
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("realetcd: no directory to keep etcd %v in: %w: set XDG_CACHE_HOME or HOME, or give the path of an etcd binary", r, err)
	}
	b := builder{dir: filepath.Join(dir, "quorumwise")}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return "", fmt.Errorf("realetcd: no directory to keep etcd %v in: %w: set XDG_CACHE_HOME, or give the path of an etcd binary", r, err)
	}
	return b.build(ctx, r)
}

// Version asks an etcd binary for its version, such as 3.6.16.
func Version(ctx context.Context, binary string) (string, error) {
	cmd := exec.CommandContext(ctx, binary, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("realetcd: %s --version: %w: want the path of an etcd server", binary, errors.Join(err, context.Cause(ctx)))
	}
	for line := range strings.Lines(string(out)) {
		if v, ok := strings.CutPrefix(line, "etcd Version: "); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", fmt.Errorf("realetcd: %s --version printed no line \"etcd Version: ...\": want the path of an etcd server; it printed %.200q", binary, out)
}

// builder keeps binaries in dir.
type builder struct{ dir string }

func (b builder) path(r release) string { return filepath.Join(b.dir, "etcd-"+r.String()) }

func (b builder) build(ctx context.Context, r release) (string, error) {
	r, err := b.resolve(ctx, r)
	if err != nil {
		return "", err
	}
	if b.has(r) {
		return b.path(r), nil
	}
	unlock, err := lock(ctx, filepath.Join(b.dir, "etcd.lock")) // one build at a time: it takes every core
	if err != nil {
		return "", fmt.Errorf("realetcd: build etcd %v: %w", r, err)
	}
	defer unlock()
	if b.has(r) { // somebody else has built it meanwhile
		return b.path(r), nil
	}
	return b.path(r), b.make(ctx, r)
}

// has says whether the binary is there. Only whole ones get their name.
func (b builder) has(r release) bool {
	info, err := os.Stat(b.path(r))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// resolve finds the newest patch if none was named. Where the proxy cannot be asked, the newest one
// that was built here, or that this code knows of, has to do.
func (b builder) resolve(ctx context.Context, r release) (release, error) {
	if r.patch != anyPatch {
		return r, nil
	}
	known, err := b.list(ctx)
	if err != nil {
		known = slices.Concat(b.cached(), newestKnown)
	}
	if best, ok := newestPatch(r, known); ok {
		return best, nil
	}
	if err != nil {
		return release{}, err
	}
	return release{}, &UnknownVersionError{Version: r.String(), Known: choices(r, known)}
}

func (b builder) cached() []release {
	paths, _ := filepath.Glob(filepath.Join(b.dir, "etcd-*")) // the pattern is well-formed
	var built []release
	for _, path := range paths {
		if r, err := parseRelease(strings.TrimPrefix(filepath.Base(path), "etcd-")); err == nil && b.has(r) {
			built = append(built, r)
		}
	}
	return built
}

func (b builder) list(ctx context.Context) ([]release, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	scratch, err := os.MkdirTemp("", "realetcd")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	if err := writeScratchModule(scratch); err != nil {
		return nil, err
	}
	out, err := runGo(ctx, scratch, "list", "-mod=mod", "-m", "-versions", "-f", `{{join .Versions " "}}`, serverModule)
	if err != nil {
		return nil, err
	}
	return parseReleases(out), nil
}

func writeScratchModule(dir string) error {
	return os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module scratch\n"), 0o644)
}

// make builds beside the place where the binary belongs, and renames: whoever looks sees a whole
// one or none. A scratch module takes no heed of etcd's own replace and toolchain directives,
// which hold only in its own repository.
func (b builder) make(ctx context.Context, r release) error {
	scratch := filepath.Join(b.dir, "."+r.String()+".build")
	// One that was killed has left its own. We hold the lock.
	if err := errors.Join(os.RemoveAll(scratch), os.Mkdir(scratch, 0o755)); err != nil {
		return fmt.Errorf("realetcd: build etcd %v: %w", r, err)
	}
	defer os.RemoveAll(scratch)
	if err := writeScratchModule(scratch); err != nil {
		return fmt.Errorf("realetcd: build etcd %v: %w", r, err)
	}
	if _, err := runGo(ctx, scratch, "get", serverModule+"@v"+r.String()); err != nil {
		return b.explain(ctx, r, err)
	}
	made := filepath.Join(scratch, "etcd")
	if _, err := runGo(ctx, scratch, "build", "-mod=mod", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", made, serverModule); err != nil {
		return b.explain(ctx, r, err)
	}
	got, err := Version(ctx, made)
	if err != nil {
		return err
	}
	if got != r.String() {
		return fmt.Errorf("realetcd: what was built as etcd %v says that it is %s: give the path of an etcd binary instead", r, got)
	}
	return os.Rename(made, b.path(r))
}

// explain adds what the user can do.
func (b builder) explain(ctx context.Context, r release, err error) error {
	var failed *goError
	if !errors.As(err, &failed) {
		return err
	}
	if known, err := b.list(ctx); err == nil && !slices.Contains(known, r) {
		return &UnknownVersionError{Version: r.String(), Known: choices(r, known)}
	}
	switch {
	case failed.says("requires go >="):
		return fmt.Errorf("realetcd: etcd %v needs a newer Go than this one (%s): install it, allow GOTOOLCHAIN=auto, or give the path of an etcd binary: %w", r, runtime.Version(), err)
	default:
		return fmt.Errorf("realetcd: etcd %v cannot be built from the module proxy (look at go env GOPROXY, call Build before nethosts.Enter where it has no network afterwards, or give the path of an etcd binary): %w", r, err)
	}
}

// goError is a failed run of the Go tool.
type goError struct {
	args   []string
	err    error
	output string
}

// Error ends with the end of the output, where the Go tool says why.
func (e *goError) Error() string {
	end := strings.TrimSpace(e.output)
	if lines := strings.Split(end, "\n"); len(lines) > 8 {
		end = strings.Join(lines[len(lines)-8:], "\n")
	}
	return fmt.Sprintf("go %s: %v: %s", strings.Join(e.args, " "), e.err, end)
}

func (e *goError) Unwrap() error { return e.err }

// says looks for the Go tool's words; it has no other way of telling.
func (e *goError) says(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(e.output, w) })
}

// runGo returns the standard output of the Go tool.
func runGo(ctx context.Context, dir string, args ...string) (string, error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf("realetcd: etcd is built with the Go tool, and there is none in PATH: install Go (https://go.dev/dl), or give the path of an etcd binary: %w", err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GO111MODULE=on", "GOWORK=off", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	if err := nethosts.Outside(cmd.Run); err != nil {
		return "", &goError{args, errors.Join(err, context.Cause(ctx)), stderr.String()}
	}
	return stdout.String(), nil
}

// lock holds the file's lock; the kernel gives it up when its holder dies.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("another run holds %s: %w", path, context.Cause(ctx))
		}
	}
}
