package relay

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/leak"
)

func TestMain(m *testing.M) { leak.VerifyTestMain(m, leak.Harness) }

// soon bounds what should happen at once, on a busy machine; mute is how long a
// test listens to be sure that nothing comes.
const (
	soon = 20 * time.Second
	mute = 150 * time.Millisecond
)

// echo is the node behind a door: it answers every byte with the same byte.
func echo(t *testing.T) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lis.Close() })
	go func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.Copy(conn, conn)
			}()
		}
	}()
	return lis.Addr().String()
}

func network(t *testing.T) *Network {
	t.Helper()
	n := NewNetwork(nil)
	t.Cleanup(n.Close)
	return n
}

func dial(t *testing.T, n *Network, from, to, target string) net.Conn {
	t.Helper()
	door, err := n.Listen(to, target, From(from))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", door.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// say sends one word and returns what came back within d.
func say(t *testing.T, conn net.Conn, word string, d time.Duration) (string, error) {
	t.Helper()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	return hear(conn, len(word), d)
}

func hear(conn net.Conn, n int, d time.Duration) (string, error) {
	conn.SetReadDeadline(time.Now().Add(d))
	buf := make([]byte, n)
	got, err := io.ReadFull(conn, buf)
	return string(buf[:got]), err
}

func mustSay(t *testing.T, conn net.Conn, word string) {
	t.Helper()
	if got, err := say(t, conn, word, soon); err != nil || got != word {
		t.Fatalf("said %q, heard %q, %v: the network has no fault here", word, got, err)
	}
}

func mustBeMute(t *testing.T, conn net.Conn, word string) {
	t.Helper()
	got, err := say(t, conn, word, mute)
	var timeout net.Error
	if got != "" || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("said %q, heard %q, %v; want silence on an open connection, as a dropping network gives", word, got, err)
	}
}

// awaitStuck waits until something is held in a direction. Before that, a heal finds
// nothing to reset and the bytes arrive.
func awaitStuck(t *testing.T, n *Network, d Direction) {
	t.Helper()
	stuck := func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		for f := range n.flows {
			if f.stuckIn([]Direction{d}) {
				return true
			}
		}
		return false
	}
	for end := time.Now().Add(soon); !stuck(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nothing is held in %v", d)
		}
	}
}

