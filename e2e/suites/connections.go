//go:build linux

package suites

import (
	"bufio"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

// connections counts the TCP connections of a host that a peer opened and that have not
// ended on this side. A host that is gone has none.
func connections(host *nethosts.Host, peer netip.Addr) (n int) {
	host.Do(func() error {
		for _, table := range []string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
			f, err := os.Open(table)
			if err != nil {
				continue
			}
			n += count(f, peer)
			f.Close()
		}
		return nil
	})
	return n
}

// Connections in these states have not ended: established, and closed by the peer only.
var alive = []string{"01", "08"}

// count reads a table of the kernel's: after a headline, in each line the number, the local
// address, the remote address and the state, in hexadecimal.
func count(table io.Reader, peer netip.Addr) (n int) {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 3 && slices.Contains(alive, fields[3]) && remote(fields[2]) == peer.Unmap() {
			n++
		}
	}
	return n
}

// remote reads an address such as 0100007F:1F90: words of four bytes, each in the byte
// order of the machine (little endian on all that we run on).
func remote(s string) netip.Addr {
	host, _, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(host)
	if err != nil || len(b)%4 != 0 {
		return netip.Addr{}
	}
	for word := range slices.Chunk(b, 4) {
		slices.Reverse(word)
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr.Unmap()
}
