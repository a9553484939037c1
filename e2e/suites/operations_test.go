//go:build linux

package suites

import (
	"strings"
	"testing"
)

// A rolling restart on the old server is no upgrade.
func TestAMemberIsUpgradedFromThePreviousMinorVersionToThisOne(t *testing.T) {
	const now = "3.7.3"
	for _, row := range []struct{ name, before, after, want string }{
		{"upgraded", previousMinor + ".16", now, ""},
		{"still the old one", previousMinor + ".16", previousMinor + ".16", "runs 3.6.16 after its upgrade; want 3.7.3"},
		{"another patch", previousMinor + ".16", "3.7.2", "runs 3.7.2 after its upgrade; want 3.7.3"},
		{"new before already", now, now, "ran 3.7.3 before its upgrade; want 3.6"},
		{"of another minor version", "3.60.1", now, "ran 3.60.1 before its upgrade; want 3.6"},
	} {
		if got := notUpgraded(row.before, row.after, now); (row.want == "") != (got == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q; want %q", row.name, got, row.want)
		}
	}
}
