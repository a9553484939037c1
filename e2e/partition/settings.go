//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/suites"
)

// settings are what the user asks for. Zero is the default of each.
type settings struct {
	patterns    []string
	etcd        string
	etcdVersion string
	members     int
	duration    time.Duration
	seed        int64
	report      string
	parallel    int
}

const (
	fewestMembers = 3 // of fewer none may suffer
	mostMembers   = 9
	mostParallel  = 16
)

var versionForm = regexp.MustCompile(`^v?\d+\.\d+(\.\d+(-[0-9A-Za-z.-]+)?)?$`)

// check refuses what cannot work, before anything starts, and chooses the scenarios.
func (s settings) check(catalog []suites.Scenario) ([]suites.Scenario, error) {
	patterns := s.patterns
	scs, err := choose(catalog, patterns)
	if err != nil {
		return nil, err
	}
	switch {
	case s.etcd != "" && s.etcdVersion != "":
		return nil, usagef("--etcd and --etcd-version are both given: the binary has its version, so give one of them")
	case s.etcdVersion != "" && !versionForm.MatchString(s.etcdVersion):
		return nil, usagef("--etcd-version %q is no version of etcd: give one such as 3.6 (its newest patch) or 3.6.16", s.etcdVersion)
	case s.etcdVersion != "" && realetcd.Supported(s.etcdVersion) != nil:
		return nil, usagef("--etcd-version %s: %w", s.etcdVersion, realetcd.Supported(s.etcdVersion))
	case s.members != 0 && (s.members < fewestMembers || s.members > mostMembers):
		return nil, usagef("--members %d: a cluster has %d to %d members here", s.members, fewestMembers, mostMembers)
	case s.duration < 0:
		return nil, usagef("--duration %v is before its begin: give one such as 10m", s.duration)
	case s.parallel < 1 || s.parallel > mostParallel:
		return nil, usagef("--parallel %d: 1 to %d scenarios can be played at the same time", s.parallel, mostParallel)
	}
	if err := checkBinary(s.etcd); err != nil {
		return nil, err
	}
	return scs, checkReport(s.report)
}

// checkBinary looks at what can be seen without starting it.
func checkBinary(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return usagef("--etcd %s: there is no such file", path)
	case err != nil:
		return usagef("--etcd %s: %w", path, err)
	case !info.Mode().IsRegular():
		return usagef("--etcd %s is no file: give the path of the etcd binary itself", path)
	case info.Mode()&0o111 == 0:
		return usagef("--etcd %s may not be executed: chmod +x it, or give the path of an etcd binary", path)
	}
	return nil
}

// checkReport makes the directory and writes into it: hours later it would be too late
// to find out.
func checkReport(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return usagef("--report %s: the directory cannot be made: %w", dir, err)
	}
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return usagef("--report %s: nothing can be written there: %w", dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// options are those of every scenario.
func (s settings) options(binary string) suites.Options {
	return suites.Options{Seed: s.seed, Binary: binary, Members: s.members, Duration: s.duration}
}

// command is how the same is played again.
func (s settings) command(seed int64, patterns ...string) string {
	words := append([]string{"go run ./e2e/partition run"}, quoted(patterns)...)
	words = append(words, fmt.Sprintf("--seed %d", seed))
	if s.etcd != "" {
		words = append(words, "--etcd "+quote(s.etcd))
	}
	if s.etcdVersion != "" {
		words = append(words, "--etcd-version "+s.etcdVersion)
	}
	if s.members != 0 {
		words = append(words, fmt.Sprintf("--members %d", s.members))
	}
	if s.duration != 0 {
		words = append(words, fmt.Sprintf("--duration %v", s.duration))
	}
	if s.parallel > 1 {
		words = append(words, fmt.Sprintf("--parallel %d", s.parallel))
	}
	return join(words)
}

func logPath(dir string) string { return filepath.Join(dir, "log.txt") }
