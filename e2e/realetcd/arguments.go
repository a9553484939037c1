//go:build linux

package realetcd

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// settings are everything by which members differ. They are also what the
// in-process kind is told, as flags of the version in go.mod.
type settings struct {
	name          string
	address       string // of the host
	data          string // directory
	log           string // directory of the write-ahead log; "": it is with the data
	initial       string // name=url,... of everybody
	token         string
	joins         bool // a cluster that is there already
	fsync         bool
	quotaBytes    int64
	snapshotCount uint64
	more          []string // flags, as the newest version spells them
}

func peerURL(address string) string   { return fmt.Sprintf("http://%s:%d", address, PeerPort) }
func clientURL(address string) string { return fmt.Sprintf("http://%s:%d", address, ClientPort) }

// arguments are the flags of etcd for a server of version v.
func (s settings) arguments(v release) []string {
	state := "new"
	if s.joins {
		state = "existing"
	}
	args := []string{
		"--name=" + s.name,
		"--data-dir=" + path.Join(s.data, "data"),
		"--listen-peer-urls=" + peerURL(s.address),
		"--initial-advertise-peer-urls=" + peerURL(s.address),
		"--listen-client-urls=" + clientURL(s.address),
		"--advertise-client-urls=" + clientURL(s.address),
		"--initial-cluster=" + s.initial,
		"--initial-cluster-token=" + s.token,
		"--initial-cluster-state=" + state,
		"--pre-vote=true",
		"--logger=zap",
		"--log-outputs=stderr",
	}
	if s.log != "" { // below its mount: etcd makes the directory beside its name, and renames it
		args = append(args, "--wal-dir="+path.Join(s.log, "wal"))
	}
	if !s.fsync {
		args = append(args, "--unsafe-no-fsync=true")
	}
	if s.quotaBytes > 0 {
		args = append(args, "--quota-backend-bytes="+strconv.FormatInt(s.quotaBytes, 10))
	}
	if n := s.snapshotCount; n > 0 {
		args = append(args, "--snapshot-count="+strconv.FormatUint(n, 10), "--snapshot-catchup-entries="+strconv.FormatUint(n, 10))
	}
	return spell(append(args, s.more...), v)
}

// unhidden are flags that 3.6 took out of the experimental ones; 3.7 knows no other spelling.
var unhidden = map[string]bool{
	"bootstrap-defrag-threshold-megabytes": true,
	"compact-hash-check-time":              true,
	"compaction-batch-limit":               true,
	"compaction-sleep-interval":            true,
	"corrupt-check-time":                   true,
	"distributed-tracing-address":          true,
	"distributed-tracing-instance-id":      true,
	"distributed-tracing-sampling-rate":    true,
	"distributed-tracing-service-name":     true,
	"downgrade-check-time":                 true,
	"enable-distributed-tracing":           true,
	"memory-mlock":                         true,
	"peer-skip-client-san-verification":    true,
	"snapshot-catchup-entries":             true,
	"warning-apply-duration":               true,
	"watch-progress-notify-interval":       true,
}

// spell writes flags of the newest version as version v wants them.
func spell(args []string, v release) []string {
	if !v.older(release{major: 3, minor: 6}) {
		return args
	}
	spelt := make([]string, len(args))
	for i, arg := range args {
		spelt[i] = arg
		name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !strings.HasPrefix(arg, "-") || !unhidden[name] {
			continue
		}
		spelt[i] = "--experimental-" + name
		if given {
			spelt[i] += "=" + value
		}
	}
	return spelt
}
