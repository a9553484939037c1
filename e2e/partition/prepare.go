//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/suites"
)

// servers finds and makes etcd servers.
type servers interface {
	Build(ctx context.Context, version string) (path string, err error)
	Version(ctx context.Context, binary string) (string, error)
}

type realServers struct{}

func (realServers) Build(ctx context.Context, version string) (string, error) {
	return realetcd.Build(ctx, version)
}

func (realServers) Version(ctx context.Context, binary string) (string, error) {
	return realetcd.Version(ctx, binary)
}

// prepared is what was found out and made outside, where there is a network. It goes
// into the lab by the environment.
type prepared struct {
	Binary  string // absolute path of the etcd server
	Version string // what it says of itself
	Seed    int64
}

const preparedEnv = "QUORUMWISE_PARTITION_PREPARED"

// hand puts it where the same program will find it inside.
func (p prepared) hand() error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return os.Setenv(preparedEnv, string(text))
}

// findPrepared gives nil outside.
func findPrepared() (*prepared, error) {
	text := os.Getenv(preparedEnv)
	if text == "" {
		return nil, nil
	}
	p := new(prepared)
	if err := json.Unmarshal([]byte(text), p); err != nil {
		return nil, usagef("%s is set, to %q: unset it", preparedEnv, text)
	}
	return p, nil
}

// dropPrepared keeps it from programs that the lab starts.
func dropPrepared() { _ = os.Unsetenv(preparedEnv) }

// versionTime bounds the wait for a program that may be anything.
const versionTime = 10 * time.Second

// prepare finds the etcd server, and makes those that scenarios name.
func prepare(ctx context.Context, set settings, scs []suites.Scenario, from servers, tell io.Writer) (*prepared, error) {
	p := &prepared{Seed: set.seed}
	if p.Seed == 0 {
		p.Seed = 1 + rand.Int64N(1e9) // short enough to type
	}
	var err error
	if set.etcd != "" {
		p.Binary, p.Version, err = given(ctx, set.etcd, from)
	} else {
		p.Binary, p.Version, err = built(ctx, set.etcdVersion, from, tell)
	}
	if err != nil {
		return nil, err
	}
	buildOthers(ctx, scs, from, tell)
	return p, context.Cause(ctx)
}

// given asks the user's binary for its version.
func given(ctx context.Context, path string, from servers) (binary, version string, err error) {
	if binary, err = filepath.Abs(path); err != nil { // hosts have working directories of their own
		return "", "", usagef("--etcd %s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	if version, err = from.Version(ctx, binary); err != nil {
		return "", "", usagef("--etcd %s is no etcd server: %w", path, err)
	}
	if err := realetcd.Supported(version); err != nil {
		return "", "", usagef("--etcd %s: %w", path, err)
	}
	return binary, version, nil
}

func built(ctx context.Context, want string, from servers, tell io.Writer) (binary, version string, err error) {
	binary, err = build(ctx, want, from, tell)
	if _, ok := errors.AsType[*realetcd.UnknownVersionError](err); ok {
		return "", "", usagef("--etcd-version %s: %w", want, err)
	}
	if err == nil {
		version, err = from.Version(ctx, binary)
	}
	if err != nil {
		return "", "", &missingError{err}
	}
	return binary, version, nil
}

// buildOthers makes the servers that scenarios name. One that cannot be had breaks those
// scenarios, and no other.
func buildOthers(ctx context.Context, scs []suites.Scenario, from servers, tell io.Writer) {
	var done []string
	for _, sc := range scs {
		for _, v := range named(sc) {
			if slices.Contains(done, v) {
				continue
			}
			done = append(done, v)
			if _, err := build(ctx, v, from, tell); err != nil && ctx.Err() == nil {
				fmt.Fprintf(tell, "partition: etcd %s, which some scenarios need, cannot be had: %v\n", v, err)
			}
		}
	}
}

// named are the versions of etcd that a scenario plays whatever the user has given.
func named(sc suites.Scenario) []string {
	var versions []string
	if sc.Version != "" {
		versions = append(versions, sc.Version)
	}
	if sc.Upgrades {
		versions = append(versions, version.Version)
	}
	return versions
}

// patience is how long a build may take in silence. One from the cache takes no time.
const patience = 2 * time.Second

func build(ctx context.Context, version string, from servers, tell io.Writer) (string, error) {
	name := "etcd " + version
	if version == "" {
		name = "etcd"
	}
	said := time.AfterFunc(patience, func() {
		fmt.Fprintf(tell, "partition: building %s from the module proxy; it is kept for the next time ...\n", name)
	})
	defer said.Stop()
	return from.Build(ctx, version)
}
