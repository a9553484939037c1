//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A run that plays another etcd than the user's shows nothing about theirs.
func TestEtcdThatTheUserNamesIsTheOneThatIsPlayed(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, row := range []struct {
		args    string
		binary  string
		version string   // that the run is said to be on
		built   []string // versions; "" is that of quorumwise
	}{
		{"", "/cache/etcd-", "3.7.3", []string{""}},
		{"--etcd " + mine, mine, "3.5.21", nil},
		{"--etcd ./mine", mine, "3.5.21", nil}, // hosts have working directories of their own
		{"--etcd-version 3.6", "/cache/etcd-3.6", "3.6.16", []string{"3.6"}},
		{"--etcd-version v3.6.2", "/cache/etcd-v3.6.2", "3.6.2", []string{"v3.6.2"}},
	} {
		s, from := &stand{}, &shelf{says: map[string]string{mine: "3.5.21", "/cache/etcd-3.6": "3.6.16", "/cache/etcd-v3.6.2": "3.6.2"}}
		report := filepath.Join(t.TempDir(), "report")
		out, complaint, status := call(t, world{play: s.player, servers: from}, strings.Fields("run cut --report "+report+" "+row.args)...)
		if status != statusOK || s.options.Binary != row.binary || !slices.Equal(from.built, row.built) {
			t.Errorf("%q: status %d (%s), played %s, built %q; want %s and %q", row.args, status, complaint, s.options.Binary, from.built, row.binary, row.built)
		}
		if want := "on etcd " + row.version + " (" + row.binary + ")"; !strings.Contains(out, want) {
			t.Errorf("%q: it does not say %q:\n%s", row.args, want, out)
		}
		if got := readReport(t, report).Versions[0]; got.Name != "etcd" || got.Version != row.version {
			t.Errorf("%q: the report is of %s %s; want etcd %s", row.args, got.Name, got.Version, row.version)
		}
	}
}
