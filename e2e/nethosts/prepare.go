//go:build linux

package nethosts

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// workRoot is where labs keep their files: a file system in memory, mounted over
// a directory of the namespaces' own /proc. Every machine has that directory,
// nobody there needs what it hides, and nothing of it is seen outside.
const workRoot = "/proc/fs"

// prepare makes new namespaces ready for a lab. It returns what it cannot get,
// and how to get it.
func prepare() (missing []string) {
	for _, m := range []struct {
		what, source, target, kind string
		flags                      uintptr
	}{
		{"private mounts", "none", "/", "", unix.MS_REC | unix.MS_PRIVATE},
		{"its own /proc", "proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"a directory in memory", "tmpfs", workRoot, "tmpfs", unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return []string{fmt.Sprintf("%s in a mount namespace (%s: %v): run as root on the machine itself, or in a container with --privileged", m.what, m.target, err)}
		}
	}
	if err := noIPv6(); err != nil {
		return []string{fmt.Sprintf("writable /proc/sys/net (%v): run as root, or in a container with --privileged", err)}
	}
	if err := ip("the lab", nil, "link set lo up"); err != nil {
		return []string{err.Error()}
	}
	return missingFeatures()
}

// feature is a part of the kernel that every lab needs.
type feature struct {
	what string
	way  string
	try  func() error
}

var features = []feature{
	{
		"veth links in the kernel", "modprobe veth, or a kernel with CONFIG_VETH",
		func() error { return ip("a trial", nil, "link add p0 type veth peer name p1") },
	},
	{
		"bridges in the kernel", "modprobe bridge, or a kernel with CONFIG_BRIDGE",
		func() error { return ip("a trial", nil, "link add sw type bridge", "link set p0 master sw") },
	},
	{
		"nftables for bridges in the kernel", "modprobe nf_tables, or a kernel with CONFIG_NF_TABLES_BRIDGE and CONFIG_NFT_NUMGEN",
		func() error {
			return nft("a trial", "table bridge trial { chain forward { type filter hook forward priority 0; ip saddr 10.0.0.1 ip daddr 10.0.0.2 numgen random mod 2 < 1 drop; }; }\n")
		},
	},
	{
		"packet sockets with filters in the kernel", "modprobe af_packet, or a kernel with CONFIG_PACKET; in a container --privileged",
		func() error {
			fd, err := packetSocket("lo", 2379, 0)
			if err != nil {
				return fmt.Errorf("nethosts: a trial: %w", err)
			}
			return unix.Close(fd)
		},
	},
}

// missingFeatures tries all features in a network that is thrown away.
func missingFeatures() (missing []string) {
	n, err := newNamespace(func() error {
		for _, f := range features {
			if err := f.try(); err != nil {
				missing = append(missing, fmt.Sprintf("%s (%s): %s", f.what, strings.TrimSpace(err.Error()), f.way))
			}
		}
		return nil
	})
	if err != nil {
		return append(missing, err.Error())
	}
	_ = n.close()
	return missing
}
