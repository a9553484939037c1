//go:build linux

package suites

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func connectionOf(local, remote string) connection {
	return connection{netip.MustParseAddrPort(local), netip.MustParseAddrPort(remote)}
}

func TestConnectionsThatHaveNotEndedAreListed(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100000A:094B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100000A:094B 0900000A:C350 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
   2: 0100000A:094B 0900000A:C351 08 00000000:00000000 00:00000000 00000000     0        0 3 1 0 20 4 30 10 -1
   3: 0100000A:094B 0900000A:C352 06 00000000:00000000 00:00000000 00000000     0        0 4 1 0 20 4 30 10 -1
   4: 0100000A:094B 0800000A:C353 01 00000000:00000000 00:00000000 00000000     0        0 5 1 0 20 4 30 10 -1
   5: 0000000000000000FFFF00000100000A:094B 0000000000000000FFFF00000900000A:C354 01 00000000:00000000 00:00000000
   6: garbage
   7: x y 01 01
`
	want := []connection{
		connectionOf("10.0.0.1:2379", "10.0.0.9:50000"), connectionOf("10.0.0.1:2379", "10.0.0.9:50001"),
		connectionOf("10.0.0.1:2379", "10.0.0.8:50003"), connectionOf("10.0.0.1:2379", "10.0.0.9:50004"),
	}
	if got := listed(strings.NewReader(table)); !reflect.DeepEqual(got, want) {
		t.Errorf("listed %v;\nwant %v: established ones, also over IPv6, and one that only the peer has closed", got, want)
	}
}

func TestConnectionsThatTheClientHasClosedAreOrphans(t *testing.T) {
	both, lost := connectionOf("10.0.0.1:2379", "10.0.0.9:50000"), connectionOf("10.0.0.1:2379", "10.0.0.9:50001")
	client := []connection{both.mirrored(), connectionOf("10.0.0.9:50001", "10.0.0.2:2379")}
	if got := orphaned([]connection{both, lost}, client); !slices.Equal(got, []connection{lost}) {
		t.Errorf("orphans are %v; want %v: of the other one the client has its end", got, lost)
	}
}