func mustBeReset(t *testing.T, conn net.Conn) {
	t.Helper()
	if got, err := hear(conn, 1, soon); err == nil || got != "" || isTimeout(err) {
		t.Fatalf("heard %q, %v; want a reset: held bytes must not be delivered after the heal", got, err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestHeldDirectionIsSilentUntilTheHealResetsIt(t *testing.T) {
	for _, d := range []Direction{{"a", "b"}, {"b", "a"}} {
		t.Run(d.String(), func(t *testing.T) {
			n := network(t)
			conn := dial(t, n, "a", "b", echo(t))
			mustSay(t, conn, "before")
			n.Hold(d)
			mustBeMute(t, conn, "during")
			awaitStuck(t, n, d)
			n.Heal(d)
			mustBeReset(t, conn)
		})
	}
}

func TestOneWayHoldCarriesTheOtherWay(t *testing.T) {
	n := network(t)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	near := dial(t, n, "a", "b", lis.Addr().String())
	far, err := lis.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	n.Hold(Direction{"a", "b"})
	io.WriteString(far, "down")
	if got, err := hear(near, 4, soon); got != "down" {
		t.Errorf("a heard %q, %v; want what b sent: only a->b is held", got, err)
	}
	io.WriteString(near, "up")
	if got, err := hear(far, 1, mute); got != "" || !isTimeout(err) {
		t.Errorf("b heard %q, %v; want nothing: a->b is held", got, err)
	}
}

func TestTheEndOfAStreamIsHeldToo(t *testing.T) {
	n := network(t)
	conn := dial(t, n, "a", "b", echo(t))
	mustSay(t, conn, "x")
	n.Hold(Direction{"a", "b"})
	conn.(*net.TCPConn).CloseWrite()
	if got, err := hear(conn, 1, mute); !isTimeout(err) {
		t.Fatalf("heard %q, %v; want silence: b cannot know that a closed", got, err)
	}
}

func TestNewConnectionUnderHoldIsAcceptedAndMute(t *testing.T) {
	n := network(t)
	d := Direction{"a", "b"}
	n.Hold(d)
	conn := dial(t, n, "a", "b", echo(t))
	mustBeMute(t, conn, "hello")
	awaitStuck(t, n, d)
	n.Heal()
	mustBeReset(t, conn)
	mustSay(t, dial(t, n, "a", "b", echo(t)), "hello")
}

func TestHealLeavesConnectionsThatHadNothingToCarry(t *testing.T) {
	n := network(t)
	conn := dial(t, n, "a", "b", echo(t))
	mustSay(t, conn, "before")
	n.Hold(Direction{"a", "b"}, Direction{"b", "a"})
	n.Heal()
	mustSay(t, conn, "after")
}

func TestHoldConcernsOnlyTheNamedPair(t *testing.T) {
	n := network(t)
	target := echo(t)
	cut, whole := dial(t, n, "a", "b", target), dial(t, n, "c", "b", target)
	mustSay(t, cut, "x")
	mustSay(t, whole, "x")
	n.Hold(Direction{"a", "b"})
	mustBeMute(t, cut, "y")
	mustSay(t, whole, "y")
	if got := n.Held(); len(got) != 1 || got[0] != (Direction{"a", "b"}) {
		t.Errorf("held %v; want a->b only", got)
	}
}

func TestDelayShiftsEveryByteWithoutThinningThem(t *testing.T) {
	n := network(t)
	conn := dial(t, n, "a", "b", echo(t))
	mustSay(t, conn, "x")
	const delay = 300 * time.Millisecond
	n.Delay(delay, Direction{"a", "b"})
	began := time.Now()
	const words = 30
	go func() {
		for range words {
			io.WriteString(conn, "y")
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if got, err := hear(conn, words, soon); err != nil {
		t.Fatalf("heard %q, %v", got, err)
	}
	// One after the other they would take 9 s; a busy machine adds some of its own.
	if took := time.Since(began); took < delay || took > words*delay/2 {
		t.Errorf("%d bytes sent 10 ms apart took %v; want little more than %v: each is late by the delay, not by the sum", words, took, delay)
	}
	n.Delay(0, Direction{"a", "b"})
	mustSay(t, conn, "z")
}

func TestServerNameOfTheHelloTellsWhoDialled(t *testing.T) {
	n := network(t)
	door, err := n.Listen("b", echo(t), FromServerName())
	if err != nil {
		t.Fatal(err)
	}
	hello := func(name string) net.Conn {
		conn, err := net.Dial("tcp", door.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		go tls.Client(writeOnly{conn}, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		return conn
	}
	n.Hold(Direction{"a", "b"})
	cut, whole, nameless := hello("a"), hello("c"), hello("")
	// The echo sends the hello back: record type 22 is a handshake.
	if got, err := hear(whole, 1, soon); err != nil || got[0] != 22 {
		t.Errorf("c heard %q, %v; want its own hello echoed unchanged", got, err)
	}
	if got, err := hear(cut, 1, mute); !isTimeout(err) {
		t.Errorf("a heard %q, %v; want silence: a->b is held", got, err)
	}
	if got, err := hear(nameless, 1, soon); got != "" || isTimeout(err) {
		t.Errorf("a connection without a name heard %q, %v; want it refused: its faults could not be told", got, err)
	}
}

// writeOnly lets a TLS client send its hello and leaves the answer to the test.
type writeOnly struct{ net.Conn }

func (writeOnly) Read([]byte) (int, error) { return 0, io.EOF }

func TestServerNameRefusesWhatIsNoHello(t *testing.T) {
	if name, err := serverName(strings.NewReader("GET / HTTP/1.1\r\n\r\n")); err == nil {
		t.Errorf("got name %q from a plain request; want an error", name)
	}
}

func TestAnswerBeforeAnOrdinaryCloseArrives(t *testing.T) {
	n := network(t)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	conn := dial(t, n, "a", "b", lis.Addr().String())
	far, err := lis.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.(*net.TCPConn).CloseWrite()
	want := strings.Repeat("x", 200<<10)
	io.WriteString(far, want)
	far.Close()
	conn.SetReadDeadline(time.Now().Add(soon))
	if got, err := io.ReadAll(conn); err != nil || string(got) != want {
		t.Errorf("got %d bytes, %v; want %d and the end: no fault was set", len(got), err, len(want))
	}
}

func TestListenAfterCloseIsRefused(t *testing.T) {
	n := NewNetwork(nil)
	n.Close()
	if _, err := n.Listen("b", "127.0.0.1:1", From("a")); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v; want ErrClosed", err)
	}
}
