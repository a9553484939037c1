//go:build linux

package nethosts

import (
	"net/netip"
	"strings"
	"testing"
)

const tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0200400A:094B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0200400A:094B 0300400A:D2F4 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 100 0 0 10 0
   2: 0200400A:094B 0300400A:D2F5 08 00000000:00000000 00:00000000 00000000     0        0 2 1 0 100 0 0 10 0
   3: 0000000000000000FFFF00000200400A:094B 0000000000000000FFFF00000400400A:D2F4 01 00000000:00000000 00:00000000 00000000 0 0 2
`

func TestEstablishedConnectionsAreRead(t *testing.T) {
	got := established([]byte(tcpTable))
	want := []connection{
		{netip.MustParseAddrPort("10.64.0.2:2379"), netip.MustParseAddrPort("10.64.0.3:54004")},
		{netip.MustParseAddrPort("10.64.0.2:2379"), netip.MustParseAddrPort("10.64.0.4:54004")},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v: no listener, none that closes, and IPv4 as it is", got, want)
	}
}

func FuzzEstablished(f *testing.F) {
	f.Add([]byte(tcpTable))
	f.Add([]byte(" 0: 0:0 :0 01\n 1: 00:0000 000000000000:0 01\n"))
	f.Fuzz(func(t *testing.T, table []byte) {
		for _, c := range established(table) {
			if !c.local.IsValid() || !c.remote.IsValid() {
				t.Errorf("%v is no connection", c)
			}
		}
	})
}

func TestConnectionsOfAHostWithItselfCountOnce(t *testing.T) {
	_, hosts := lab(t, "m1")
	_, address := echo(t, hosts[0])
	mustPing(t, dial(t, hosts[0], address), "its own server")
	mustHaveConnections(t, hosts[0], 1, "with itself")
}

func TestStatIsReadWhateverTheNameHolds(t *testing.T) {
	for text, want := range map[string]stat{
		"12 (sh) S 1 34 34 0 -1":         {"S", 34},
		"12 (a) R 9 9 (b) T 1 35 34 0 -": {"T", 35},
		"12 ()) Z 1 36":                  {"Z", 36},
		"":                               {},
		"12 (sh":                         {},
		"12 (sh) S":                      {},
		"12 (sh) S 1 x":                  {},
	} {
		if got := parseStat(text); got != want {
			t.Errorf("parseStat(%q) = %v, want %v", text, got, want)
		}
	}
}

func FuzzStat(f *testing.F) {
	f.Add("12 (a) R 9 9 (b) T 1 35 34 0 -")
	f.Fuzz(func(t *testing.T, text string) {
		if s := parseStat(text); s.state == "" && s.group != 0 || strings.ContainsAny(s.state, " \n") {
			t.Errorf("%q is read as %v", text, s)
		}
	})
}
