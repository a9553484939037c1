package report

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Machine describes the machine that this process runs on: cores, memory, kernel.
func Machine() string {
	parts := []string{fmt.Sprintf("%d cores", runtime.NumCPU())}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if gb, ok := memory(text); ok {
			parts = append(parts, fmt.Sprintf("%.0f GB", gb))
		}
	}
	system := runtime.GOOS + "/" + runtime.GOARCH
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		system += " " + string(bytes.TrimSpace(text))
	}
	return strings.Join(append(parts, system), ", ")
}

// memory reads the total out of /proc/meminfo.
func memory(meminfo []byte) (gb float64, ok bool) {
	var kb float64
	_, after, found := strings.Cut(string(meminfo), "MemTotal:")
	if !found {
		return 0, false
	}
	if _, err := fmt.Sscan(after, &kb); err != nil {
		return 0, false
	}
	return kb / (1 << 20), true
}

// modules are what a run's outcome depends on, under the names that a page gives them.
var modules = []struct{ path, name string }{
	{"go.etcd.io/etcd/client/v3", "official client"},
	{"google.golang.org/grpc", "gRPC"},
}

// Versions lists what takes part in a run of this process with an etcd server of some
// version.
func Versions(etcd string) []Version {
	vs := []Version{{"etcd", etcd}}
	info, ok := debug.ReadBuildInfo()
	if ok {
		vs = append(vs, Version{"quorumwise", revision(info)})
	}
	for _, m := range modules {
		if v := dependency(info, m.path); v != "" {
			vs = append(vs, Version{m.name, v})
		}
	}
	return append(vs, Version{"Go", runtime.Version()})
}

func dependency(info *debug.BuildInfo, path string) string {
	if info == nil {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == path {
			return d.Version
		}
	}
	return ""
}

// revision is the commit where the build knows it, as it does not under go run.
func revision(info *debug.BuildInfo) string {
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " and changes"
		}
	}
	if commit != "" {
		return commit[:min(12, len(commit))] + changed
	}
	return info.Main.Version
}
