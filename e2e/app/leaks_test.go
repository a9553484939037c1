//go:build linux

package app

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestConnectionsOfTheProcessAreRead(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0CE4 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   1: 0200000A:A1B2 0100000A:094B 01 00000000:00000000 00:00000000 00000000     0        0 12 1 0 100 0 0 10 0
   2: 0200000A:A1B3 0100000A:094B 01 00000000:00000000 00:00000000 00000000     0        0 13 1 0 100 0 0 10 0
   3: 0000000000000000FFFF00000200000A:0001 0000000000000000FFFF00000100000A:094B 01 0:0 00:0 0 0 0 14 1
   4: short
   5: xyz:1 0100000A:zz 01 0:0 00:0 0 0 0 15 1`
	got := parseConnections(table, map[string]bool{"11": true, "12": true, "14": true, "15": true})
	want := []string{"10.0.0.2:41394 to 10.0.0.1:2379", "10.0.0.2:1 to 10.0.0.1:2379"}
	if !slices.Equal(got, want) {
		t.Errorf("connections %q, want %q: own ones only, and none that listens", got, want)
	}
}

func TestAConnectionAndAGoroutineThatAreLeftAreLeaks(t *testing.T) {
	before := held()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	end := make(chan struct{})
	defer close(end)
	for range 5 { // more than what the tests before may still be ending
		go func() { <-end }()
	}
	l := leaked(before, func() int { return 0 }, 10*time.Millisecond)
	if l.Descriptors[1] <= l.Descriptors[0] || l.Goroutines[1] <= l.Goroutines[0] {
		t.Errorf("leaks %v of goroutines, %v of descriptors; want more after than before", l.Goroutines, l.Descriptors)
	}
	if want := conn.LocalAddr().String() + " to " + ln.Addr().String(); !slices.Contains(l.Connections, want) {
		t.Errorf("connections %q, want %q among them", l.Connections, want)
	}
	if !strings.Contains(l.Stacks, "TestAConnectionAndAGoroutineThatAreLeftAreLeaks") {
		t.Error("the leaked goroutine is not among the stacks")
	}
}

// A stream that is about to end is none that is left: what was recorded of it must have its end.
func TestLeaksWaitForStreamsToEnd(t *testing.T) {
	const most = 2 * time.Second
	enough := holdings{goroutines: 1 << 20, descriptors: 1 << 20}
	looks := 0
	began := time.Now()
	leaked(enough, func() int { looks++; return max(0, 4-looks) }, most)
	if took := time.Since(began); looks != 4 || took >= most {
		t.Errorf("after %d looks in %v it went on; want 4, the first at which no stream was open", looks, took)
	}
	began = time.Now()
	leaked(enough, func() int { return 1 }, 50*time.Millisecond)
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("it waited %v for a stream that never ends; want all the time that it has", took)
	}
}
