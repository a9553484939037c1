//go:build linux

package realetcd

import (
	"slices"
	"testing"
)

func TestEnvironmentChangesNoFlagAndNamesNoProxy(t *testing.T) {
	got := environment([]string{"PATH=/bin", "ETCD_NAME=other", "QUORUMSHIM_WINDOW=9s", "HTTPS_PROXY=http://p", "https_proxy=http://p", "GODEBUG=x=1"})
	if want := []string{"PATH=/bin", "GODEBUG=x=1"}; !slices.Equal(got, want) {
		t.Errorf("environment %q; want %q", got, want)
	}
}
