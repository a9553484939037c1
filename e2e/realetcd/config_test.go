//go:build linux

package realetcd

import (
	"strings"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

func TestConfigIsChecked(t *testing.T) {
	lab := new(nethosts.Lab)
	for _, tc := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "Lab is nil"},
		{Config{Lab: lab, Members: 10}, "Members = 10"},
		{Config{Lab: lab, Members: -1}, "Members = -1"},
		{Config{Lab: lab, Shim: 7}, "Shim(7)"},
		{Config{Lab: lab, Disks: true, DiskBytes: 1}, "DiskBytes = 1"},
		{Config{Lab: lab, OnlyWAL: true}, "OnlyWAL"},
		{Config{Lab: lab, QuotaBytes: -1}, "QuotaBytes = -1"},
	} {
		if _, err := Start(t.Context(), tc.cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Start(%+v) = %v; want an error with %q", tc.cfg, err, tc.want)
		}
	}
}

// A store on a disk that hangs would keep the member from answering anything.
func TestOnlyTheLogIsOnTheDiskWhereTheConfigSaysSo(t *testing.T) {
	for _, tc := range []struct {
		cfg       Config
		data, log string
	}{
		{Config{}, "/host", ""},
		{Config{Disks: true}, "/disk", ""},
		{Config{Disks: true, OnlyWAL: true}, "/host", "/disk"},
	} {
		if data, log := tc.cfg.places("/host", "/disk"); data != tc.data || log != tc.log {
			t.Errorf("%+v: data in %q, log in %q; want %q and %q", tc.cfg, data, log, tc.data, tc.log)
		}
	}
}
