package report

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestMemoryOfTheMachine(t *testing.T) {
	for text, want := range map[string]float64{
		"MemTotal:       25165824 kB\nMemFree: 1 kB\n": 24,
		"MemFree: 1 kB\n": 0,
		"MemTotal: many":  0,
		"":                0,
	} {
		if got, ok := memory([]byte(text)); got != want || ok != (want > 0) {
			t.Errorf("%q: %v, %v; want %v", text, got, ok, want)
		}
	}
}

func TestVersionsNameWhatTookPart(t *testing.T) {
	vs := Versions("3.6.16")
	if vs[0] != (Version{"etcd", "3.6.16"}) || !strings.HasPrefix(vs[len(vs)-1].Version, "go") {
		t.Errorf("%v: want etcd first and Go last", vs)
	}
	info := &debug.BuildInfo{
		Main:     debug.Module{Version: "v0.3.0"},
		Deps:     []*debug.Module{{Path: "google.golang.org/grpc", Version: "v1.83.2"}},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
	}
	if got := revision(info); got != "0123456789ab and changes" {
		t.Errorf("revision %q", got)
	}
	info.Settings = nil
	if got := revision(info); got != "v0.3.0" {
		t.Errorf("revision %q, want the module's version where there is no commit", got)
	}
	if got := dependency(info, "google.golang.org/grpc"); got != "v1.83.2" {
		t.Errorf("dependency %q", got)
	}
}
