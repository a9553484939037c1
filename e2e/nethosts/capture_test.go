//go:build linux

package nethosts

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// seen collects what a capture takes.
type seen struct {
	mu   sync.Mutex
	segs []Segment
}

func (s *seen) take(seg Segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seg.Payload = append([]byte(nil), seg.Payload...)
	s.segs = append(s.segs, seg)
}

func (s *seen) count(match func(Segment) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seg := range s.segs {
		if match(seg) {
			n++
		}
	}
	return n
}

func (s *seen) payload() int {
	sum := 0
	s.count(func(seg Segment) bool { sum += len(seg.Payload); return false })
	return sum
}

// distinct is the payload without what a connection carried twice: TCP sends again what it has
// no word of in time.
func (s *seen) distinct() (sum int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := make(map[netip.AddrPort]uint32)
	parts := make(map[netip.AddrPort][][2]int32) // from, to; counted from the first, for numbers wrap
	for _, seg := range s.segs {
		if len(seg.Payload) == 0 {
			continue
		}
		if _, known := first[seg.From]; !known {
			first[seg.From] = seg.Seq
		}
		begin := int32(seg.Seq - first[seg.From])
		parts[seg.From] = append(parts[seg.From], [2]int32{begin, begin + int32(len(seg.Payload))})
	}
	for _, of := range parts {
		slices.SortFunc(of, func(a, b [2]int32) int { return cmp.Compare(a[0], b[0]) })
		end := of[0][0]
		for _, p := range of {
			sum += int(max(0, p[1]-max(end, p[0])))
			end = max(end, p[1])
		}
	}
	return sum
}

func TestDistinctPayloadLacksOnlyWhatCameTwice(t *testing.T) {
	a, b := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.1:2")
	segment := func(from netip.AddrPort, seq uint32, bytes int) Segment {
		return Segment{From: from, Seq: seq, Payload: make([]byte, bytes)}
	}
	for _, row := range []struct {
		name string
		segs []Segment
		want int
	}{
		{"nothing", []Segment{{From: a, SYN: true}}, 0},
		{"in order", []Segment{segment(a, 100, 10), segment(a, 110, 10)}, 20},
		{"sent again", []Segment{segment(a, 100, 10), segment(a, 110, 10), segment(a, 110, 10)}, 20},
		{"in part", []Segment{segment(a, 100, 10), segment(a, 105, 10), segment(a, 102, 3)}, 15},
		{"out of order", []Segment{segment(a, 110, 10), segment(a, 100, 10)}, 20},
		{"with a gap", []Segment{segment(a, 100, 10), segment(a, 120, 10)}, 20},
		{"where numbers wrap", []Segment{segment(a, 1<<32-5, 10), segment(a, 5, 10), segment(a, 1<<32-5, 10)}, 20},
		{"of two connections", []Segment{segment(a, 100, 10), segment(b, 100, 10)}, 20},
	} {
		if got := (&seen{segs: row.segs}).distinct(); got != row.want {
			t.Errorf("%s: %d bytes; want %d", row.name, got, row.want)
		}
	}
}

// sentAgain is how many bytes of a connection this side has sent more than once.
func sentAgain(t *testing.T, conn net.Conn) (bytes int) {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var info *unix.TCPInfo
	if e := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	return int(info.Bytes_retrans)
}

