//go:build linux

package realetcd

import (
	"slices"
	"testing"
)

func TestFlagsAreSpelledAsTheVersionWantsThem(t *testing.T) {
	given := []string{"--snapshot-catchup-entries=7", "-watch-progress-notify-interval", "5s", "--max-txn-ops=9", "plain=3"}
	hidden := []string{"--experimental-snapshot-catchup-entries=7", "--experimental-watch-progress-notify-interval", "5s", "--max-txn-ops=9", "plain=3"}
	for version, want := range map[string][]string{"3.5.35": hidden, "3.6.16": given, "3.7.3": given, "3.10.0": given} {
		v, err := parseRelease(version)
		if err != nil {
			t.Fatal(err)
		}
		if got := spell(given, v); !slices.Equal(got, want) {
			t.Errorf("%s: %q; want %q: a server with a flag that it does not know does not start", version, got, want)
		}
	}
}

func TestArgumentsFollowTheSettings(t *testing.T) {
	base := settings{name: "m1", address: "10.0.0.1", data: "/d", initial: "m1=http://10.0.0.1:2380", token: "t"}
	logged := base
	logged.log = "/l"
	full := base
	full.joins, full.fsync, full.quotaBytes, full.snapshotCount, full.more = true, true, 1<<24, 50, []string{"--max-txn-ops=9"}
	for name, tc := range map[string]struct {
		s           settings
		has, hasNot []string
	}{
		"least": {base,
			[]string{"--name=m1", "--data-dir=/d/data", "--listen-peer-urls=http://10.0.0.1:2380", "--listen-client-urls=http://10.0.0.1:2379", "--initial-cluster-state=new", "--unsafe-no-fsync=true", "--pre-vote=true"},
			[]string{"--quota-backend-bytes=0", "--snapshot-count=0", "--wal-dir=wal", "--wal-dir="}},
		"log": {logged,
			[]string{"--data-dir=/d/data", "--wal-dir=/l/wal"},
			[]string{"--wal-dir=/d/wal"}},
		"all": {full,
			[]string{"--initial-cluster-state=existing", "--quota-backend-bytes=16777216", "--snapshot-count=50", "--snapshot-catchup-entries=50", "--max-txn-ops=9"},
			[]string{"--unsafe-no-fsync=true"}},
	} {
		args := tc.s.arguments(release{3, 7, 3, ""})
		for _, arg := range tc.has {
			if !slices.Contains(args, arg) {
				t.Errorf("%s: %q lacks %s", name, args, arg)
			}
		}
		for _, arg := range tc.hasNot {
			if slices.Contains(args, arg) {
				t.Errorf("%s: %q has %s", name, args, arg)
			}
		}
	}
}
