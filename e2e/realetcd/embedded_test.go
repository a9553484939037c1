//go:build linux

package realetcd

import (
	"strings"
	"testing"
)

// The two kinds of member are told the same: what etcd's own command understands, the embedded one
// must understand in the same way.
func TestEmbeddedMemberTakesTheFlagsOfTheCommand(t *testing.T) {
	s := settings{
		name: "m2", address: "10.0.0.2", data: "/d", log: "/l", initial: "m1=http://10.0.0.1:2380,m2=http://10.0.0.2:2380", token: "t",
		joins: true, quotaBytes: 1 << 24, snapshotCount: 50, more: []string{"--watch-progress-notify-interval=3s", "--max-txn-ops=9"},
	}
	own := embeddedFlags{arrivals: "/d/arrivals", admin: "10.0.0.2:2377", harness: "10.0.0.9"}
	cfg, got, err := parseEmbedded(append(s.arguments(linked), own.arguments()...))
	if err != nil {
		t.Fatal(err)
	}
	if got != own {
		t.Errorf("own flags %+v; want %+v", got, own)
	}
	if err := cfg.Validate(); err != nil {
		t.Errorf("etcd refuses it: %v", err)
	}
	for name, ok := range map[string]bool{
		"name":     cfg.Name == "m2",
		"data":     cfg.Dir == "/d/data",
		"log":      cfg.WalDir == "/l/wal",
		"peers":    len(cfg.ListenPeerUrls) == 1 && cfg.ListenPeerUrls[0].Host == "10.0.0.2:2380" && cfg.AdvertisePeerUrls[0].Host == "10.0.0.2:2380",
		"clients":  len(cfg.ListenClientUrls) == 1 && cfg.ListenClientUrls[0].Host == "10.0.0.2:2379" && cfg.AdvertiseClientUrls[0].Host == "10.0.0.2:2379",
		"cluster":  cfg.InitialCluster == s.initial && cfg.InitialClusterToken == "t" && cfg.ClusterState == "existing",
		"fsync":    cfg.UnsafeNoFsync,
		"quota":    cfg.QuotaBackendBytes == 1<<24,
		"snapshot": cfg.SnapshotCount == 50 && cfg.SnapshotCatchUpEntries == 50,
		"more":     cfg.WatchProgressNotifyInterval.Seconds() == 3 && cfg.MaxTxnOps == 9,
		"pre-vote": cfg.PreVote,
		"logs":     len(cfg.LogOutputs) == 1 && cfg.LogOutputs[0] == "stderr",
	} {
		if !ok {
			t.Errorf("%s was not taken over: %+v", name, cfg)
		}
	}
}

func TestEmbeddedMemberNamesTheFlagThatItDoesNotUnderstand(t *testing.T) {
	for _, arg := range []string{"--no-such-flag=1", "--listen-peer-urls=nonsense"} {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if _, _, err := parseEmbedded([]string{arg}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v; want an error that names it", arg, err)
		}
	}
}