func capture(t *testing.T, h *Host) (*Capture, *seen) {
	t.Helper()
	s := new(seen)
	c, err := h.Capture(2379, s.take)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func TestCaptureTakesWhatReachesThePortAndNothingElse(t *testing.T) {
	t.Parallel()
	_, hosts := lab(t, "server", "client")
	server, client := hosts[0], hosts[1]
	c, got := capture(t, server)
	_, other := capture(t, client) // sees answers only, which go to another port
	_, address := echo(t, server)
	conn := dial(t, client, address)
	another := strings.Replace(address, "2379", "2380", 1)
	neighbour, err := server.StartSelf("echo", Command{Args: []string{another}})
	if err != nil {
		t.Fatal(err)
	}
	awaitEcho(t, neighbour, another)
	fmt.Fprint(dial(t, client, another), "for another port")
	const bulk = 3 << 20
	go func() { fmt.Fprint(conn, strings.Repeat("x", bulk)) }()
	awaitBack(t, conn, bulk)
	again := sentAgain(t, conn)
	conn.Close()
	c.Sync()
	mine := func(seg Segment) bool { return seg.From.Addr() == client.Addr() }
	if n := got.distinct(); n != bulk {
		t.Errorf("%d bytes were taken; want the %d that were sent, and none of the answer", n, bulk)
	}
	if twice := got.payload() - got.distinct(); twice > again {
		t.Errorf("%d bytes were taken twice; want no more than the %d that were sent again", twice, again)
	}
	if n := got.count(func(s Segment) bool { return mine(s) && s.SYN }); n != 1 {
		t.Errorf("%d openings were taken from the client; want 1", n)
	}
	if n := got.count(func(s Segment) bool { return !s.SYN && !s.FIN && !s.RST && len(s.Payload) == 0 }); n != 0 {
		t.Errorf("%d bare acknowledgements passed the filter", n)
	}
	if n := got.count(func(s Segment) bool { return mine(s) && (s.FIN || s.RST) }); n == 0 {
		t.Error("the end of the connection was not taken")
	}
	if n := other.count(func(Segment) bool { return true }); n != 0 {
		t.Errorf("%d segments were taken where nobody listens", n)
	}
	if lost, err := c.Lost(); lost != 0 || err != nil {
		t.Errorf("lost %d (%v); want none", lost, err)
	}
}

// A machine that gives no packet sockets is told so before anything is played.
func TestPacketSocketsAreTriedBeforeALab(t *testing.T) {
	i := slices.IndexFunc(features, func(f feature) bool { return strings.HasPrefix(f.what, "packet sockets") })
	if i < 0 {
		t.Fatal("no feature of a lab is packet sockets")
	}
	refused := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread has lost a right
		if err := dropCapability(unix.CAP_NET_RAW); err != nil {
			t.Error(err)
		}
		refused <- features[i].try()
	}()
	if err := <-refused; !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "a packet socket") {
		t.Errorf("tried without the right to have one: %v; want an error that says so", err)
	}
}

// dropCapability takes a right from the calling thread.
func dropCapability(right int) error {
	header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	data[right/32].Effective &^= 1 << (right % 32)
	return unix.Capset(&header, &data[0])
}

func TestCaptureMissesWhatTheNetworkLost(t *testing.T) {
	t.Parallel()
	l, hosts := lab(t, "server", "client")
	c, got := capture(t, hosts[0])
	_, address := echo(t, hosts[0])
	conn := dial(t, hosts[1], address)
	if _, err := l.Drop(Flow{hosts[1], hosts[0]}); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "lost")
	time.Sleep(20 * time.Millisecond)
	c.Sync()
	if n := got.payload(); n != 0 {
		t.Errorf("%d bytes were taken that never reached the host", n)
	}
	if err := l.Heal(); err != nil {
		t.Fatal(err)
	}
	awaitBack(t, conn, 4)
	c.Sync()
	if n := got.payload(); n < 4 {
		t.Errorf("%d bytes were taken of the 4 that came after the heal", n)
	}
}

