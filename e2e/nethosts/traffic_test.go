//go:build linux

package nethosts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// lab makes a lab with hosts of these names.
func lab(t *testing.T, names ...string) (*Lab, []*Host) {
	t.Helper()
	l := ForTest(t, Config{})
	var hosts []*Host
	for _, name := range names {
		h, err := l.Host(name)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	return l, hosts
}

// echo starts an echo server on the host and returns its address when it serves.
func echo(t *testing.T, h *Host) (*Process, string) {
	t.Helper()
	address := net.JoinHostPort(h.Addr().String(), "2379")
	p, err := h.StartSelf("echo", Command{Args: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	awaitEcho(t, p, address)
	return p, address
}

// soon bounds what should happen at once, on a busy machine.
const soon = 20 * time.Second

func awaitEcho(t *testing.T, p *Process, address string) {
	t.Helper()
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			c.Close()
			return
		}
		select {
		case <-p.Done():
			t.Fatalf("%v ended: %v", p, p.Err())
		default:
		}
	}
	t.Fatalf("%v does not serve", p)
}

// dial connects to the address from the host.
func dial(t *testing.T, h *Host, address string) net.Conn {
	t.Helper()
	c, err := tryDial(h, address, soon)
	if err != nil {
		t.Fatalf("%v cannot reach %s: %v", h, address, err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func tryDial(h *Host, address string, d time.Duration) (c net.Conn, err error) {
	err = h.Do(func() error {
		c, err = net.DialTimeout("tcp", address, d)
		return err
	})
	return c, err
}

// ping sends one byte and waits for the answer.
func ping(c net.Conn, atMost time.Duration) (time.Duration, error) {
	start := time.Now()
	if err := c.SetDeadline(start.Add(atMost)); err != nil {
		return 0, err
	}
	if _, err := c.Write([]byte{1}); err != nil {
		return 0, err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return time.Since(start), err
}

func mustPing(t *testing.T, c net.Conn, why string) time.Duration {
	t.Helper()
	rtt, err := ping(c, soon)
	if err != nil {
		t.Fatalf("%v -> %v: %v: %s", c.LocalAddr(), c.RemoteAddr(), err, why)
	}
	return rtt
}

// quickestPing is the best round trip of many, or the first that is good enough: what
// a busy machine adds is not the line's.
func quickestPing(t *testing.T, c net.Conn, enough time.Duration) time.Duration {
	t.Helper()
	best := time.Hour
	for i := 0; i < 30 && best > enough; i++ {
		best = min(best, mustPing(t, c, "it is no cut"))
	}
	return best
}

func mustBeMute(t *testing.T, c net.Conn, why string) {
	t.Helper()
	if rtt, err := ping(c, 300*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%v -> %v: answer after %v, %v; want silence: %s", c.LocalAddr(), c.RemoteAddr(), rtt, err, why)
	}
}

func TestHostsReachEachOtherAndTheHarnessReachesAll(t *testing.T) {
	l, hosts := lab(t, "m1", "c1")
	_, address := echo(t, hosts[0])
	c := dial(t, hosts[1], address)
	mustPing(t, c, "two hosts at one switch")
	if got := c.LocalAddr().(*net.TCPAddr).AddrPort().Addr(); got != hosts[1].Addr() {
		t.Errorf("the connection comes from %v, want c1's %v", got, hosts[1].Addr())
	}
	own, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if got := own.LocalAddr().(*net.TCPAddr).AddrPort().Addr(); got != l.Address() {
		t.Errorf("the harness comes from %v, want %v", got, l.Address())
	}
	mustHaveConnections(t, hosts[1], 1, "to m1")
	mustHaveConnections(t, hosts[0], 2, "of c1 and of the harness")
}

// mustHaveConnections waits until a host has so many at port 2379: that of echo's own
// probe may still be closing.
func mustHaveConnections(t *testing.T, h *Host, want int, whose string) {
	t.Helper()
	for end := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		n, err := h.Connections(2379)
		switch {
		case err != nil:
			t.Fatal(err)
		case n == want:
			return
		case time.Now().After(end):
			t.Fatalf("%v has %d connections at port 2379; want %d, %s", h, n, want, whose)
		}
	}
}

func TestDropIsSilentAndOneWay(t *testing.T) {
	l, hosts := lab(t, "m1", "c1", "c2")
	m1, c1 := hosts[0], hosts[1]
	_, address := echo(t, m1)
	c, other := dial(t, c1, address), dial(t, hosts[2], address)
	own, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	mustPing(t, c, "no fault yet")
	for _, f := range Between(m1, c1) {
		fault, err := l.Drop(f)
		if err != nil {
			t.Fatal(err)
		}
		mustBeMute(t, c, f.String()+" is cut")
		mustPing(t, other, "c2 is not cut")
		mustPing(t, own, "the harness is never cut")
		if err := fault.Lift(); err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(soon))
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatalf("%v after the cut of %v was lifted: the connection has to live on", err, f)
		}
	}
}

func TestFaultsComposeAndHealLiftsAll(t *testing.T) {
	l, hosts := lab(t, "m1", "c1")
	_, address := echo(t, hosts[0])
	c := dial(t, hosts[1], address)
	flows := Between(hosts[0], hosts[1])
	one, err := l.Drop(flows[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Drop(flows...); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Delay(20*time.Millisecond, flows...); err != nil {
		t.Fatal(err)
	}
	if err := one.Lift(); err != nil {
		t.Fatal(err)
	}
	mustBeMute(t, c, "one of two cuts is still there")
	if got := l.Faults(); len(got) != 2 || !strings.HasPrefix(got[0], "drop: m1 -> c1, c1 -> m1") {
		t.Errorf("Faults() = %q, want the cut both ways and the delay", got)
	}
	if err := l.Heal(); err != nil {
		t.Fatal(err)
	}
	if got := l.Faults(); len(got) != 0 {
		t.Errorf("Faults() = %q after Heal, want none", got)
	}
	fresh := dial(t, hosts[1], address)
	mustPing(t, fresh, "all is healed")
	if rtt := quickestPing(t, fresh, 15*time.Millisecond); rtt > 15*time.Millisecond {
		t.Errorf("round trip of %v at best after Heal, want no delay", rtt)
	}
	if err := one.Lift(); err != nil {
		t.Errorf("second Lift: %v", err)
	}
}

func TestDelayIsExactAndThroughputUsable(t *testing.T) {
	l, hosts := lab(t, "m1", "c1")
	_, address := echo(t, hosts[0])
	c := dial(t, hosts[1], address)
	plain := throughput(t, c, 64<<20)
	if _, err := l.Delay(50*time.Millisecond, Between(hosts[0], hosts[1])...); err != nil {
		t.Fatal(err)
	}
	mustPing(t, c, "a delay is no loss")
	best := quickestPing(t, c, 110*time.Millisecond)
	for range 5 {
		best = min(best, mustPing(t, c, "a delay is no loss"))
	}
	if best < 100*time.Millisecond || best > 110*time.Millisecond {
		t.Errorf("best round trip is %v under 50 ms each way, want 100 ms", best)
	}
	delayed := throughput(t, c, 16<<20)
	t.Logf("round trip %v; %.0f MB/s without, %.0f MB/s with it", best, plain, delayed)
	if delayed < 1 {
		t.Errorf("%.2f MB/s under a delay: the hop is too slow to be a line", delayed)
	}
}

// throughput sends bytes and waits until all came back.
func throughput(t *testing.T, c net.Conn, bytes int64) (megabytes float64) {
	t.Helper()
	start := time.Now()
	_ = c.SetDeadline(start.Add(time.Minute))
	sent := make(chan error, 1)
	go func() {
		_, err := io.CopyN(c, zeros{}, bytes)
		sent <- err
	}()
	_, err := io.CopyN(io.Discard, c, bytes)
	if err := errors.Join(err, <-sent); err != nil {
		t.Fatal(err)
	}
	return float64(bytes) / 1e6 / time.Since(start).Seconds()
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestRateIsWhatALineCarries(t *testing.T) {
	l, hosts := lab(t, "m1", "c1")
	_, address := echo(t, hosts[0])
	c := dial(t, hosts[1], address)
	if _, err := l.Rate(1_000_000, Flow{From: hosts[1], To: hosts[0]}); err != nil {
		t.Fatal(err)
	}
	var got float64
	for i := 0; i < 4 && got < 0.6; i++ { // a busy machine may be slower than the line
		got = throughput(t, c, 1<<20)
	}
	t.Logf("%.2f MB/s", got)
	if got < 0.6 || got > 1.1 {
		t.Errorf("%.2f MB/s at a rate of 1 MB/s", got)
	}
}

func TestLoseLosesItsPart(t *testing.T) {
	l, hosts := lab(t, "m1", "c1")
	from, to := hosts[1], hosts[0]
	var out net.Conn
	err := from.Do(func() (err error) { out, err = net.Dial("udp", to.Addr().String()+":9"); return err })
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	_, address := echo(t, to)
	mustPing(t, dial(t, from, address), "they know each other's link addresses then")
	if _, err := l.Lose(0.3, Flow{From: from, To: to}); err != nil {
		t.Fatal(err)
	}
	const n = 5000
	before := received(t, to)
	for i := range n {
		if i%100 == 0 { // a kernel that is busy drops what comes faster than it takes it
			time.Sleep(20 * time.Millisecond)
		}
		_, _ = out.Write([]byte{1}) // nobody listens: an error tells of an earlier one
	}
	got := received(t, to) - before
	for more := 1; more > 0; {
		time.Sleep(100 * time.Millisecond)
		more = received(t, to) - before - got
		got += more
	}
	if part := 1 - float64(got)/n; part < 0.26 || part > 0.34 {
		t.Errorf("%d of %d packets arrived, lost %.3f; want 0.3", got, n, part)
	}
}

func TestLargePacketsAreLostAndSmallOnesPass(t *testing.T) {
	l, hosts := lab(t, "m1", "c1")
	_, address := echo(t, hosts[0])
	c := dial(t, hosts[1], address)
	mustPing(t, c, "before the fault")
	f, err := l.LoseLarge(600, Flow{From: hosts[1], To: hosts[0]})
	if err != nil {
		t.Fatal(err)
	}
	mustPing(t, c, "a small packet passes")
	large := bytes.Repeat([]byte("x"), 1200)
	if _, err := c.Write(large); err != nil {
		t.Fatal(err)
	}
	mustBeMute(t, c, "a large packet is lost, as often as it is sent")
	if err := f.Lift(); err != nil {
		t.Fatal(err)
	}
	back := make([]byte, len(large))
	if err := c.SetReadDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, back); err != nil {
		t.Errorf("%v after the fault was lifted, want what was sent", err)
	}
}

// received is how many IP packets the host's kernel has received.
func received(t *testing.T, h *Host) (n int) {
	t.Helper()
	err := h.Do(func() error {
		text, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		_, values, _ := strings.Cut(string(text), "\nIp: ")
		_, err = fmt.Sscan(strings.Fields(values)[2], &n) // InReceives
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestFaultsSayWhatIsWrongWithThem(t *testing.T) {
	l, hosts := lab(t, "m1", "c1")
	other, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	stranger, err := other.Host("m1")
	if err != nil {
		t.Fatal(err)
	}
	flow := Flow{From: hosts[0], To: hosts[1]}
	for name, fault := range map[string]func() (*Fault, error){
		"at least one flow":     func() (*Fault, error) { return l.Drop() },
		"one is nil":            func() (*Fault, error) { return l.Drop(Flow{From: hosts[0]}) },
		"of a host to itself":   func() (*Fault, error) { return l.Drop(Flow{From: hosts[0], To: hosts[0]}) },
		"of another lab":        func() (*Fault, error) { return l.Drop(Flow{From: hosts[0], To: stranger}) },
		"0 to 1 is allowed":     func() (*Fault, error) { return l.Lose(1.5, flow) },
		"100 to 1499 is allow":  func() (*Fault, error) { return l.LoseLarge(1500, flow) },
		"more than 0 and":       func() (*Fault, error) { return l.Delay(0, flow) },
		"at least 1000 is allo": func() (*Fault, error) { return l.Rate(1, flow) },
	} {
		if _, err := fault(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one that says %q", err, name)
		}
	}
	if got := l.Faults(); len(got) != 0 {
		t.Errorf("Faults() = %q after faults that could not be", got)
	}
}

func TestTwoLabsDoNotMeet(t *testing.T) {
	_, first := lab(t, "m1")
	_, second := lab(t, "m1")
	_, address := echo(t, first[0])
	if c, err := tryDial(second[0], address, 200*time.Millisecond); err == nil {
		c.Close()
		t.Error("a host of one lab reaches a host of another")
	}
}

func TestRemovedHostVanishesWithoutAWord(t *testing.T) {
	l, hosts := lab(t, "m1", "c1")
	m1, c1 := hosts[0], hosts[1]
	p, address := echo(t, m1)
	c := dial(t, c1, address)
	if _, err := l.Delay(time.Millisecond, Between(m1, c1)...); err != nil {
		t.Fatal(err)
	}
	mustPing(t, c, "before the removal")
	if err := m1.Remove(); err != nil {
		t.Fatal(err)
	}
	mustBeMute(t, c, "the host is gone")
	select {
	case <-p.Done():
	default:
		t.Error("a process outlives its host")
	}
	if err := m1.Remove(); err != nil {
		t.Errorf("second Remove: %v", err)
	}
	again, err := l.Host("m1")
	if err != nil {
		t.Fatal(err)
	}
	if again.Addr() == m1.Addr() {
		t.Errorf("the new m1 has the old one's address %v", m1.Addr())
	}
	if _, err := l.Delay(time.Millisecond, Between(again, c1)...); err != nil {
		t.Errorf("a fault after a host with faults was removed: %v", err)
	}
	if _, err := m1.Start(Command{Path: "true"}); err == nil || !strings.Contains(err.Error(), "removed") {
		t.Errorf("a start on a host that was removed: %v, want an error that says so", err)
	}
}

func TestHostsAreFastToMakeAndFaultsFastToInflict(t *testing.T) {
	l := ForTest(t, Config{})
	const most = 100 * time.Millisecond
	var hosts []*Host
	quickest := map[string]time.Duration{}
	slow := func() bool {
		for _, took := range quickest {
			if took > most {
				return true
			}
		}
		return false
	}
	for i := 0; i < 7 || i < 30 && slow(); i++ { // more of them on a busy machine
		start := time.Now()
		h, err := l.Host(fmt.Sprintf("h%d", i))
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
		note(quickest, "host", time.Since(start))
	}
	in, out := Around(hosts[0], hosts[:7]...)
	flows := append(in, out...)
	for i := 0; i < 5 || i < 30 && slow(); i++ {
		for name, inflict := range map[string]func() (*Fault, error){
			"drop":  func() (*Fault, error) { return l.Drop(flows...) },
			"lose":  func() (*Fault, error) { return l.Lose(0.5, flows...) },
			"delay": func() (*Fault, error) { return l.Delay(time.Millisecond, flows...) },
		} {
			start := time.Now()
			f, err := inflict()
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(start)
			start = time.Now()
			if err := f.Lift(); err != nil {
				t.Fatal(err)
			}
			note(quickest, name, took)
			note(quickest, name+" lifted", time.Since(start))
		}
	}
	t.Logf("quickest of %d hosts and of the faults with 12 flows: %v", len(hosts), quickest)
	for name, took := range quickest {
		if took > most {
			t.Errorf("%s took %v at best, want a few milliseconds: it is part of what is measured", name, took)
		}
	}
}

func note(quickest map[string]time.Duration, name string, took time.Duration) {
	if old, ok := quickest[name]; !ok || took < old {
		quickest[name] = took
	}
}
