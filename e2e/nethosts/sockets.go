//go:build linux

package nethosts

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// connection is an established TCP connection as one end sees it.
type connection struct{ local, remote netip.AddrPort }

// Connections counts the established TCP connections of the host that have port
// at either end. A connection of the host with itself counts once.
func (h *Host) Connections(port uint16) (int, error) {
	all, err := h.connections()
	if err != nil {
		return 0, fmt.Errorf("nethosts: connections of %s: %w", h.name, err)
	}
	seen := map[connection]bool{}
	for _, c := range all {
		if (c.local.Port() == port || c.remote.Port() == port) && !seen[connection{c.remote, c.local}] {
			seen[c] = true
		}
	}
	return len(seen), nil
}

func (h *Host) connections() (all []connection, err error) {
	err = h.Do(func() error {
		for _, name := range []string{"tcp", "tcp6"} {
			table, err := os.ReadFile("/proc/thread-self/net/" + name)
			if errors.Is(err, os.ErrNotExist) {
				continue // a kernel without IPv6
			}
			if err != nil {
				return err
			}
			all = append(all, established(table)...)
		}
		return nil
	})
	return all, err
}

// established reads a table of /proc/net, in the byte order of this machine.
func established(table []byte) (all []connection) {
	const state = "01"
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != state {
			continue
		}
		local, ok := addrPort(fields[1])
		remote, also := addrPort(fields[2])
		if ok && also {
			all = append(all, connection{local, remote})
		}
	}
	return all
}

// addrPort reads "0100007F:0016": words of the address in the machine's byte
// order, then the port.
func addrPort(text string) (netip.AddrPort, bool) {
	words, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(words)
	number, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	addr, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), uint16(number)), ok
}