// awaitBack waits until so many bytes came back from an echo: they have reached the host.
func awaitBack(t *testing.T, conn net.Conn, bytes int) {
	t.Helper()
	if _, err := io.ReadFull(conn, make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
}

func TestCaptureTakesAllThatCameBeforeItsEnd(t *testing.T) {
	t.Parallel()
	_, hosts := lab(t, "server", "client")
	_, address := echo(t, hosts[0])
	c, got := capture(t, hosts[0])
	conn := dial(t, hosts[1], address)
	fmt.Fprint(conn, "last")
	awaitBack(t, conn, 4)
	socket, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", c.fd))
	if err != nil {
		t.Fatal(err)
	}
	if n := holders(t, socket); n != 1 {
		t.Fatalf("%d descriptors are of the capture's %s; want 1", n, socket)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if n := holders(t, socket); n != 0 {
		t.Errorf("%d descriptors are of the capture's %s after its end; want none", n, socket)
	}
	if n := got.payload(); n != 4 {
		t.Errorf("%d bytes were taken; want 4", n)
	}
	c.Sync() // does nothing
	if err := c.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

// holders counts this process's descriptors of something that /proc names so. Other tests open
// and close theirs meanwhile.
func holders(t *testing.T, of string) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if name, err := os.Readlink(path); err == nil && name == of {
			n++
		}
	}
	return n
}

// Little room is what anybody may have: twice 208 KiB on most machines.
func TestCaptureHurriesWhereThereIsLittleRoom(t *testing.T) {
	for room, want := range map[int]time.Duration{
		0: hurriedEvery, 2 * 212992: hurriedEvery, captureRoom - 1: hurriedEvery, captureRoom: captureEvery, 2 * captureRoom: captureEvery,
	} {
		if got := pace(room); got != want {
			t.Errorf("with %d bytes of room it takes what came every %v; want %v", room, got, want)
		}
	}
}

func TestCaptureWithLittleRoomTakesWhatComes(t *testing.T) {
	t.Parallel()
	_, hosts := lab(t, "server", "client")
	got := new(seen)
	const little = 208 << 10
	c, err := hosts[0].capture(2379, little, got.take)
	if err != nil {
		t.Fatal(err)
	}
	if room, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err != nil || room == 0 || room > 2*little {
		t.Errorf("the kernel has %d bytes of room (%v); want %d at most", room, err, 2*little)
	}
	if c.every != hurriedEvery {
		t.Errorf("it takes what came every %v; want %v", c.every, hurriedEvery)
	}
	_, address := echo(t, hosts[0])
	conn := dial(t, hosts[1], address)
	fmt.Fprint(conn, "soon")
	for deadline := time.Now().Add(soon); got.payload() < 4; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes were taken without being asked for; want 4", got.payload())
		}
	}
	if lost, err := c.Lost(); lost != 0 || err != nil {
		t.Errorf("lost %d (%v); want none", lost, err)
	}
}

// Nobody takes anything for a while, and the room is small: the capture knows what it lost.
func TestCaptureKnowsWhatItLost(t *testing.T) {
	t.Parallel()
	_, hosts := lab(t, "server", "client")
	c, got := capture(t, hosts[0])
	_, address := echo(t, hosts[0])
	conn := dial(t, hosts[1], address)
	c.mu.Lock()
	if err := unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 4096); err != nil {
		t.Error(err)
	}
	for range 50 {
		fmt.Fprint(conn, strings.Repeat("x", 1000))
		if _, err := io.ReadFull(conn, make([]byte, 1000)); err != nil {
			t.Error(err)
		}
	}
	c.mu.Unlock()
	c.Sync()
	if lost, err := c.Lost(); lost == 0 || err != nil {
		t.Errorf("lost %d (%v), took %d bytes; want the rest of 50000 lost", lost, err, got.payload())
	}
	before, _ := c.Lost()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if after, err := c.Lost(); after != before || err != nil {
		t.Errorf("lost %d (%v) after the end; want %d still", after, err, before)
	}
}

func TestCaptureEndsWithItsHostAndHasTakenAll(t *testing.T) {
	t.Parallel()
	_, hosts := lab(t, "server", "client")
	c, got := capture(t, hosts[0])
	_, address := echo(t, hosts[0])
	conn := dial(t, hosts[1], address)
	fmt.Fprint(conn, "last")
	awaitBack(t, conn, 4)
	if err := hosts[0].Remove(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.ended:
	case <-time.After(soon):
		t.Fatal("the capture goes on without its host")
	}
	if n := got.payload(); n != 4 {
		t.Errorf("%d bytes were taken; want 4", n)
	}
	if lost, err := c.Lost(); lost != 0 || err != nil {
		t.Errorf("lost %d (%v); want none: the end of the host is the end of the capture", lost, err)
	}
	c.Sync() // does nothing
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := hosts[0].Capture(2379, got.take); err == nil {
		t.Error("a removed host was captured")
	}
}
