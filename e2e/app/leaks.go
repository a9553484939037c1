//go:build linux

package app

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"
)

// holdings are what the process has open.
type holdings struct {
	goroutines, descriptors int
}

func held() holdings {
	entries, _ := os.ReadDir("/proc/self/fd") // 0 where it cannot be read: Config.lacks tells
	return holdings{goroutines: runtime.NumGoroutine(), descriptors: len(entries)}
}

// leaked compares what is held now with before. What is closed may take a moment to
// go, so it looks until nothing is left and no call and no stream is open, at most for so
// long. Those that are open all the same show in the trace.
func leaked(before holdings, open func() int, most time.Duration) Leaks {
	const look = 20 * time.Millisecond
	now := held()
	for end := time.Now().Add(most); time.Now().Before(end); now = held() {
		if now.goroutines <= before.goroutines && now.descriptors <= before.descriptors && open() == 0 {
			break
		}
		time.Sleep(look)
	}
	l := Leaks{
		Goroutines:  [2]int{before.goroutines, now.goroutines},
		Descriptors: [2]int{before.descriptors, now.descriptors},
		Connections: connections(),
	}
	if now.goroutines > before.goroutines {
		var stacks bytes.Buffer
		pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		l.Stacks = stacks.String()
	}
	return l
}

// connections lists the process's own TCP connections, local to remote. A table that
// cannot be read stands among them: it is no proof that there are none.
func connections() []string {
	own := sockets()
	var all []string
	for _, file := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		b, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(file, "6") {
			continue // a kernel without IPv6
		}
		if err != nil {
			all = append(all, fmt.Sprintf("unknown: %v", err))
			continue
		}
		all = append(all, parseConnections(string(b), own)...)
	}
	slices.Sort(all)
	return all
}

// sockets are the inodes of the process's sockets.
func sockets() map[string]bool {
	own := make(map[string]bool)
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return own
}

// parseConnections reads a table of the kernel's. Its columns: number, local and
// remote address, state, two queues, timers, retransmits, user, timeout, inode.
func parseConnections(table string, own map[string]bool) []string {
	const local, remote, inode = 1, 2, 9
	var all []string
	lines := bufio.NewScanner(strings.NewReader(table))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) <= inode || !own[f[inode]] {
			continue
		}
		if to := parseAddress(f[remote]); to.Port() != 0 { // else it listens
			all = append(all, fmt.Sprintf("%v to %v", parseAddress(f[local]), to))
		}
	}
	return all
}

// parseAddress reads "0100007F:0CE4". Each four bytes stand in the machine's order,
// which is little-endian wherever this runs.
func parseAddress(s string) netip.AddrPort {
	host, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(host)
	if err != nil || len(b)%4 != 0 {
		return netip.AddrPort{}
	}
	for word := range slices.Chunk(b, 4) {
		slices.Reverse(word)
	}
	addr, ok := netip.AddrFromSlice(b)
	n, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(n))
}
