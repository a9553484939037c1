//go:build linux

package suites

import (
	"bufio"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

// connection is a TCP connection as one of its ends sees it.
type connection struct{ local, remote netip.AddrPort }

// mirrored is the connection as the other end sees it.
func (c connection) mirrored() connection { return connection{c.remote, c.local} }

// connections lists the TCP connections of a host that have not ended on this side. A host
// that is gone has none.
func connections(host *nethosts.Host) (all []connection) {
	host.Do(func() error {
		for _, table := range []string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
			f, err := os.Open(table)
			if err != nil {
				continue
			}
			all = append(all, listed(f)...)
			f.Close()
		}
		return nil
	})
	return all
}

// connectionsOf lists those of a host that a peer has at the other end.
func connectionsOf(host *nethosts.Host, peer netip.Addr) []connection {
	return slices.DeleteFunc(connections(host), func(c connection) bool { return c.remote.Addr() != peer.Unmap() })
}

// Connections in these states have not ended: established, and closed by the peer only.
var alive = []string{"01", "08"}

// listed reads a table of the kernel's: after a headline, in each line the number, the local
// address, the remote address and the state, in hexadecimal.
func listed(table io.Reader) (all []connection) {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !slices.Contains(alive, fields[3]) {
			continue
		}
		if c := (connection{endOf(fields[1]), endOf(fields[2])}); c.local.IsValid() && c.remote.IsValid() {
			all = append(all, c)
		}
	}
	return all
}

// orphaned lists those connections, as a server sees them, that its clients have no end of
// any more: they closed them while the network kept it from the server, which may
// believe in them for hours.
func orphaned(server, client []connection) []connection {
	return slices.DeleteFunc(slices.Clone(server), func(c connection) bool { return slices.Contains(client, c.mirrored()) })
}

// endOf reads an address and a port such as 0100007F:1F90: words of four bytes, each in the
// byte order of the machine (little endian on all that we run on).
func endOf(s string) netip.AddrPort {
	host, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(host)
	number, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(b)%4 != 0 {
		return netip.AddrPort{}
	}
	for word := range slices.Chunk(b, 4) {
		slices.Reverse(word)
	}
	addr, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), uint16(number))
}
